"""Work in pieces: worlds are read a few at a time and each becomes a file of its own, whole or not at all."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from apexrl.runs.atomic import atomic_file
from litaagent_std.hrl_xf.data_pipeline.extraction.columns import ints
from litaagent_std.hrl_xf.data_pipeline.extraction.world_samples import (
    Arrays,
    WorldSamples,
    whole_histories,
    world_samples,
)
from litaagent_std.hrl_xf.data_pipeline.options import Labels
from litaagent_std.hrl_xf.data_pipeline.selection import ChosenWorld
from litaagent_std.records.reader import WorldKey, open_records
from litaagent_std.records.world import WorldRecord

__all__ = ["ShardTask", "make_shards", "read_shard", "read_worlds", "shard_path", "shard_rows"]

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
