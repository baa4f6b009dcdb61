"""goal_hat: the goals that L3 trains with, predicted out of fold.

The training configurations are divided into folds; the goals of a fold come from an L2 that was trained on the others.
Validation and test rows, which no network trains on, get the goals of the L2 that is shipped.

Goals are computed in chunks of worlds and written into arrays on disk; ``progress.json`` says which chunks are done,
so a killed backfill resumes with the next one and gives the same bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from apexrl.runs.atomic import ensure_folder
from apexrl.runs.digest import digest_file
from apexrl.runs.errors import ReadFailedError
from apexrl.runs.reading import contained, read_sealed, reading, verify_file, write_sealed
from apexrl.runs.session import Session
from litaagent_std.hrl_xf.epochs import Interrupted
from litaagent_std.hrl_xf.training.data import (
    Batches,
    DataError,
    GoalHat,
    MacroRows,
    Table,
    TrainingData,
    batch_order,
    rows_of,
)
from litaagent_std.policy.arrays import Array, Floats32, Ints

__all__ = ["SHIPPED", "Backfill", "fold_rows", "folds_of", "predict_days", "world_chunks"]

logger = logging.getLogger(__name__)

_ARRAYS = ("goal_hat_q", "goal_hat_p")
_MANIFEST = "manifest.json"
_PROGRESS = "progress.json"


def world_chunks(world: Array, per_chunk: int) -> list[Ints]:
    """Return the rows of each chunk of worlds."""
    worlds, number = np.unique(world, return_inverse=True)
    chunks = -(-len(worlds) // per_chunk)
    order = np.argsort(number, kind="stable")  # rows by world
    # each chunk is a range of the sorted rows
    edges = np.searchsorted(number[order], [per_chunk * k for k in range(chunks + 1)])
    return [np.sort(order[low:high]) for low, high in pairwise(edges)]


@torch.no_grad()
def predict_days(
    model: nn.Module, data: TrainingData, rows: Ints, batch_size: int, device: torch.device
) -> list[Floats32]:
    """Return a network's outputs for days, an array for each output, in the order of the rows."""
    model.to(device).eval()
    loader = Batches(MacroRows(data))
    outputs_by_batch: list[list[Floats32]] = []
    for tensors in loader(batch_order(rows, batch_size, 0, "", None), device):
        outputs = model(MacroRows.batch(tensors).day)
        parts = outputs if isinstance(outputs, tuple) else (outputs,)
        outputs_by_batch.append([part.cpu().numpy() for part in parts])
    return [np.concatenate(parts) for parts in zip(*outputs_by_batch, strict=True)]


@dataclass(frozen=True, kw_only=True)
class Backfill:
    """Computation of goal_hat.

    Attributes:
        data: The dataset.
        folder: Folder of the arrays.
        folds: The fold of every day.
        model_of: The network of each fold.
        made_from: Digests of the networks' weights, by fold.
        world_chunk: Worlds per chunk.
        batch_size: Rows per batch.
        device: Device of the networks.
        session: The run's session, which may ask to stop.
    """

    data: TrainingData
    folder: Path
    folds: Ints
    model_of: Callable[[int], nn.Module]
    made_from: Mapping[str, Any]
    world_chunk: int
    batch_size: int
    device: torch.device
    session: Session

    def run(self) -> GoalHat:
        """Compute the missing chunks, and open the result."""
        ensure_folder(self.folder)
        manifest = {
            "format": "litaagent.backfill",
            "dataset": self.data.digest,
            "made_from": dict(self.made_from),
            "world_chunk": self.world_chunk,
            "batch_size": self.batch_size,
            "rows": len(self.folds),
        }
        chunks = world_chunks(np.asarray(self.data.macro["world"]), self.world_chunk)
        arrays, done = self._arrays(manifest)
        for number in range(done, len(chunks)):
            if self.session.should_stop:
                raise Interrupted(f"backfill: stopped at chunk {number}; run the same command again to resume")
            self._fill(arrays, chunks[number])
            for array in arrays:
                array.flush()
            is_last = number + 1 == len(chunks)
            digests = {name: digest_file(self.folder / f"{name}.npy") for name in _ARRAYS if is_last}
            write_sealed(self.folder / _PROGRESS, {"chunks": number + 1, "digests": digests})
            logger.info("backfill: chunk %d/%d, %d days", number + 1, len(chunks), len(chunks[number]))
        return GoalHat(*(np.load(self.folder / f"{name}.npy", mmap_mode="r") for name in _ARRAYS))

    def _arrays(self, manifest: Mapping[str, Any]) -> tuple[list[np.memmap[Any, Any]], int]:
        path = self.folder / _MANIFEST
        shape = self.data.macro["goal_q"].shape
        try:
            with reading(path):
                if read_sealed(path) == manifest:
                    return self._resumed()
        except (FileNotFoundError, ReadFailedError) as error:
            if path.exists():
                logger.warning("backfill: computed again, because %s", error)
        for name in (_MANIFEST, _PROGRESS):
            (self.folder / name).unlink(missing_ok=True)
        fresh = [
            np.lib.format.open_memmap(self.folder / f"{name}.npy", mode="w+", dtype=np.float32, shape=shape)
            for name in _ARRAYS
        ]
        write_sealed(path, manifest)
        return fresh, 0

    def _resumed(self) -> tuple[list[np.memmap[Any, Any]], int]:
        """Open what an earlier start left, with the number of its chunks; whole arrays have digests."""
        progress = self.folder / _PROGRESS
        state: dict[str, Any] = read_sealed(progress) if progress.exists() else {"chunks": 0}
        for name, digest in state.get("digests", {}).items():
            verify_file(contained(self.folder, f"{name}.npy"), digest)
        opened = [np.lib.format.open_memmap(self.folder / f"{name}.npy", mode="r+") for name in _ARRAYS]
        return opened, int(state["chunks"])

    def _fill(self, arrays: list[np.memmap[Any, Any]], rows: Ints) -> None:
        for fold in np.unique(self.folds[rows]).tolist():
            selected = rows[self.folds[rows] == fold]
            goals = predict_days(self.model_of(fold), self.data, selected, self.batch_size, self.device)
            for array, values in zip(arrays, goals, strict=True):
                array[selected] = values


logger = logging.getLogger(__name__)

SHIPPED = -1
"""Fold number of the rows that the shipped network predicts."""


def folds_of(macro: Table, count: int, seed: int) -> Ints:
    """Return the fold of every day, `SHIPPED` for validation and test.

    Folds are whole configurations. If there is only one, they are worlds, and if there is only one world, factories;
    both are logged as warnings, because a fold has then seen the same market as the rows that it predicts.

    Args:
        macro: The days.
        count: Maximal number of folds.
        seed: Seed of the assignment.

    Raises:
        DataError: If there is nothing to divide.
    """
    rows = rows_of(macro, "train")
    folds = np.full(len(macro["config"]), SHIPPED, np.int64)
    units = _units(macro, rows)
    distinct = np.unique(units)
    order = np.random.default_rng(seed).permutation(len(distinct))
    fold_of_unit = np.empty(len(distinct), np.int64)
    fold_of_unit[order] = np.arange(len(distinct)) % min(count, len(distinct))
    folds[rows] = fold_of_unit[np.searchsorted(distinct, units)]
    return folds


def _units(macro: Table, rows: Ints) -> Ints:
    """Return what folds are made of: the number of each row's configuration, world or factory."""
    config, world, factory = (np.asarray(macro[name][rows], np.int64) for name in ("config", "world", "factory"))
    for name, units in (("configuration", config), ("world", world), ("factory", world * 10_000 + factory)):
        if len(np.unique(units)) > 1:
            if name != "configuration":
                logger.warning("there is one configuration to train on: folds are made of each %s instead", name)
            return units
    raise DataError(
        "all training rows are of one factory",
        "goals of L3 are predicted out of fold, so there must be something to leave out",
        "collect at least two factories, better two configurations",
    )


def fold_rows(folds: Ints, fold: int) -> tuple[Ints, Ints]:
    """Return the rows that the network of a fold trains on, and the rows that it predicts."""
    if fold == SHIPPED:
        return np.flatnonzero(folds >= 0), np.flatnonzero(folds == SHIPPED)
    return np.flatnonzero((folds >= 0) & (folds != fold)), np.flatnonzero(folds == fold)
