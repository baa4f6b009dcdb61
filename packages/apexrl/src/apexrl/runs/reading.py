"""Files as input that nobody vouches for: read whole, bounded, and checked before anything is made of them.

Every reader of a file goes through this module, so that a damaged or hostile file ends in one kind of error,
`ReadFailedError`: only regular files are opened (a pipe or a device never answers or never ends), sizes are
known before memory is taken, a path that a file names stays inside its folder, and what has a digest is compared
with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import pickle
import stat
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from apexrl.runs.atomic import StrPath, write_json
from apexrl.runs.digest import digest_config
from apexrl.runs.errors import ReadFailedError, UserFacingError, safe_text

if TYPE_CHECKING:
    from apexrl.arrays import Array

__all__ = [
    "MALFORMED",
    "YAML_LIMIT",
    "contained",
    "open_regular",
    "parse_yaml",
    "read_bytes",
    "read_json",
    "read_npz",
    "read_sealed",
    "reading",
    "verify_file",
    "write_sealed",
]

MALFORMED: Final = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    EOFError,
    MemoryError,
    RuntimeError,
    pickle.UnpicklingError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What Python, numpy, torch and Arrow raise when they parse something else than was written."""

SEAL: Final = "sha256"
"""Key of the digest in a sealed JSON file."""

_MIB: Final = 1 << 20
_JSON_LIMIT: Final = 256 * _MIB
YAML_LIMIT: Final = 4 * _MIB
"""Most bytes of a configuration file."""

_WHOLE_LIMIT: Final = 8192 * _MIB
_NPZ_LIMIT: Final = 1024 * _MIB
_HINT: Final = "restore it from a copy, or make it again"


@contextlib.contextmanager
def reading(
    path: StrPath,
    error: type[UserFacingError] = ReadFailedError,
    expected: str = "a file is read as it was written",
    hint: str = _HINT,
) -> Iterator[None]:
    """Turn whatever a malformed file makes its reader raise into one error that names the file.

    A missing file stays a ``FileNotFoundError``, for the caller to explain.

    Args:
        path: The file, for the message.
        error: The class to raise.
        expected: What the file must be.
        hint: What to do about it.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except ReadFailedError as cause:
        if isinstance(cause, error):
            raise
        raise error(cause.got, cause.expected or expected, hint) from cause
    except UserFacingError:
        raise
    except OSError as cause:
        raise error(f"{os.fspath(path)!r} cannot be read: {cause.strerror or cause}", expected, hint) from cause
    except MALFORMED as cause:
        # Python's own errors need their class to be understood; those of a package speak for themselves.
        own = type(cause) is ValueError or type(cause).__module__.partition(".")[0] not in sys.stdlib_module_names
        why = safe_text(cause) if own else f"{type(cause).__name__}: {safe_text(cause)}"
        raise error(f"{os.fspath(path)!r} cannot be used: {why}", expected, hint) from cause


@contextlib.contextmanager
def open_regular(path: StrPath, limit: int | None = None) -> Iterator[io.BufferedReader]:
    """Open a regular file for reading; nothing that blocks or has no end.

    Args:
        path: The file.
        limit: Most bytes that it may have; None for any.

    Raises:
        FileNotFoundError: If it is not there.
        ReadFailedError: If it is no regular file, too large, or may not be read.
    """
    name = os.fspath(path)
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        why = error.strerror if isinstance(error, OSError) else error
        raise ReadFailedError(
            f"{name!r} cannot be read: {why}", "it must be a readable file", "check the path"
        ) from error
    state = os.fstat(descriptor)
    if not stat.S_ISREG(state.st_mode):
        os.close(descriptor)
        raise ReadFailedError(
            f"{name!r} is no regular file", "pipes, devices and folders are not read", "name another file"
        )
    with os.fdopen(descriptor, "rb") as file:
        if limit is not None and state.st_size > limit:
            raise ReadFailedError(
                f"{name!r} has {state.st_size} bytes", f"such a file has at most {limit} bytes", "name another file"
            )
        yield file


def read_bytes(path: StrPath, limit: int = _WHOLE_LIMIT) -> bytes:
    """Read a regular file of at most ``limit`` bytes; raises as `open_regular`."""
    with open_regular(path, limit) as file:
        return file.read(limit)


def read_json(path: StrPath, limit: int = _JSON_LIMIT) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Read a file of strict JSON: no key twice, no NaN.

    Raises:
        FileNotFoundError: If it is not there.
        ReadFailedError: If it cannot be read or is no JSON.
    """
    with reading(path, expected="it must be JSON"):
        return json.loads(read_bytes(path, limit), object_pairs_hook=_unique, parse_constant=_no_constant)


def write_sealed(path: StrPath, content: Mapping[str, Any]) -> None:
    """Write a mapping as JSON with the digest of its content, whole or not at all; `read_sealed` reads it."""
    plain = json.loads(json.dumps(dict(content), allow_nan=False))  # keys are texts then, tuples lists
    write_json(path, {**plain, SEAL: digest_config(plain)})


def read_sealed(path: StrPath, limit: int = _JSON_LIMIT) -> dict[str, Any]:
    """Read what `write_sealed` wrote, without the digest. A file of a release without digests has none to compare.

    Raises:
        FileNotFoundError: If it is not there.
        ReadFailedError: If it cannot be read, is no JSON object, or is not what was written.
    """
    content = read_json(path, limit)
    if not isinstance(content, dict):
        raise ReadFailedError(
            f"{os.fspath(path)!r} holds a {type(content).__name__}", "it must be a JSON object", _HINT
        )
    seal = content.pop(SEAL, None)
    is_renamed = seal is None and _is_digest(next(reversed(content.values()), None))
    with reading(path):
        if is_renamed or (seal is not None and seal != digest_config(content)):
            raise ReadFailedError(
                f"{os.fspath(path)!r} is damaged: its content does not match its digest",
                "such a file is not changed after it was written",
                _HINT,
            )
    return content


def parse_yaml(text: str) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Parse YAML of plain values without aliases.

    Raises:
        ReadFailedError: If it is something else.
    """
    import yaml  # here: 7 ms that an import of the package need not take

    class NoAliases(yaml.SafeLoader):
        """YAML without aliases: a few lines of them stand for more values than fit into memory."""

        def compose_node(self, parent: Any, index: Any) -> Any:  # noqa: ANN401 - as yaml's
            if self.check_event(yaml.AliasEvent):
                raise ValueError("it has aliases (*name), which are not read")
            return super().compose_node(parent, index)

    try:
        if len(text) > YAML_LIMIT:
            raise ValueError(f"it has {len(text)} characters; at most {YAML_LIMIT} are read")
        return yaml.load(text, Loader=NoAliases)
    except (yaml.YAMLError, *MALFORMED) as error:
        raise ReadFailedError(
            f"this is not YAML that is read here: {safe_text(error)}", "plain values without aliases", "correct it"
        ) from error


def contained(folder: StrPath, name: str) -> Path:
    """Return the path of a file that another file names, if it is inside ``folder``, links resolved.

    Raises:
        ReadFailedError: If the name, or a symbolic link on its way, leads out of the folder.
    """
    root = Path(os.path.realpath(folder))
    with reading(folder):
        path = Path(os.path.realpath(root / name))
        if path == root or not path.is_relative_to(root):
            raise ReadFailedError(
                f"{name!r} leads out of {os.fspath(folder)!r}", "a file names only what is in its own folder", _HINT
            )
    return path


_verified: dict[tuple[str, str], tuple[int, int, int, int]] = {}  # by path and digest: identity, size and time


def verify_file(path: StrPath, sha256: str, size: int | None = None) -> None:
    """Compare a file with its digest, once per process for each state of the file.

    Args:
        path: The file.
        sha256: Its digest in hexadecimal.
        size: Its size in bytes, if it is known.

    Raises:
        FileNotFoundError: If it is not there.
        ReadFailedError: If it is not the file that was written.
    """
    with open_regular(path) as file:
        state = os.fstat(file.fileno())
        key, now = (os.fspath(path), sha256), (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)
        if _verified.get(key) == now:
            return
        is_same = size in (None, state.st_size) and hashlib.file_digest(file, "sha256").hexdigest() == sha256
    if not is_same:
        raise ReadFailedError(
            f"{os.fspath(path)!r} is not the file that was written: its digest is another",
            "every file is compared with its digest before it is used",
            _HINT,
        )
    _verified[key] = now


def read_npz(path: StrPath, limit: int = _NPZ_LIMIT) -> dict[str, Array]:
    """Read all arrays of an ``.npz`` file, without pickled objects; its checksums are compared.

    Args:
        path: The file.
        limit: Most bytes that the arrays may take together; known from the headers before memory is taken.

    Raises:
        FileNotFoundError: If it is not there.
        ReadFailedError: If it is something else, or too large.
    """
    with reading(path, expected="it must be an .npz file of arrays"):
        data = read_bytes(path, limit)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            total = sum(entry.file_size for entry in archive.infolist())
            if total > limit:
                raise ValueError(f"its arrays take {total} bytes; at most {limit} are read")
            names = archive.namelist()
            if len(set(names)) < len(names):
                raise ValueError("it has two arrays of one name")
            return {name.removesuffix(".npy"): _array(archive.read(name)) for name in names}


def _array(data: bytes) -> Array:
    """Parse the content of an ``.npy`` file; nothing is taken beyond its own size."""
    import numpy as np  # readers of plain files do without it

    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, _, dtype = read_header[version](file)
    count = int(np.prod(shape, dtype=object))
    if count * dtype.itemsize != len(data) - file.tell():
        raise ValueError(f"an array of shape {shape} and type {dtype} does not take {len(data) - file.tell()} bytes")
    file.seek(0)
    array: Array = np.load(file, allow_pickle=False)
    return array


def _is_digest(value: object) -> bool:
    """Whether a value is a digest, or one in which some letters are damaged."""
    if not isinstance(value, str) or not 48 <= len(value) <= 80:
        return False
    return sum(letter in "0123456789abcdef" for letter in value) >= 0.8 * len(value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError(f"a key stands twice in {sorted(key for key, _ in pairs)[:20]}")
    return content


def _no_constant(name: str) -> Any:  # noqa: ANN401 - as json's
    raise ValueError(f"{name} is no JSON")
