"""Shards become the arrays of a dataset, in order and one at a time: memory does not grow with the dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from apexrl.runs.atomic import atomic_file
from litaagent_std.hrl_xf.data_pipeline.extraction.world_samples import Arrays
from litaagent_std.hrl_xf.data_pipeline.returns import SeatReturns, seat_returns
from litaagent_std.hrl_xf.data_pipeline.selection import ChosenWorld
from litaagent_std.hrl_xf.data_pipeline.shards import read_shard, shard_path, shard_rows
from litaagent_std.records.reader import Records, WorldKey

__all__ = ["Counts", "gather", "write_arrays"]


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
