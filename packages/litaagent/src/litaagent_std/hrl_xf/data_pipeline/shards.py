"""Shards: the samples of one world in one file, and the arrays of a dataset gathered from them.

Worlds are read a few at a time, and each becomes a shard, written whole or not at all by the process that builds the
dataset: workers send shards back, so they may be on other machines. Shards are then appended to the arrays of the
dataset in order, one at a time, so memory does not grow with the dataset.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa

from apexrl.runs.atomic import atomic_file, write_bytes
from apexrl.runs.reading import open_regular, read_bytes, reading
from litaagent_std.hrl_xf.data_pipeline.errors import DatasetError
from litaagent_std.hrl_xf.data_pipeline.extraction.labels import SeatReturns, seat_returns
from litaagent_std.hrl_xf.data_pipeline.extraction.world_samples import (
    Arrays,
    WorldSamples,
    pad_histories,
    samples_of_worlds,
)
from litaagent_std.hrl_xf.data_pipeline.options import Decisions, Labels
from litaagent_std.hrl_xf.data_pipeline.selection import SelectedWorld
from litaagent_std.records.columns import ints
from litaagent_std.records.reader import Records, WorldKey, open_records
from litaagent_std.records.world import WorldRecord

__all__ = [
    "Counts",
    "ShardTask",
    "WrittenArrays",
    "gather",
    "make_shards",
    "read_shard",
    "read_tables",
    "read_worlds",
    "shard_path",
    "shard_rows",
    "with_tables",
    "write_arrays",
    "write_shards",
]

_DIGEST: Final = hashlib.sha256().digest_size
_WANTED: Final = (
    "a shard is not changed while its dataset is built",
    "remove the dataset's folder and build it again",
)
_TABLES: Final = ("worlds", "factories", "markets", "days", "negotiations", "turns", "contracts", "reports")
"""Tables that samples are made from."""


@dataclass(frozen=True, slots=True)
class ShardTask:
    """Worlds of one folder of records to turn into shards.

    Attributes:
        records: The folder of records.
        worlds: The worlds with their index in the dataset.
        labels: What counts as L2's goal.
        horizon: Delivery days after today that the arrays hold; default: the league's horizon.
        reasons: Whether actions hold the recorded reasons of their agents, too.
        decisions: What counts as L3's decision.
        tables: Arrow streams of each world's tables, for workers on machines without the folder; see `with_tables`.
    """

    records: str
    worlds: tuple[tuple[int, SelectedWorld], ...]
    labels: Labels
    horizon: int | None
    reasons: bool = False
    decisions: Decisions = "taken"
    tables: tuple[dict[str, bytes], ...] | None = None

    @property
    def needs_reasons(self) -> bool:
        """Whether the recorded reasons must be read."""
        return self.reasons or self.decisions == "reasons"


def shard_path(folder: Path, index: int) -> Path:
    """Return the path of a world's shard."""
    return folder / f"{index:06}.shard"


def with_tables(task: ShardTask) -> ShardTask:
    """Return a task that carries what its worker would read."""
    read = read_worlds(task.records, [world for _, world in task.worlds], reasons=task.needs_reasons)
    return replace(task, tables=tuple({name: _stream(table) for name, table in one.tables.items()} for one in read))


def make_shards(task: ShardTask) -> list[bytes]:
    """Return the shards of a task's worlds, to be written by `write_shards`."""
    if task.tables is None:
        read = read_worlds(task.records, [world for _, world in task.worlds], reasons=task.needs_reasons)
    else:
        read = [WorldRecord({name: _table(data) for name, data in streams.items()}) for streams in task.tables]
    samples = samples_of_worlds(
        [(record, world.seats) for (_, world), record in zip(task.worlds, read, strict=True)],
        labels=task.labels,
        decisions=task.decisions,
        horizon=task.horizon,
        reasons=task.reasons,
    )
    return [_pack(made) for made in samples]


def write_shards(folder: Path, task: ShardTask, shards: Sequence[bytes]) -> None:
    """Write the shards of a task, each whole or not at all."""
    for (index, _), shard in zip(task.worlds, shards, strict=True):
        _write(shard_path(folder, index), shard)


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _table(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(data) as stream:
        return stream.read_all()


def read_worlds(folder: str, worlds: Sequence[SelectedWorld], *, reasons: bool = False) -> list[WorldRecord]:
    """Read several worlds of a folder at once, so that each table is read once."""
    names = (*_TABLES, "reasons") if reasons else _TABLES
    return read_tables(open_records(folder), [world.key._replace(source=0) for world in worlds], names)


def read_tables(records: Records, keys: Sequence[WorldKey], names: Sequence[str]) -> list[WorldRecord]:
    """Read some tables of several worlds at once."""
    parts = {name: _by_world(records.table(name, keys=keys).drop_columns(["source"]), keys) for name in names}
    return [WorldRecord({name: parts[name][index] for name in names}) for index in range(len(keys))]


def _by_world(table: pa.Table, keys: Sequence[WorldKey]) -> list[pa.Table]:
    """Return the rows of each world; rows of a world are contiguous."""
    number = ints(table["world"])
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    ends = [*starts[1:].tolist(), len(number)]
    slices = {int(number[low]): (low, high - low) for low, high in zip(starts.tolist(), ends, strict=True)}
    return [table.slice(*slices.get(key.world, (0, 0))).combine_chunks() for key in keys]


def _pack(samples: WorldSamples) -> bytes:
    """Return a shard: a line of JSON that names the arrays, their bytes in that order, and the digest of it all."""
    arrays = {f"macro.{name}": values for name, values in samples.macro.items()}
    arrays |= {f"micro.{name}": values for name, values in samples.micro.items()}
    arrays["offers"] = samples.offers
    header = {
        "mornings": len(samples.macro["day"]),
        "actions": len(samples.micro["op"]),
        "skipped": samples.skipped,
        "arrays": [[name, values.dtype.str, values.shape] for name, values in arrays.items()],
    }
    body = b"".join((json.dumps(header).encode(), b"\n", *(np.ascontiguousarray(v).data for v in arrays.values())))
    return body + hashlib.sha256(body).digest()


def _write(path: Path, shard: bytes) -> None:
    write_bytes(path, shard)


def shard_rows(path: Path) -> tuple[int, int, int]:
    """Return the number of days, of actions and of skipped days in a shard, after comparing it with its digest.

    Raises:
        DatasetError: If it is not what was written.
    """
    with reading(path, DatasetError, *_WANTED):
        data = read_bytes(path)
        if hashlib.sha256(memoryview(data)[:-_DIGEST]).digest() != data[-_DIGEST:]:
            raise ValueError("its content does not match its digest")
        header = json.loads(data[: data.index(b"\n")])
        return header["mornings"], header["actions"], header["skipped"]


def read_shard(path: Path, n_rounds: int, *, actions: bool) -> tuple[Arrays, Arrays]:
    """Read the arrays of a shard: those of days and, with ``actions``, those of actions with padded histories.

    Its digest was compared by `shard_rows`.
    """
    arrays: Arrays = {}
    with reading(path, DatasetError, *_WANTED), open_regular(path) as file:
        for name, kind, shape in json.loads(file.readline())["arrays"]:
            if not actions and not name.startswith("macro."):
                break
            arrays[name] = np.fromfile(file, kind, math.prod(shape)).reshape(shape)
    macro = {name.removeprefix("macro."): array for name, array in arrays.items() if name.startswith("macro.")}
    micro = {name.removeprefix("micro."): array for name, array in arrays.items() if name.startswith("micro.")}
    return macro, pad_histories(micro, arrays["offers"], n_rounds) if actions else {}


@dataclass(frozen=True, slots=True)
class Counts:
    """Sizes of the arrays of a dataset.

    Attributes:
        days: Rows of the macro arrays.
        actions: Rows of the micro arrays.
        skipped: Days that were left out.
        arrays: Shape and digest of each array, by half.
    """

    days: int
    actions: int
    skipped: int
    arrays: dict[str, WrittenArrays]


@dataclass(frozen=True, slots=True)
class WrittenArrays:
    """Arrays that were written.

    Attributes:
        shapes: Shape of each, by name.
        digests: SHA-256 of each file, by name.
    """

    shapes: dict[str, list[int]]
    digests: dict[str, str]


def gather(records: Records, worlds: Sequence[SelectedWorld], shards: Path, target: Path) -> Counts:
    """Write all arrays of a dataset from its shards."""
    rows = [shard_rows(shard_path(shards, index)) for index in range(len(worlds))]
    days, actions, skipped = (sum(row[part] for row in rows) for part in range(3))
    returns = _Returns(records, worlds)
    parts = (_completed(worlds, shards, returns, half=half) for half in (0, 1))
    arrays = {
        name: write_arrays(target / name, total, part)
        for name, total, part in zip(("macro", "micro"), (days, actions), parts, strict=True)
    }
    return Counts(days, actions, skipped, arrays)


class _Returns:
    """Returns of seats by configuration; the latest few configurations are cached."""

    def __init__(self, records: Records, worlds: Sequence[SelectedWorld]) -> None:
        self._records = records
        seeds = {world.config_seed for world in worlds}
        table = records.table("worlds", columns=["config_seed", "n_days"]).to_pylist()
        self._worlds: dict[tuple[int, int], list[WorldKey]] = {}
        self._days: dict[WorldKey, int] = {}
        for row in table:
            if row["config_seed"] in seeds:
                key = WorldKey(row["source"], row["world"])
                self._worlds.setdefault((row["config_seed"], row["n_days"]), []).append(key)
                self._days[key] = row["n_days"]
        self._cache: dict[tuple[int, int], SeatReturns] = {}

    def of_world(self, world: SelectedWorld) -> SeatReturns:
        key = (world.config_seed, self._days[world.key])
        if key not in self._cache:
            self._cache = dict(list(self._cache.items())[-7:])
            self._cache[key] = seat_returns(self._records, self._worlds[key])
        return self._cache[key]


def _completed(worlds: Sequence[SelectedWorld], shards: Path, returns: _Returns, *, half: int) -> Iterator[Arrays]:
    """Yield the shards' macro or micro arrays, completed with what depends on the whole dataset."""
    first = 0
    for index, world in enumerate(worlds):
        macro, micro = read_shard(shard_path(shards, index), world.n_rounds, actions=bool(half))
        returns_to_go, day, seat = macro["return_to_go"].astype(np.float64), macro["day"], macro["factory"]
        norm = returns.of_world(world).normalised(returns_to_go, day.astype(int), seat.astype(int)).astype(np.float32)
        count = len(day)
        if half:
            micro["return_norm"] = norm[micro["day_row"]]
            micro["day_row"] = micro["day_row"] + first  # from rows of this world to rows of the dataset
            arrays, rows = micro, len(micro["op"])
        else:
            macro["return_norm"] = norm
            arrays, rows = macro, count
        arrays["config"] = np.full(rows, world.config, np.int32)
        arrays["world"] = np.full(rows, index, np.int32)
        first += count
        yield arrays


class _Hashed:
    """A file that is hashed while it is written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._digest = file, hashlib.sha256()

    def write(self, data: bytes | memoryview) -> int:
        self._digest.update(data)
        return self._file.write(data)

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def write_arrays(folder: Path, total: int, parts: Iterable[Mapping[str, np.ndarray]]) -> WrittenArrays:
    """Write arrays that come in pieces, each to its own file.

    Args:
        folder: Folder of the arrays.
        total: Rows of all pieces together.
        parts: The pieces; all have the same names and types.

    Returns:
        The shape and the digest of each array.
    """
    shapes: dict[str, list[int]] = {}
    with ExitStack() as open_files:
        files: dict[str, _Hashed] = {}
        for part in parts:
            for name, values in part.items():
                if name not in files:
                    files[name] = _Hashed(open_files.enter_context(atomic_file(folder / f"{name}.npy")))
                    shapes[name] = [total, *values.shape[1:]]
                    _write_header(files[name], values, total)
                files[name].write(np.ascontiguousarray(values).data)
    return WrittenArrays(dict(sorted(shapes.items())), {name: files[name].hexdigest() for name in sorted(files)})


def _write_header(file: _Hashed, values: np.ndarray, total: int) -> None:
    header = {
        "descr": np.lib.format.dtype_to_descr(values.dtype),
        "fortran_order": False,
        "shape": (total, *values.shape[1:]),
    }
    buffer = io.BytesIO()
    np.lib.format.write_array_header_2_0(buffer, header)
    file.write(buffer.getvalue())
