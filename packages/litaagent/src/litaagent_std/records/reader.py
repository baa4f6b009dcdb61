"""Reading records: one folder, or many as one.

>>> records = open_records("tournament_history")            # doctest: +SKIP
>>> records.table("factories", columns=["competitor", "score"]).to_pandas()            # doctest: +SKIP
>>> world = records.world(records.keys[0])            # doctest: +SKIP
>>> world.observations(factory=3)[0].cash            # doctest: +SKIP

A tournament that still runs can be read: its finished worlds are there, the others are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from apexrl.runs.digest import digest_file
from apexrl.runs.errors import ReadFailedError
from apexrl.runs.reading import contained, reading
from litaagent_std.records.schema import ALL_TABLES, TABLES, arrow_schema, conform
from litaagent_std.records.storage.manifest import (
    MANIFEST_NAME,
    Manifest,
    NoRecordsError,
    RecordsDamagedError,
    Shard,
    is_of_something_else,
)
from litaagent_std.records.storage.remote import local_path
from litaagent_std.records.storage.segment import Segment, read_segment
from litaagent_std.records.storage.store import segments_in
from litaagent_std.records.world import WorldRecord

__all__ = ["RECORDS_FOLDER", "NoSuchWorldError", "Records", "Source", "WorldKey", "find_sources", "open_records"]

RECORDS_FOLDER: Final = "records"
"""Name of the folder of records inside a tournament's folder."""


class NoSuchWorldError(ReadFailedError, KeyError):
    """The records do not hold a world."""


class WorldKey(NamedTuple):
    """A world among several folders: the number of its folder, and its number in it."""

    source: int
    world: int


@dataclass(frozen=True, slots=True)
class Source:
    """A folder of records as it was when it was opened.

    Attributes:
        folder: The folder with the manifest.
        manifest: The manifest.
        segments: Finished worlds that are in no shard yet.
    """

    folder: Path
    manifest: Manifest
    segments: dict[int, Path]

    @property
    def worlds(self) -> list[int]:
        """Finished worlds in order of their numbers."""
        gathered = {world for shard in self.manifest.shards for world in shard.worlds}
        return sorted(gathered | self.segments.keys())


def find_sources(paths: Iterable[str | Path]) -> list[Path]:
    """Find all folders of records at or under some paths or addresses (`storage.remote`), each once, by name.

    Raises:
        NoRecordsError: If there are none.
    """
    named = [local_path(path) for path in paths]
    folders = {
        manifest.parent.resolve()
        for path in named
        for manifest in path.rglob(MANIFEST_NAME)
        if not is_of_something_else(manifest)
    }
    if not folders:
        raise NoRecordsError(
            f"there are no records under {', '.join(str(path) for path in named) or 'no path at all'}",
            f"a folder of records has a {MANIFEST_NAME}",
            "name the folder of a tournament, or one that holds several",
        )
    return sorted(folders)


def open_records(paths: str | Path | Sequence[str | Path]) -> Records:
    """Open all records at or under one or several paths as one.

    Raises:
        NoRecordsError: If there are none.
    """
    several = [paths] if isinstance(paths, str | Path) else paths
    return Records([_open(folder) for folder in find_sources(several)])


def _open(folder: Path) -> Source:
    while True:
        segments = segments_in(folder)  # before the manifest: what goes into a shard in between is then in both
        manifest = Manifest.read(folder)
        gathered = {world for shard in manifest.shards for world in range(shard.first, shard.stop)}
        kept = {world: path for world, path in segments.items() if world not in gathered}
        try:
            return Source(folder, manifest, {world: path for world, path in kept.items() if _succeeded(path)})
        except FileNotFoundError:
            continue  # a shard was completed since the manifest was read


def _succeeded(path: Path) -> bool:
    return read_segment(path).failure is None


def _tables_of(path: Path) -> dict[str, pa.Table]:
    """Read the tables of a segment that was there when the folder was opened."""
    try:
        segment: Segment = read_segment(path)
    except FileNotFoundError as error:
        raise RecordsDamagedError(
            f"{str(path)!r} is gone", "it was there when the records were opened", "open them again"
        ) from error
    if segment.tables is None:
        raise RecordsDamagedError(f"{str(path)!r} holds a failed world now", "a world has one outcome", "open it again")
    return segment.tables


class Records:
    """The finished worlds of one or several tournaments.

    Args:
        sources: The folders.

    Attributes:
        sources: The folders, in the order of their numbers.
        keys: All finished worlds.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = tuple(sources)
        self.keys = tuple(
            WorldKey(number, world) for number, source in enumerate(self.sources) for world in source.worlds
        )

    def table(
        self, name: str, *, columns: Sequence[str] | None = None, keys: Iterable[WorldKey] | None = None
    ) -> pa.Table:
        """Read a table over all finished worlds, or some, with the column ``source`` before the others.

        Args:
            name: The table; see `schema.ALL_TABLES`. Of worlds without an optional table there are no rows.
            columns: Columns to read besides ``source`` and ``world``; all when None.
            keys: Worlds to read; all when None.

        Raises:
            KeyError: If there is no such table or column.
        """
        if name not in ALL_TABLES:
            raise KeyError(f"there is no table {name!r}; choose one of {list(ALL_TABLES)}")
        schema = arrow_schema(name)
        wanted = schema.names if columns is None else ["world", *(c for c in columns if c != "world")]
        unknown = [column for column in wanted if column not in schema.names]
        if unknown:
            raise KeyError(f"table {name!r} has no columns {unknown}; it has {schema.names}")
        chosen = None if keys is None else set(keys)
        parts = [
            part.add_column(0, "source", pa.array(np.full(part.num_rows, number, np.int16)))
            for number, source in enumerate(self.sources)
            for part in _read(
                source, name, wanted, None if chosen is None else {k.world for k in chosen if k[0] == number}
            )
        ]
        fields = [pa.field("source", pa.int16()), *(schema.field(column) for column in wanted)]
        return pa.concat_tables([pa.schema(fields).empty_table(), *(part.cast(pa.schema(fields)) for part in parts)])

    def world(self, key: WorldKey) -> WorldRecord:
        """Read one world.

        Raises:
            NoSuchWorldError: If it is not among the finished worlds.
        """
        if key not in self.keys:
            raise NoSuchWorldError(
                f"world {key.world} of folder {key.source} is not among the {len(self.keys)} finished worlds",
                f"worlds are {_ranges([world for _, world in self.keys])}",
                "choose one of them",
            )
        source = self.sources[key.source]
        if key.world in source.segments:
            return WorldRecord(_tables_of(source.segments[key.world]))
        shard = next(entry for entry in source.manifest.shards if entry.first <= key.world < entry.stop)
        tables = {
            name: _from_shard(source.folder, shard, name, arrow_schema(name).names, {key.world})
            for name in ALL_TABLES
            if name in TABLES or name in shard.files
        }
        return WorldRecord(tables)

    def worlds(self) -> Iterator[tuple[WorldKey, WorldRecord]]:
        """Read all worlds one after the other."""
        for key in self.keys:
            yield key, self.world(key)

    def verify(self) -> list[str]:
        """Check every file of every complete shard against its digest; returns what is wrong."""
        wrong = []
        for source in self.sources:
            for entry in (entry for shard in source.manifest.shards for entry in shard.files.values()):
                path = source.folder / entry.path
                try:
                    if digest_file(contained(source.folder, entry.path)) != entry.sha256:
                        wrong.append(f"{path} is not the file that was written")
                except FileNotFoundError:
                    wrong.append(f"{path} is missing")
                except (OSError, ReadFailedError) as error:
                    wrong.append(f"{path} cannot be read: {error}")
        return wrong


def _read(source: Source, name: str, columns: list[str], worlds: set[int] | None) -> Iterator[pa.Table]:
    for shard in source.manifest.shards:
        if name not in TABLES and name not in shard.files:
            continue
        if worlds is None or any(shard.first <= world < shard.stop for world in worlds):
            yield _from_shard(source.folder, shard, name, columns, worlds)
    for world, path in source.segments.items():
        if worlds is None or world in worlds:
            tables = _tables_of(path)
            if name in tables:
                yield tables[name].select(columns)


def _from_shard(folder: Path, shard: Shard, name: str, columns: list[str], worlds: set[int] | None) -> pa.Table:
    """Read a shard's table; of a grouped one, only the groups of the worlds that are asked for."""
    path = shard.files[name].locate(folder)
    hint = "restore it from a copy, or collect the tournament again"
    with (
        reading(path, RecordsDamagedError, "the manifest names it as a complete file", hint),
        pq.ParquetFile(path) as file,
    ):
        # what the file lacks of the columns is filled below
        present = [column for column in columns if column in file.schema_arrow.names]
        if worlds is None or not ALL_TABLES[name].grouped:
            table = file.read(present)
        else:
            groups = [group for group, world in enumerate(shard.worlds) if world in worlds]
            table = file.read_row_groups(groups, present)
        if worlds is not None and not ALL_TABLES[name].grouped:
            table = table.filter(pc.is_in(table["world"], pa.array(sorted(worlds), pa.int32())))
        return table if len(present) == len(columns) else conform(table, name).select(columns)


def _ranges(worlds: Sequence[int]) -> str:
    return f"{min(worlds)} to {max(worlds)}" if worlds else "none"
