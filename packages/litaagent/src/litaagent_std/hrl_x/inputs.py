"""Samples as matrices for the linear models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from litaagent_std.hrl_xf.data_pipeline import MacroDataset, MacroSample, MicroDataset, MicroSample
from litaagent_std.hrl_xf.data_pipeline.errors import BadSampleError
from litaagent_std.policy.arrays import Floats
from litaagent_std.policy.networks.linear import LATEST, latest

__all__ = ["MacroArrays", "MicroArrays", "macro_arrays", "micro_arrays"]


@dataclass(frozen=True, slots=True)
class MacroArrays:
    """Days as matrices.

    Attributes:
        state: Features, [k, n].
        goal: Goals in raw units, [k, 4, buckets].
        scale: Units of the goals, [k, 4].
    """

    state: Floats
    goal: Floats
    scale: Floats


@dataclass(frozen=True, slots=True)
class MicroArrays:
    """Actions as matrices.

    Attributes:
        inputs: Context, the latest offers and the baseline without units, [k, n].
        action: Operation, quantity, lead, price, [k, 4].
        baseline: The same of the baseline, [k, 4].
        scale: Units of quantity, lead and price, [k, 3].
    """

    inputs: Floats
    action: Floats
    baseline: Floats
    scale: Floats


Kind = TypeVar("Kind", MacroArrays, MicroArrays)


def macro_arrays(samples: Sequence[MacroSample]) -> MacroArrays:
    """Stack days; those of a dataset are read at once.

    Raises:
        BadSampleError: If there are none, or a value is not finite.
    """
    _check_some(samples)
    if isinstance(samples, MacroDataset):
        return _checked(_macro_of_dataset(samples))
    state, goal, scale = (
        np.stack([getattr(sample, name) for sample in samples]).astype(np.float64)
        for name in ("state_macro", "goal", "scale")
    )
    return _checked(MacroArrays(state, goal, scale))


def micro_arrays(samples: Sequence[MicroSample]) -> MicroArrays:
    """Stack actions; those of a dataset are read at once.

    Raises:
        BadSampleError: If there are none, or a value is not finite.
    """
    _check_some(samples)
    if isinstance(samples, MicroDataset):
        return _checked(_micro_of_dataset(samples))
    action, baseline, context, scale = (
        np.stack([getattr(sample, name) for sample in samples]).astype(np.float64)
        for name in ("action", "baseline", "context", "scale")
    )
    count = np.array([min(LATEST, len(sample.history)) for sample in samples])
    recent = np.zeros((len(samples), LATEST, samples[0].history.shape[1]))  # [k, LATEST, n_history], oldest first
    for row, sample in enumerate(samples):
        recent[row, : count[row]] = sample.history[len(sample.history) - count[row] :]
    return _checked(MicroArrays(_inputs(context, latest(recent, count), baseline, scale), action, baseline, scale))


def _inputs(context: Floats, recent: Floats, baseline: Floats, scale: Floats) -> Floats:
    ops = np.eye(3)[baseline[:, 0].astype(np.int64)]
    counter = np.maximum(0, baseline[:, 1:]) / scale
    return np.concatenate([context, recent.reshape(len(recent), -1), ops, counter], axis=1)


def _macro_of_dataset(samples: MacroDataset) -> MacroArrays:
    part, rows = samples.data.macro, samples.rows
    state = [part[name][rows].reshape(len(rows), -1) for name in ("x_static", "x_temporal", "x_role")]
    q, p, lines, price = (part[name][rows].astype(np.float64) for name in ("goal_q", "goal_p", "lines", "price"))
    goal = np.stack([q[:, 0], p[:, 0], q[:, 1], p[:, 1]], axis=1)
    scale = np.stack([lines, price[:, 0], lines, price[:, 1]], axis=1)
    return MacroArrays(np.concatenate(state, axis=1).astype(np.float64), goal, scale)


def _micro_of_dataset(samples: MicroDataset) -> MicroArrays:
    data, part, rows = samples.data, samples.data.micro, samples.rows
    context = np.concatenate([part[name][rows] for name in ("x_thread", "ranges", "x_partner")], axis=1)
    recent = latest(part["history"][rows], part["history_mask"][rows].sum(axis=1))
    action, baseline = (
        np.concatenate([part[op][rows][:, None], part[offer][rows]], axis=1).astype(np.float64)
        for op, offer in (("op", "offer"), ("baseline_op", "baseline"))
    )
    day = part["day_row"][rows]
    price = data.macro["price"][day, part["side"][rows].astype(np.int64)]
    scale = np.stack([data.macro["lines"][day], np.full(len(rows), max(1, data.league_horizon)), price], axis=1)
    return MicroArrays(_inputs(context.astype(np.float64), recent, baseline, scale), action, baseline, scale)


def _check_some(samples: Sequence[Any]) -> None:
    if not len(samples):
        raise BadSampleError("there are no samples", "a model needs at least one", "choose a split that has some")


def _checked(arrays: Kind) -> Kind:
    for entry in fields(arrays):
        name, values = entry.name, getattr(arrays, entry.name)
        if not np.isfinite(values).all():
            row = int(np.argwhere(~np.isfinite(values))[0][0])
            raise BadSampleError(f"{name} of sample {row} is not finite", "samples are finite", "leave it out")
    return arrays
