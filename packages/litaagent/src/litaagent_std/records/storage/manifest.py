"""The manifest of a record: what it was made from, and which shards are complete.

It is the commit point: a shard's files count only when the manifest names them, with their digests. It holds
nothing that depends on the clock, so that a resumed tournament ends with the bytes of an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from apexrl.runs.digest import digest_config
from apexrl.runs.errors import ReadFailedError
from apexrl.runs.reading import contained, read_json, read_sealed, reading, verify_file, write_sealed
from litaagent_std.records.schema import SCHEMA_VERSION, TABLES

__all__ = [
    "MANIFEST_NAME",
    "FileEntry",
    "Manifest",
    "NoRecordsError",
    "RecordsDamagedError",
    "Shard",
    "is_of_something_else",
]

MANIFEST_NAME: Final = "manifest.json"
_FORMAT: Final = "litaagent.records"
_KEYS: Final = frozenset(
    {"format", "schema_version", "source", "source_digest", "n_worlds", "shard_size", "complete", "shards"}
)
_MOST_WORLDS: Final = 10_000_000
_WANTED: Final = (
    f"it must be a manifest of records, schema version {SCHEMA_VERSION}",
    "restore it from a copy, or read it with the release that wrote it",
)


class NoRecordsError(ReadFailedError):
    """There are no records, or none that this release can read."""


class RecordsDamagedError(ReadFailedError):
    """A file of the records is not what was written."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of a shard.

    Attributes:
        path: Relative to the manifest's folder.
        rows: Rows in it.
        bytes: Its size.
        sha256: Digest of its content.
    """

    path: str
    rows: int
    bytes: int
    sha256: str

    def locate(self, folder: Path) -> Path:
        """Return the file in the folder of its manifest, after comparing it with its digest.

        Raises:
            RecordsDamagedError: If it is missing, outside the folder, or not what was written.
        """
        hint = "`lita records PATH --verify` names all such files; restore them, or collect the tournament again"
        with reading(folder, RecordsDamagedError, hint=hint):
            path = contained(folder, self.path)
            try:
                verify_file(path, self.sha256, self.bytes)
            except FileNotFoundError as error:
                raise RecordsDamagedError(f"{str(path)!r} is missing", "the manifest names it", hint) from error
            return path


@dataclass(frozen=True, slots=True)
class Shard:
    """Consecutive worlds, gathered in one file per table.

    Attributes:
        number: Place of the shard.
        first: Its first world.
        stop: The world after its last one.
        files: By table.
        failed: Worlds that failed for good, with the reason; they are in no table.
    """

    number: int
    first: int
    stop: int
    files: dict[str, FileEntry]
    failed: dict[int, str] = field(default_factory=dict)

    @property
    def worlds(self) -> list[int]:
        """The worlds that are in the tables."""
        return [world for world in range(self.first, self.stop) if world not in self.failed]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What ``manifest.json`` says.

    Attributes:
        source: What the worlds were made from: the tournament's configuration in plain values.
        n_worlds: Worlds of the tournament's plan.
        shard_size: Worlds per shard.
        shards: The complete ones, in order of their numbers.
    """

    source: dict[str, Any]
    n_worlds: int
    shard_size: int
    shards: tuple[Shard, ...] = ()

    @property
    def n_shards(self) -> int:
        """Shards that there will be."""
        return -(-self.n_worlds // self.shard_size)

    @property
    def complete(self) -> bool:
        """Whether every world has its outcome."""
        return len(self.shards) == self.n_shards

    @property
    def failed(self) -> dict[int, str]:
        """Worlds that failed for good, with the reason."""
        return {world: reason for shard in self.shards for world, reason in shard.failed.items()}

    def bounds(self, number: int) -> tuple[int, int]:
        """First world of a shard and the world after its last."""
        return number * self.shard_size, min((number + 1) * self.shard_size, self.n_worlds)

    def with_shard(self, shard: Shard) -> Manifest:
        """Return the manifest with one shard more."""
        shards = sorted((*self.shards, shard), key=lambda entry: entry.number)
        return Manifest(self.source, self.n_worlds, self.shard_size, tuple(shards))

    def without_shard(self, shard: Shard) -> Manifest:
        """Return the manifest without a shard."""
        shards = tuple(entry for entry in self.shards if entry.number != shard.number)
        return Manifest(self.source, self.n_worlds, self.shard_size, shards)

    def write(self, folder: Path) -> None:
        """Replace the manifest, whole or not at all."""
        content = {
            "format": _FORMAT,
            "schema_version": SCHEMA_VERSION,
            "source": self.source,
            "source_digest": digest_config(self.source),
            "n_worlds": self.n_worlds,
            "shard_size": self.shard_size,
            "complete": self.complete,
            "shards": [_plain_shard(shard) for shard in self.shards],
        }
        write_sealed(folder / MANIFEST_NAME, content)

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest of a folder.

        Raises:
            NoRecordsError: If there is none, or one that this release cannot read.
        """
        path = folder / MANIFEST_NAME
        try:
            with reading(path, NoRecordsError, *_WANTED):
                return cls._parse(read_sealed(path))
        except FileNotFoundError as error:
            raise NoRecordsError(
                f"there is no {str(path)!r}",
                "a folder of records has a manifest",
                "name the folder of a tournament, or one that holds several",
            ) from error

    @classmethod
    def _parse(cls, content: Mapping[str, Any]) -> Manifest:
        if content.get("format") != _FORMAT:
            raise ValueError(f"it is not marked {_FORMAT!r}")
        if content["schema_version"] != SCHEMA_VERSION:
            raise ValueError(f"its schema version is {content['schema_version']}, not {SCHEMA_VERSION}")
        if content.keys() != _KEYS:
            raise ValueError(f"it has the keys {sorted(content)}, not {sorted(_KEYS)}")
        if digest_config(content["source"]) != content["source_digest"]:
            raise ValueError("its source does not match its digest")
        n_worlds, size = content["n_worlds"], content["shard_size"]
        if not _is_count(n_worlds) or not _is_count(size) or size < 1 or n_worlds > _MOST_WORLDS:
            raise ValueError(f"{n_worlds!r} worlds in shards of {size!r}; at most {_MOST_WORLDS} are read")
        manifest = cls(content["source"], n_worlds, size, tuple(map(_read_shard, content["shards"])))
        for shard in manifest.shards:
            bounds = (shard.first, shard.stop)
            inside = 0 <= shard.number < manifest.n_shards and bounds == manifest.bounds(shard.number)
            if not inside or any(not shard.first <= world < shard.stop for world in shard.failed):
                raise ValueError(f"its shard {shard.number} of worlds {bounds} is not one of its plan")
        numbers = [shard.number for shard in manifest.shards]
        if len(set(numbers)) < len(numbers) or content["complete"] is not manifest.complete:
            raise ValueError(f"its shards {numbers} do not make what it says")
        return manifest


def is_of_something_else(path: Path) -> bool:
    """Whether a manifest is marked as that of something other than records, such as a dataset made from them."""
    try:
        content = read_json(path)
    except (OSError, ReadFailedError):
        return False  # a damaged manifest may be one of records, and is reported when it is read
    return isinstance(content, dict) and content.get("format", _FORMAT) != _FORMAT


def _plain_shard(shard: Shard) -> dict[str, Any]:
    plain = asdict(shard)
    plain["failed"] = {str(world): reason for world, reason in sorted(shard.failed.items())}
    return plain


def _read_shard(data: Mapping[str, Any]) -> Shard:
    files = {name: FileEntry(**entry) for name, entry in data["files"].items()}
    failed = {int(world): str(reason) for world, reason in data["failed"].items()}
    numbers = [data[name] for name in ("number", "first", "stop")]
    for entry in files.values():
        numbers += [entry.rows, entry.bytes]
        if not isinstance(entry.path, str) or not isinstance(entry.sha256, str):
            raise ValueError(f"{entry} names no file")
    if not all(map(_is_count, numbers)) or not files.keys() >= TABLES.keys():
        raise ValueError(f"its shard {data['number']!r} is not one that a release wrote")
    return Shard(data["number"], data["first"], data["stop"], files, failed)


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0
