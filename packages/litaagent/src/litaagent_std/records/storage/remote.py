"""Records in object storage: published from a folder, and read through a local copy that is checked by digests.

An address is ``s3://bucket/path``, ``gs://bucket/path`` or another one that `pyarrow.fs` knows. Publishing uploads the
files of complete shards first and the manifest last, so that a reader sees only what is whole; what is there already
is not sent again. Reading fetches the manifests under an address and the files that they name, compares each with its
digest, and keeps them in a cache: every command then works on the copy as on any other folder.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path, PurePosixPath
from typing import Final

from pyarrow import fs

from apexrl.runs.atomic import atomic_file, ensure_folder, write_bytes
from apexrl.runs.digest import digest_bytes
from apexrl.runs.errors import ReadFailedError, UserFacingError
from apexrl.runs.reading import contained, read_bytes, reading, verify_file
from litaagent_std.records.storage.manifest import MANIFEST_NAME, Manifest, NoRecordsError, is_of_something_else

__all__ = ["StorageError", "is_remote", "local_path", "publish"]

_ADDRESS: Final = re.compile(r"^(s3|gs|gcs|abfs|abfss|hdfs|file):/+")
_MOST_BYTES: Final = 256 << 20  # of a manifest
_PIECE: Final = 8 << 20
_HINT: Final = "check the address, the network, and the credentials in the environment"


class StorageError(UserFacingError):
    """Object storage cannot be reached, or does not hold what is asked for."""


def is_remote(path: str | Path) -> bool:
    """Whether a path is the address of object storage; `Path` has made one slash of two."""
    return _ADDRESS.match(str(path)) is not None


def local_path(path: str | Path) -> Path:
    """Return a path as it is, or the up-to-date local copy of the records at an address.

    Raises:
        NoRecordsError: If there are no records at the address.
        StorageError: If the storage cannot be reached.
    """
    if not is_remote(path):
        return Path(path)
    system, root = _open(path)
    target = _cache() / digest_bytes(_address(path).encode())[:24]
    names = _manifests(system, root, path)
    for name in names:
        _fetch(system, f"{root}/{name}".removesuffix("/."), target / name)
    _forget_others(target, names)
    return target


def publish(folder: Path, address: str | Path) -> int:
    """Upload the complete shards of a folder of records, then its manifest; return the number of files sent.

    Args:
        folder: The folder with the manifest.
        address: Where to, such as ``s3://bucket/tournament/records``.

    Raises:
        NoRecordsError: If there are no records in the folder.
        RecordsDamagedError: If a file is not what was written.
        StorageError: If the storage cannot be written.
    """
    system, root = _open(address)
    manifest = Manifest.read(folder)
    entries = {entry.path: entry for shard in manifest.shards for entry in shard.files.values()}
    there = _published(system, root)
    missing = [entry for entry in entries.values() if there.get(entry.path) != entry.sha256]
    try:
        for entry in missing:
            target = f"{root}/{entry.path}"
            system.create_dir(str(PurePosixPath(target).parent), recursive=True)
            with entry.locate(folder).open("rb") as source, system.open_output_stream(target) as sink:
                while piece := source.read(_PIECE):
                    sink.write(piece)
        _commit(system, f"{root}/{MANIFEST_NAME}", read_bytes(folder / MANIFEST_NAME))
    except OSError as error:
        raise StorageError(f"{_address(address)} cannot be written: {error}", "it must take files", _HINT) from error
    return len(missing)


def _commit(system: fs.FileSystem, name: str, data: bytes) -> None:
    """Write a manifest whole: an object appears when it is complete, a file must be moved into its place."""
    is_local = isinstance(system, fs.LocalFileSystem)
    with system.open_output_stream(f"{name}.incoming" if is_local else name) as sink:
        sink.write(data)
    if is_local:
        system.move(f"{name}.incoming", name)


def _address(path: str | Path) -> str:
    return _ADDRESS.sub(lambda match: f"{match[1]}://" + ("/" if match[1] == "file" else ""), str(path))


def _open(path: str | Path) -> tuple[fs.FileSystem, str]:
    try:
        system, root = fs.FileSystem.from_uri(_address(path))
    except (OSError, ValueError) as error:
        raise StorageError(f"{_address(path)} cannot be opened: {error}", "it must be an address", _HINT) from error
    return system, root.rstrip("/")


def _cache() -> Path:
    """Return the folder of copies: ``LITA_CACHE``, or that of the user."""
    return Path(os.environ.get("LITA_CACHE") or Path.home() / ".cache" / "lita") / "records"


def _manifests(system: fs.FileSystem, root: str, path: str | Path) -> list[str]:
    """Return the folders under the root that have a manifest, as paths relative to it."""
    try:
        files = system.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
    except OSError as error:
        raise StorageError(f"{_address(path)} cannot be read: {error}", "it must hold records", _HINT) from error
    names = [info.path for info in files if info.base_name == MANIFEST_NAME and info.type == fs.FileType.File]
    if not names:
        raise NoRecordsError(f"there are no records at {_address(path)}", f"records have a {MANIFEST_NAME}", _HINT)
    return sorted(PurePosixPath(name).parent.relative_to(root).as_posix() for name in names)


def _published(system: fs.FileSystem, root: str) -> dict[str, str]:
    """Return the digests of the files that the manifest at the root names; nothing if there is none."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            write_bytes(Path(scratch) / MANIFEST_NAME, _read(system, f"{root}/{MANIFEST_NAME}"))
            manifest = Manifest.read(Path(scratch))
        except (OSError, ReadFailedError):
            return {}
    return {entry.path: entry.sha256 for shard in manifest.shards for entry in shard.files.values()}


def _read(system: fs.FileSystem, name: str) -> bytes:
    with system.open_input_stream(name) as stream:
        data = bytes(stream.read(_MOST_BYTES + 1))
    if len(data) > _MOST_BYTES:
        raise ReadFailedError(f"{name!r} is too large", f"a manifest has at most {_MOST_BYTES} bytes", _HINT)
    return data


def _fetch(system: fs.FileSystem, root: str, target: Path) -> None:
    """Bring a local copy up to date: the files first, then the manifest, as they were written.

    Several processes may do so at once: files are replaced whole, and each has its own place for the new manifest.
    """
    with tempfile.TemporaryDirectory(dir=ensure_folder(_cache() / "incoming")) as incoming:
        _fetch_through(Path(incoming), system, root, target)


def _fetch_through(incoming: Path, system: fs.FileSystem, root: str, target: Path) -> None:
    try:
        write_bytes(incoming / MANIFEST_NAME, _read(system, f"{root}/{MANIFEST_NAME}"))
        if is_of_something_else(incoming / MANIFEST_NAME):
            return
        manifest = Manifest.read(incoming)
        for entry in (entry for shard in manifest.shards for entry in shard.files.values()):
            path = contained(target, entry.path)
            try:
                with reading(path):
                    verify_file(path, entry.sha256, entry.bytes)
            except (FileNotFoundError, ReadFailedError):
                _download(system, f"{root}/{entry.path}", path, entry.bytes)
                verify_file(path, entry.sha256, entry.bytes)
    except OSError as error:
        raise StorageError(
            f"{root} cannot be read: {error}", "every file of a manifest must be there", _HINT
        ) from error
    (incoming / MANIFEST_NAME).replace(ensure_folder(target) / MANIFEST_NAME)


def _forget_others(target: Path, names: list[str]) -> None:
    """Remove the manifests of copies that are no longer at the address; files without a manifest are not read."""
    for manifest in target.rglob(MANIFEST_NAME):
        name = manifest.parent.relative_to(target).as_posix()
        if name not in names and not is_of_something_else(manifest):
            manifest.unlink()


def _download(system: fs.FileSystem, name: str, path: Path, size: int) -> None:
    with system.open_input_stream(name) as source, atomic_file(path) as sink:
        left = size + 1  # one more than it may have, so that a longer one is noticed
        while left > 0 and (piece := source.read(min(_PIECE, left))):
            sink.write(piece)
            left -= len(piece)
