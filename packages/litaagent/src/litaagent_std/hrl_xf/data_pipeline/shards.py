"""Shards: the samples of one world in one file, and the arrays of a dataset gathered from them.

Worlds are read a few at a time, and each becomes a shard, written whole or not at all. Shards are then appended to the
arrays of the dataset in order, one at a time, so memory does not grow with the dataset.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa

from apexrl.runs.atomic import atomic_file
from litaagent_std.hrl_xf.data_pipeline.extraction.columns import ints
from litaagent_std.hrl_xf.data_pipeline.extraction.labels import SeatReturns, seat_returns
from litaagent_std.hrl_xf.data_pipeline.extraction.world_samples import (
    Arrays,
    WorldSamples,
    whole_histories,
    world_samples,
)
from litaagent_std.hrl_xf.data_pipeline.options import Labels
from litaagent_std.hrl_xf.data_pipeline.selection import ChosenWorld
from litaagent_std.records.reader import Records, WorldKey, open_records
from litaagent_std.records.world import WorldRecord

__all__ = [
    "Counts",
    "ShardTask",
    "gather",
    "make_shards",
    "read_shard",
    "read_worlds",
    "shard_path",
    "shard_rows",
    "write_arrays",
]

_TABLES: Final = ("worlds", "factories", "markets", "days", "negotiations", "turns", "contracts", "reports")
"""Tables that samples are made from."""


@dataclass(frozen=True, slots=True)
class ShardTask:
    """Worlds of one folder of records to turn into shards.

    Attributes:
        records: The folder of records.
        worlds: The worlds with their place in the dataset.
        folder: Where the shards go.
        labels: What counts as L2's goal.
        horizon: Delivery days after today to make room for; the league's own when None.
    """

    records: str
    worlds: tuple[tuple[int, ChosenWorld], ...]
    folder: str
    labels: Labels
    horizon: int | None


def shard_path(folder: Path, place: int) -> Path:
    """Return where a world's shard is kept."""
    return folder / f"{place:06}.shard"


def make_shards(task: ShardTask) -> int:
    """Make the shards of a task that are not there yet; return how many were made."""
    folder = Path(task.folder)
    todo = [(place, world) for place, world in task.worlds if not shard_path(folder, place).exists()]
    if not todo:
        return 0
    for (place, world), record in zip(todo, read_worlds(task.records, [world for _, world in todo]), strict=True):
        samples = world_samples(record, world.seats, labels=task.labels, horizon=task.horizon)
        _write(shard_path(folder, place), samples)
    return len(todo)


def read_worlds(folder: str, worlds: Sequence[ChosenWorld]) -> list[WorldRecord]:
    """Read several worlds of a folder at once: tables that hold many worlds are then read once."""
    records = open_records(folder)
    keys = [world.key._replace(source=0) for world in worlds]
    parts = {name: _by_world(records.table(name, keys=keys).drop_columns(["source"]), keys) for name in _TABLES}
    return [WorldRecord({name: parts[name][place] for name in _TABLES}) for place in range(len(keys))]


def _by_world(table: pa.Table, keys: Sequence[WorldKey]) -> list[pa.Table]:
    """Return the rows of each world; rows of a world stand together."""
    number = ints(table["world"])
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    ends = [*starts[1:].tolist(), len(number)]
    places = {int(number[low]): (low, high - low) for low, high in zip(starts.tolist(), ends, strict=True)}
    return [table.slice(*places.get(key.world, (0, 0))).combine_chunks() for key in keys]


def _write(path: Path, samples: WorldSamples) -> None:
    """Write a shard: a line of JSON that names the arrays, then the arrays one after the other."""
    arrays = {f"macro.{name}": values for name, values in samples.macro.items()}
    arrays |= {f"micro.{name}": values for name, values in samples.micro.items()}
    arrays["offers"] = samples.offers
    header = {
        "mornings": len(samples.macro["day"]),
        "actions": len(samples.micro["op"]),
        "skipped": samples.skipped,
        "arrays": [[name, values.dtype.str, values.shape] for name, values in arrays.items()],
    }
    with atomic_file(path) as file:
        file.write(json.dumps(header).encode() + b"\n")
        for values in arrays.values():
            file.write(np.ascontiguousarray(values).data)


def shard_rows(path: Path) -> tuple[int, int, int]:
    """Return the number of mornings, of actions and of skipped mornings in a shard."""
    with path.open("rb") as file:
        header = json.loads(file.readline())
    return header["mornings"], header["actions"], header["skipped"]


def read_shard(path: Path, n_rounds: int, *, actions: bool) -> tuple[Arrays, Arrays]:
    """Read the arrays of a shard: those of mornings and, if asked for, those of actions with whole histories."""
    found: Arrays = {}
    with path.open("rb") as file:
        for name, kind, shape in json.loads(file.readline())["arrays"]:
            if not actions and not name.startswith("macro."):
                break
            found[name] = np.fromfile(file, kind, math.prod(shape)).reshape(shape)
    macro = {name.removeprefix("macro."): array for name, array in found.items() if name.startswith("macro.")}
    micro = {name.removeprefix("micro."): array for name, array in found.items() if name.startswith("micro.")}
    return macro, whole_histories(micro, found["offers"], n_rounds) if actions else {}


@dataclass(frozen=True, slots=True)
class Counts:
    """What was gathered.

    Attributes:
        mornings: Rows of the macro arrays.
        actions: Rows of the micro arrays.
        skipped: Mornings that were left out.
        shapes: Shape of each array, by half and name.
    """

    mornings: int
    actions: int
    skipped: int
    shapes: dict[str, dict[str, list[int]]]


def gather(records: Records, worlds: Sequence[ChosenWorld], shards: Path, target: Path) -> Counts:
    """Write all arrays of a dataset from its shards."""
    rows = [shard_rows(shard_path(shards, place)) for place in range(len(worlds))]
    mornings, actions, skipped = (sum(row[part] for row in rows) for part in range(3))
    returns = _Returns(records, worlds)
    parts = (_completed(worlds, shards, returns, half=half) for half in (0, 1))
    shapes = {
        name: write_arrays(target / name, total, part)
        for name, total, part in zip(("macro", "micro"), (mornings, actions), parts, strict=True)
    }
    return Counts(mornings, actions, skipped, shapes)


class _Returns:
    """Returns of seats by configuration, the latest configurations kept."""

    def __init__(self, records: Records, worlds: Sequence[ChosenWorld]) -> None:
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
        self._known: dict[tuple[int, int], SeatReturns] = {}

    def of(self, world: ChosenWorld) -> SeatReturns:
        key = (world.config_seed, self._days[world.key])
        if key not in self._known:
            self._known = dict(list(self._known.items())[-7:])
            self._known[key] = seat_returns(self._records, self._worlds[key])
        return self._known[key]


def _completed(worlds: Sequence[ChosenWorld], shards: Path, returns: _Returns, *, half: int) -> Iterator[Arrays]:
    """Yield the shards' macro or micro arrays with what only the whole dataset knows."""
    first = 0
    for place, world in enumerate(worlds):
        macro, micro = read_shard(shard_path(shards, place), world.n_rounds, actions=bool(half))
        returns_to_go, day, seat = macro["return_to_go"].astype(np.float64), macro["day"], macro["factory"]
        norm = returns.of(world).normalised(returns_to_go, day.astype(int), seat.astype(int)).astype(np.float32)
        count = len(day)
        if half:
            micro["return_norm"] = norm[micro["day_row"]]
            micro["day_row"] = micro["day_row"] + first
            arrays, rows = micro, len(micro["op"])
        else:
            macro["return_norm"] = norm
            arrays, rows = macro, count
        arrays["config"] = np.full(rows, world.config, np.int32)
        arrays["world"] = np.full(rows, place, np.int32)
        first += count
        yield arrays


def write_arrays(folder: Path, total: int, parts: Iterable[Mapping[str, np.ndarray]]) -> dict[str, list[int]]:
    """Write arrays that come in pieces, each to its own file.

    Args:
        folder: Where they go.
        total: Rows of all pieces together.
        parts: The pieces; all have the same names and types.

    Returns:
        The shape of each array.
    """
    shapes: dict[str, list[int]] = {}
    with ExitStack() as open_files:
        files: dict[str, BinaryIO] = {}
        for part in parts:
            for name, values in part.items():
                if name not in files:
                    files[name] = open_files.enter_context(atomic_file(folder / f"{name}.npy"))
                    shapes[name] = [total, *values.shape[1:]]
                    _write_header(files[name], values, total)
                files[name].write(np.ascontiguousarray(values).data)
    return dict(sorted(shapes.items()))


def _write_header(file: BinaryIO, values: np.ndarray, total: int) -> None:
    header = {
        "descr": np.lib.format.dtype_to_descr(values.dtype),
        "fortran_order": False,
        "shape": (total, *values.shape[1:]),
    }
    np.lib.format.write_array_header_2_0(file, header)
