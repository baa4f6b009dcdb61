"""Where a tournament's records are kept while they grow.

::

    records/
      manifest.json            the complete shards; see `manifest`
      segments/000017.segment  finished worlds whose shard is not complete yet
      turns/00000.parquet      a shard's file, one folder per table

Every finished world is a segment first. When all worlds of a shard have an outcome, they are written in the
order of their numbers, the manifest is replaced, and the segments go. A kill at any moment leaves a folder from
which `RecordStore` resumes: what was finished stays finished, and the shards come out the same, byte by byte,
in whatever order worlds finished.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from apexrl.runs.atomic import atomic_path, ensure_folder, remove_leftovers, write_bytes
from apexrl.runs.digest import digest_file, to_plain
from litaagent_std.records.schema import ALL_TABLES, TABLES, arrow_schema, conform
from litaagent_std.records.storage.manifest import MANIFEST_NAME, FileEntry, Manifest, NoRecordsError, Shard
from litaagent_std.records.storage.segment import pack_world, read_segment

__all__ = ["SHARD_SIZE", "RecordStore", "segment_path", "segments_in"]

SHARD_SIZE: Final = 100
"""Worlds per shard: many enough for few files, few enough to appear in time."""

_ZSTD_LEVEL: Final = 6
_SEGMENTS: Final = "segments"
_NAME: Final = re.compile(r"^(\d{6,})\.segment$")


def segment_path(folder: Path, world: int) -> Path:
    """Where a world's segment is kept in a folder of records."""
    return folder / _SEGMENTS / f"{world:06}.segment"


def segments_in(folder: Path) -> dict[int, Path]:
    """Return the segments in a folder of records, by world."""
    try:
        names = sorted(path for path in (folder / _SEGMENTS).iterdir())
    except FileNotFoundError:
        return {}
    return {int(match[1]): path for path in names if (match := _NAME.match(path.name))}


def _shard_name(table: str, number: int) -> str:
    return f"{table}/{number:05}.parquet"


def _write_group(writer: pq.ParquetWriter, table: pa.Table) -> None:
    writer.write_table(table.combine_chunks(), row_group_size=max(1, table.num_rows))


class RecordStore:
    """The writer of a folder of records; one at a time.

    Args:
        folder: The folder, created if missing.
        source: What the worlds are made from, in plain values; goes into the manifest.
        n_worlds: Worlds of the plan.
        shard_size: Worlds per shard.
        reasons: Whether worlds hold reasons, too.

    Raises:
        NoRecordsError: If the folder holds the records of something else.
    """

    def __init__(
        self,
        folder: Path,
        source: Mapping[str, Any],
        n_worlds: int,
        *,
        shard_size: int = SHARD_SIZE,
        reasons: bool = False,
    ) -> None:
        self.folder = ensure_folder(folder)
        self._tables = ALL_TABLES if reasons else TABLES
        plain = to_plain(dict(source))
        assert isinstance(plain, dict)
        wanted = Manifest(plain, n_worlds, shard_size)
        if (folder / MANIFEST_NAME).exists():
            self.manifest = Manifest.read(folder)
            if Manifest(self.manifest.source, self.manifest.n_worlds, self.manifest.shard_size) != wanted:
                raise NoRecordsError(
                    f"{str(folder)!r} holds the records of another tournament",
                    "a folder of records belongs to one plan",
                    "choose another folder",
                )
        else:
            self.manifest = wanted
            wanted.write(folder)
        self._clean_up()
        self._outcomes = set(segments_in(folder))
        for shard in self.manifest.shards:
            self._outcomes.update(range(shard.first, shard.stop))
        for number in range(self.manifest.n_shards):
            self._complete(number)

    @property
    def outcomes(self) -> frozenset[int]:
        """Worlds that are finished or failed for good."""
        return frozenset(self._outcomes)

    def add(self, world: int, packed: bytes) -> None:
        """Keep a world's outcome, as `segment.pack_world` or `segment.pack_failure` packed it.

        Raises:
            ValueError: If the world is not of the plan, or has an outcome.
            WriteFailedError: If the disk does not take it; what was kept before is untouched.
        """
        if not 0 <= world < self.manifest.n_worlds:
            raise ValueError(f"world {world} is not of the plan, which has {self.manifest.n_worlds} worlds")
        if world in self._outcomes:
            raise ValueError(f"world {world} has an outcome; no world is recorded twice")
        write_bytes(segment_path(self.folder, world), packed)
        self._outcomes.add(world)
        self._complete(world // self.manifest.shard_size)

    def forget_failed(self) -> list[int]:
        """Take back the outcomes of worlds that failed, so that they can be played again; returns these worlds.

        A shard with failed worlds becomes segments again before the manifest lets it go, so a kill loses nothing.
        """
        worlds = [world for world, path in segments_in(self.folder).items() if read_segment(path).failure is not None]
        for world in worlds:
            segment_path(self.folder, world).unlink()
        for shard in [shard for shard in self.manifest.shards if shard.failed]:
            for world in shard.worlds:
                tables = {name: self._table_of(shard, name, world) for name in shard.files}
                write_bytes(segment_path(self.folder, world), pack_world(world, tables))
            self.manifest = self.manifest.without_shard(shard)
            self.manifest.write(self.folder)
            worlds += shard.failed
        self._outcomes -= set(worlds)
        return sorted(worlds)

    def _table_of(self, shard: Shard, name: str, world: int) -> pa.Table:
        table = conform(pq.read_table(shard.files[name].locate(self.folder)), name)
        return table.filter(pc.equal(table["world"], world))

    def _clean_up(self) -> None:
        """Remove what killed writers left: temporary files, and segments of shards that are complete."""
        for folder in (self.folder, self.folder / _SEGMENTS, *(self.folder / name for name in ALL_TABLES)):
            remove_leftovers(folder)
        for shard in self.manifest.shards:
            self._remove_segments(shard.first, shard.stop)

    def _complete(self, number: int) -> None:
        """Gather a shard if all its worlds have an outcome and it is not there yet."""
        first, stop = self.manifest.bounds(number)
        done = any(shard.number == number for shard in self.manifest.shards)
        if done or any(world not in self._outcomes for world in range(first, stop)):
            return
        failed = self._write_shard(number, range(first, stop))
        files = {name: self._entry(name, number) for name in self._tables}
        self.manifest = self.manifest.with_shard(Shard(number, first, stop, files, failed))
        self.manifest.write(self.folder)
        self._remove_segments(first, stop)

    def _write_shard(self, number: int, worlds: range) -> dict[int, str]:
        """Write the shard's files world by world; returns the worlds that failed, with the reason."""
        failed: dict[int, str] = {}
        small: dict[str, list[pa.Table]] = {name: [] for name, spec in self._tables.items() if not spec.grouped}
        with ExitStack() as files:
            writers = {name: files.enter_context(self._writer(name, number)) for name in self._tables}
            for world in worlds:
                segment = read_segment(segment_path(self.folder, world))
                if segment.failure is not None:
                    failed[world] = segment.failure
                if segment.tables is None:
                    continue
                for name in self._tables:
                    table = segment.tables.get(name, arrow_schema(name).empty_table())
                    if name in small:
                        small[name].append(table)
                    else:
                        _write_group(writers[name], table)
            for name, tables in small.items():
                _write_group(writers[name], pa.concat_tables([arrow_schema(name).empty_table(), *tables]))
        return failed

    @contextmanager
    def _writer(self, name: str, number: int) -> Iterator[pq.ParquetWriter]:
        schema = arrow_schema(name)
        # Text and small whole numbers repeat; measured values and places in the day's order hardly do.
        repeated = [f.name for f in schema if f.name not in ("turn", "decided") and not pa.types.is_floating(f.type)]
        with (
            atomic_path(self.folder / _shard_name(name, number)) as temporary,
            pq.ParquetWriter(
                temporary,
                schema,
                compression="zstd",
                compression_level=_ZSTD_LEVEL,
                version="2.6",
                data_page_version="2.0",
                use_dictionary=[*repeated, "relative_time"] if name == "turns" else repeated,
            ) as writer,
        ):
            yield writer

    def _entry(self, name: str, number: int) -> FileEntry:
        path = self.folder / _shard_name(name, number)
        rows = pq.read_metadata(path).num_rows
        return FileEntry(_shard_name(name, number), rows, path.stat().st_size, digest_file(path))

    def _remove_segments(self, first: int, stop: int) -> None:
        for world in range(first, stop):
            segment_path(self.folder, world).unlink(missing_ok=True)
        folder = self.folder / _SEGMENTS
        if self.manifest.complete and folder.exists() and not any(folder.iterdir()):
            folder.rmdir()
