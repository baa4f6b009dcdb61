"""SQL queries on a folder of records, run by DuckDB on the Parquet files.

Only the columns and row groups that a query needs are read: a query about one world opens one file per table and reads
that world's group. Worlds that are in no shard yet are read from their segments. A folder that is being written can be
queried at any time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from litaagent_std.records.schema import ALL_TABLES, TABLES, arrow_schema
from litaagent_std.records.storage.manifest import Manifest, RecordsDamagedError, Shard
from litaagent_std.records.storage.segment import read_segment
from litaagent_std.records.storage.store import segments_in

__all__ = ["Warehouse"]

_GLOB: Final = re.compile(r"([*?\[])")
_QUERY_ERRORS: Final = (duckdb.ParserException, duckdb.CatalogException)
_KEPT_SEGMENTS: Final = 400
Row = dict[str, Any]


class Warehouse:
    """The records of one tournament as they are now.

    Args:
        folder: The folder with the manifest.

    Attributes:
        manifest: The folder's manifest.
        damaged: Segments that cannot be read, with the reason.

    Raises:
        NoRecordsError: If there are no records that this release can read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        waiting = segments_in(folder)  # before the manifest: what goes into a shard in between is then in both
        self.manifest = Manifest.read(folder)
        gathered = {world for shard in self.manifest.shards for world in range(shard.first, shard.stop)}
        self.damaged: dict[int, str] = {}
        self._segments: dict[int, dict[str, pa.Table]] = {}
        for world, path in waiting.items():
            if world not in gathered:
                self._add_segment(world, path)

    @property
    def worlds(self) -> list[int]:
        """Finished worlds in ascending order."""
        return sorted({world for shard in self.manifest.shards for world in shard.worlds} | self._segments.keys())

    def ask(
        self, question: str, tables: Sequence[str], values: Sequence[Any] = (), world: int | None = None
    ) -> list[Row]:
        """Run a SQL query.

        Args:
            question: A query on `tables` with ``?`` for values.
            tables: The tables that it reads; each is available as a view.
            values: Values for the question marks.
            world: If the query is about one world, its number; only its files are opened.

        Raises:
            RecordsDamagedError: If a file is missing or not what was written.
        """
        with duckdb.connect() as connection:
            for name in tables:
                self._create_view(connection, name, world)
            try:
                answer = connection.execute(question, list(values))
                columns = [column[0] for column in answer.description or ()]
                return [dict(zip(columns, row, strict=True)) for row in answer.fetchall()]
            except _QUERY_ERRORS:
                raise
            except duckdb.Error as error:
                raise _damaged(str(error)) from error

    def _create_view(self, connection: duckdb.DuckDBPyConnection, name: str, world: int | None) -> None:
        """Create a view of a table: shards and segments together."""
        if name not in ALL_TABLES:
            raise KeyError(f"there is no table {name!r}; choose one of {list(ALL_TABLES)}")
        shards = [shard for shard in self.manifest.shards if world is None or shard.first <= world < shard.stop]
        segments = [tables for own, tables in self._segments.items() if world is None or own == world]
        # an optional table is in some files only; columns that files lack are empty
        files = [_literal(self._path(shard, name)) for shard in shards if name in TABLES or name in shard.files]
        waiting = [tables[name] for tables in segments if name in tables]
        connection.register(f"waiting_{name}", pa.concat_tables([arrow_schema(name).empty_table(), *waiting]))
        parts = [f"SELECT * FROM waiting_{name}"]
        if files:
            parts.append(f"SELECT * FROM read_parquet([{', '.join(files)}], union_by_name=true)")
        where = "" if world is None else f" WHERE world = {int(world)}"
        query = " UNION ALL BY NAME ".join(part + where for part in parts)
        try:
            connection.execute(f"CREATE TEMP VIEW {name} AS {query}")
        except duckdb.Error as error:
            raise _damaged(str(error)) from error

    def _path(self, shard: Shard, name: str) -> Path:
        """Return the path of a shard's file, which is inside the folder and as it was written."""
        return shard.files[name].locate(self.folder)

    def _add_segment(self, world: int, path: Path) -> None:
        try:
            tables = _decoded(path)
        except FileNotFoundError:
            return  # it has just been moved into a shard; the next query reads it there
        except RecordsDamagedError as error:
            self.damaged[world] = str(error)
            return
        if tables is not None:
            self._segments[world] = tables


def _decoded(path: Path) -> dict[str, pa.Table] | None:
    state = path.stat()
    return _tables_of(str(path), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=_KEPT_SEGMENTS)
def _tables_of(path: str, modified: int, size: int) -> dict[str, pa.Table] | None:
    """Return a segment's tables, None for a world that failed; kept, so that a live page decodes each segment once."""
    del modified, size  # part of the key: another state of the file is read again
    return read_segment(Path(path)).tables


def _literal(path: Path) -> str:
    """Return a path as a DuckDB string literal, with glob characters escaped."""
    return "'" + _GLOB.sub(r"[\1]", str(path)).replace("'", "''") + "'"


def _damaged(why: str) -> RecordsDamagedError:
    return RecordsDamagedError(
        f"the records cannot be read: {why.splitlines()[0]}",
        "every file that the manifest names must be there, as it was written",
        "`lita records PATH --verify` names the file; restore it from a copy, or collect the tournament again",
    )
