"""The manifest of a record: what it was made from, and which shards are complete.

It is the commit point: a shard's files count only when the manifest names them, with their digests. It holds
nothing that depends on the clock, so that a resumed tournament ends with the bytes of an uninterrupted one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from apexrl.runs.atomic import write_json
from apexrl.runs.digest import digest_config
from apexrl.runs.errors import UserFacingError
from litaagent_std.records.schema import SCHEMA_VERSION

__all__ = ["MANIFEST_NAME", "FileEntry", "Manifest", "NoRecordsError", "Shard", "is_of_something_else"]

MANIFEST_NAME: Final = "manifest.json"
_FORMAT: Final = "litaagent.records"


class NoRecordsError(UserFacingError):
    """There are no records, or none that this release can read."""


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
        write_json(folder / MANIFEST_NAME, content)

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest of a folder.

        Raises:
            NoRecordsError: If there is none, or one that this release cannot read.
        """
        path = folder / MANIFEST_NAME
        try:
            content = json.loads(path.read_bytes())
        except FileNotFoundError as error:
            raise NoRecordsError(
                f"there is no {str(path)!r}",
                "a folder of records has a manifest",
                "name the folder of a tournament, or one that holds several",
            ) from error
        except ValueError as error:
            raise _unreadable(path, str(error)) from error
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise _unreadable(path, f"it is not marked {_FORMAT!r}")
        if content["schema_version"] != SCHEMA_VERSION:
            raise _unreadable(path, f"its schema version is {content['schema_version']}, not {SCHEMA_VERSION}")
        shards = tuple(_read_shard(entry) for entry in content["shards"])
        return cls(content["source"], content["n_worlds"], content["shard_size"], shards)


def is_of_something_else(path: Path) -> bool:
    """Whether a manifest is marked as that of something other than records, such as a dataset made from them."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False  # a damaged manifest may be one of records, and is reported when it is read
    return isinstance(content, dict) and content.get("format", _FORMAT) != _FORMAT


def _plain_shard(shard: Shard) -> dict[str, Any]:
    plain = asdict(shard)
    plain["failed"] = {str(world): reason for world, reason in sorted(shard.failed.items())}
    return plain


def _read_shard(data: Mapping[str, Any]) -> Shard:
    files = {name: FileEntry(**entry) for name, entry in data["files"].items()}
    failed = {int(world): reason for world, reason in data["failed"].items()}
    return Shard(data["number"], data["first"], data["stop"], files, failed)


def _unreadable(path: Path, why: str) -> NoRecordsError:
    return NoRecordsError(
        f"{str(path)!r} cannot be used: {why}",
        f"it must be a manifest of records, schema version {SCHEMA_VERSION}",
        "restore it from a copy, or read it with the release that wrote it",
    )
