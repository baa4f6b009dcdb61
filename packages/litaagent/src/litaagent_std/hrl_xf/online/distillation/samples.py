"""Inputs of each layer of a teacher in worlds that it plays, split by configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from apexrl.runs.atomic import atomic_file
from apexrl.runs.reading import read_npz, reading
from litaagent_std.hrl_xf.online.config import Layer
from litaagent_std.hrl_xf.online.distillation.config import DistillConfig
from litaagent_std.hrl_xf.online.hierarchy.play import play_worlds
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.hierarchy.rows import day_size, thread_sizes, weight_size
from litaagent_std.hrl_xf.online.jobs import Job
from litaagent_std.hrl_xf.online.opponents import OpponentPool
from litaagent_std.hrl_xf.online.rollout import SeatRollout
from litaagent_std.hrl_xf.online.worlds import WorldPlan, draw_world, training_seed
from litaagent_std.hrl_xf.rewards import DayWeights
from litaagent_std.policy.arrays import Floats32
from litaagent_std.world.setup import HORIZON

__all__ = ["Inputs", "Part", "collect", "jobs_of", "part_of", "read_inputs", "write_inputs"]

Inputs = dict[Layer, Floats32]
"""Flat observations of each layer [n, in], see `hierarchy.rows`."""
Part = Literal["train", "validation", "held_out"]

_FIRST: Final = 1 << 31
"""Index of the first world within a seed's block, beyond those of any training run."""
_SIZES: Final[Mapping[Layer, int]] = {
    "l2": day_size(HORIZON),
    "l3": sum(thread_sizes(HORIZON)),
    "l4": weight_size(),
}
_VALIDATION: Final = 5
"""Every fifth of the worlds to learn from is for validation."""


def part_of(cfg: DistillConfig, world: int) -> Part:
    """Return the part of a world; every world is a configuration of its own, so none is in two parts."""
    if world >= cfg.worlds:
        return "held_out"
    return "validation" if world % _VALIDATION == min(_VALIDATION, cfg.worlds) - 1 else "train"


def jobs_of(cfg: DistillConfig, teacher: Hierarchy) -> list[Job]:
    """Return all worlds: those to learn from with exploration, held-out ones without."""
    pool = OpponentPool(cfg.pool)
    jobs = []
    for world in range(cfg.worlds + cfg.held_out):
        rng = np.random.default_rng(np.random.SeedSequence([cfg.seed, 2, world]))
        plan = WorldPlan(
            seed=training_seed(cfg.seed, _FIRST + world), days=cfg.days, levels=cfg.levels, opponents=pool.draw(rng)
        )
        explores = part_of(cfg, world) != "held_out"
        jobs.append(Job(plan, teacher, world if explores else None))
    return jobs


def collect(job: Job) -> Inputs:
    """Play a world and return the inputs of each layer; runs in a worker."""
    [rollout] = play_worlds([draw_world(job.plan)], job.policies, DayWeights(), [job.rng_seed], record=True)
    return {layer: _concatenate(layer, [_seat_inputs(layer, seat) for seat in rollout.seats]) for layer in _SIZES}


def _seat_inputs(layer: Layer, seat: SeatRollout) -> Floats32 | None:
    if layer == "l2":
        return seat.days.views if len(seat.days.day) else None
    return None if seat.rounds is None else seat.rounds.views.get(layer)


def _concatenate(layer: Layer, parts: Sequence[Floats32 | None]) -> Floats32:
    """Concatenate rows; an empty array of the right width if there are none."""
    return np.concatenate([np.zeros((0, _SIZES[layer]), np.float32), *(part for part in parts if part is not None)])


def write_inputs(path: Path, inputs: Inputs) -> None:
    """Write a world's inputs atomically."""
    named: dict[str, Any] = {str(layer): rows for layer, rows in inputs.items()}
    with atomic_file(path) as file:
        np.savez_compressed(file, **named)


def read_inputs(paths: Mapping[int, Path], layer: Layer) -> Floats32:
    """Read a layer's inputs of several worlds, one after the other [n, in].

    Raises:
        ReadFailedError: If a file is not what was written.
    """
    parts: list[Floats32 | None] = []
    for _, path in sorted(paths.items()):
        with reading(path, hint="remove the file; the same command then plays that world again"):
            rows = np.asarray(read_npz(path)[layer], np.float32)
            if rows.shape[1:] != (_SIZES[layer],):
                raise ValueError(f"inputs of {layer} have the shape {rows.shape}, not (n, {_SIZES[layer]})")
            parts.append(rows)
    return _concatenate(layer, parts)
