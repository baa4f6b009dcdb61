"""Files that appear whole or not at all.

A file is written under a temporary name in its own folder, flushed to the disk, renamed over its final
name, and the folder is flushed too. A reader of the final name, after a crash as well, sees the old
content or the new one.

A writer holds a lock on its temporary file. The operating system drops the lock when the
writer dies, so :func:`remove_leftovers` can tell an abandoned file from one that is still being written,
without trusting process numbers.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from filelock import lock_descriptor

from apexrl.runs.errors import DiskFullError, UnwritableError, WriteFailedError

StrPath = str | os.PathLike[str]

_LEFTOVER = re.compile(r"^\..+\.[0-9a-f]{16}\.partial$", re.DOTALL)
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NOT_ALLOWED = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EEXIST,
        errno.EISDIR,
        errno.ENAMETOOLONG,
        errno.ELOOP,
    }
)


def write_failure(error: OSError, path: StrPath) -> WriteFailedError:
    """Explain an operating-system error that happened while writing ``path``.

    Args:
        error: What the operating system said.
        path: The file or folder that was to be written.

    Returns:
        The error to raise ``from error``.
    """
    reason = error.strerror or str(error)
    value = f"cannot write {os.fspath(path)!r}: {reason}"
    if error.errno in _NO_SPACE:
        return DiskFullError(
            value,
            "the disk, quota or file-size limit must have room for the whole file",
            "free some space or choose another folder, then run the same command again; "
            "what stood there before is untouched",
        )
    if error.errno in _NOT_ALLOWED:
        return UnwritableError(
            value,
            "the folder must exist or be creatable, and be writable for this user",
            "correct the path or its permissions, or choose another folder",
        )
    return WriteFailedError(value, "the file system must accept the file", "check the disk, or choose another folder")


def ensure_folder(folder: StrPath) -> Path:
    """Create a folder, with its parents, if it is not there.

    Raises:
        UnwritableError: If it cannot be created, or something else bears the name.
        DiskFullError: If the disk has no room for it.
    """
    path = Path(folder)
    try:
        missing = [parent for parent in (path, *path.parents) if not parent.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for created in missing:
            sync_folder(created.parent)
    except OSError as error:
        raise write_failure(error, path) from error
    return path


def sync_folder(folder: StrPath) -> None:
    """Flush a folder's entries to the disk, so that a rename survives a power cut.

    A folder that may be written but not read cannot be flushed and is left to the operating system, as are all folders
    on systems that open none.
    """
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def atomic_path(path: StrPath) -> Iterator[Path]:
    """Give a temporary path to write to, and move it to ``path`` when the block ends well.

    For libraries that insist on opening files themselves (Parquet, npz). If the block raises, the temporary
    file is removed and ``path`` stays as it was. A symbolic link is followed, not replaced.

    Yields:
        An existing empty file in the folder of ``path``.

    Raises:
        DiskFullError: If the disk runs full, inside the block as well.
        UnwritableError: If the folder does not allow writing.
    """
    target = Path(os.path.realpath(path))
    ensure_folder(target.parent)
    try:
        temporary, descriptor = _create_locked(target)
    except OSError as error:
        raise write_failure(error, path) from error
    try:
        try:
            yield temporary
        except OSError as error:
            if error.errno in _NO_SPACE:
                raise write_failure(error, path) from error
            raise
        try:
            _publish(temporary, target)
        except OSError as error:
            raise write_failure(error, path) from error
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    finally:
        os.close(descriptor)


@contextmanager
def atomic_file(path: StrPath) -> Iterator[BinaryIO]:
    """Open a binary file for writing that becomes ``path`` when the block ends well.

    Raises:
        DiskFullError: If the disk runs full.
        UnwritableError: If the folder does not allow writing.
    """
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        yield file


def write_bytes(path: StrPath, data: bytes) -> None:
    """Write ``data`` to ``path``, whole or not at all."""
    with atomic_file(path) as file:
        file.write(data)


def write_text(path: StrPath, text: str) -> None:
    """Write ``text`` to ``path`` as UTF-8, whole or not at all."""
    write_bytes(path, text.encode())


def write_json(path: StrPath, value: Any) -> None:  # noqa: ANN401 - whatever json accepts
    """Write ``value`` to ``path`` as indented strict JSON with a final newline, whole or not at all.

    Keys keep their order; NaN and infinities are refused by ``json`` with a ``ValueError``.
    """
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def free_name(path: Path) -> Path:
    """Return the first name that is free for a copy set aside: ``NAME.set-aside``, then with a number."""
    names = itertools.chain([f"{path.name}.set-aside"], (f"{path.name}.set-aside-{n}" for n in itertools.count(2)))
    return next(free for name in names if not (free := path.with_name(name)).exists())


def remove_leftovers(folder: StrPath) -> list[Path]:
    """Remove temporary files in ``folder`` whose writers are dead.

    Files of living writers, in this process or another, are left alone.

    Returns:
        The paths that were removed, sorted.
    """
    try:
        names = sorted(name for name in os.listdir(folder) if _LEFTOVER.match(name))
    except FileNotFoundError:
        return []
    paths = (Path(folder) / name for name in names)
    return [path for path in paths if _remove_if_abandoned(path)]


def _create_locked(target: Path) -> tuple[Path, int]:
    """Create a temporary file beside ``target`` and lock it, before anyone takes it for a leftover."""
    while True:
        stem = target.name.encode()[:200].decode(errors="ignore")
        temporary = target.parent / f".{stem}.{secrets.token_hex(8)}.partial"
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        with suppress(OSError):  # a file system without locks: the file is then never taken for a leftover
            lock_descriptor(descriptor)
        if os.fstat(descriptor).st_nlink > 0:
            return temporary, descriptor
        os.close(descriptor)  # removed between creation and lock: try another name


def _publish(temporary: Path, target: Path) -> None:
    descriptor = os.open(temporary, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(temporary, target)
    sync_folder(target.parent)


def _remove_if_abandoned(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        if not lock_descriptor(descriptor, blocking=False):
            return False
        path.unlink()
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
