"""What the layers sampled, as rows of trajectories with flat observations.

A flat observation holds everything that the network reads, padded to fixed sizes, so that PPO can shuffle rows; the
actors of `learner` split it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from litaagent_std.hrl_xf.l2_manager import N_ROLE, N_STATIC, N_TEMPORAL
from litaagent_std.policy.arrays import Array, Floats32, Ints
from litaagent_std.policy.buckets import n_buckets
from litaagent_std.policy.features import THREAD_FEATURES
from litaagent_std.policy.networks.exploration import DaySample, RoundSample, WeightSample
from litaagent_std.policy.networks.inference import DayInputs, ThreadInputs
from litaagent_std.policy.networks.inputs import BASELINE_SIZE, L4_SIZE

__all__ = ["HISTORY", "THREADS", "day_size", "flat_days", "flat_threads", "flat_weights", "thread_sizes", "weight_size"]

HISTORY: Final = 40
"""Offers of a thread that are kept: two in each of the league's twenty rounds."""
THREADS: Final = 16
"""Threads of a side's round that are kept."""
_N = {name: len(columns) for name, columns in THREAD_FEATURES.items()}


def day_size(horizon: int) -> int:
    """Return the length of a flat day; see `l2_manager.unflatten`."""
    return N_STATIC + N_ROLE + (horizon + 1) * (N_TEMPORAL + 1) + 3 + 7 * n_buckets(horizon) + 1


def flat_days(day: DayInputs, horizon: int) -> Floats32:
    """Return days as flat observations, ``[N, day_size]``."""
    count, width = day.mask.shape
    temporal = np.zeros((count, horizon + 1, N_TEMPORAL), np.float32)
    mask = np.zeros((count, horizon + 1), np.float32)
    temporal[:, :width], mask[:, :width] = day.x_temporal, day.mask
    parts: list[Array] = [day.x_static, day.x_role, temporal.reshape(count, -1), mask, day.lines[:, None], day.price]
    return np.concatenate([*parts, day.base], axis=1).astype(np.float32)


def thread_sizes(horizon: int) -> list[int]:
    """Return the lengths of the parts of a flat thread, in the order of `flat_threads`."""
    history = [HISTORY * _N["history"], HISTORY]
    now = [_N["ranges"], _N["x_thread"], _N["x_partner"], 4 * n_buckets(horizon), BASELINE_SIZE, 1]
    return [day_size(horizon), *history, *now]


def flat_threads(threads: ThreadInputs, horizon: int) -> Floats32:
    """Return threads as flat observations: day, history and its mask, and the rest."""
    count, width = threads.history_mask.shape
    kept = min(width, HISTORY)
    history, mask = np.zeros((count, HISTORY, _N["history"]), np.float32), np.zeros((count, HISTORY), np.float32)
    history[:, :kept], mask[:, :kept] = threads.history[:, :kept], threads.history_mask[:, :kept]
    history *= mask[:, :, None]
    parts: list[Array] = [flat_days(threads.day, horizon), history.reshape(count, -1), mask]
    parts += [threads.ranges, threads.x_thread, threads.x_partner, threads.goal, threads.baseline]
    return np.concatenate([*parts, threads.log_alpha[:, None]], axis=1).astype(np.float32)


def weight_size() -> int:
    """Return the length of a flat row of L4: the threads of a round, which of them exist, and which one it is."""
    return THREADS * (L4_SIZE + 1) + 1


def flat_weights(sample: WeightSample) -> Floats32:
    """Return a row for each thread of the rounds, ``[M, weight_size]``, in the order of the mask."""
    count, width = sample.mask.shape
    if width > THREADS:
        raise ValueError(f"a round has {width} threads on one side; L4 learns from at most {THREADS}: raise THREADS")
    tokens, mask = np.zeros((count, THREADS, L4_SIZE), np.float32), np.zeros((count, THREADS), np.float32)
    tokens[:, :width], mask[:, :width] = sample.threads, sample.mask
    rounds = np.concatenate([tokens.reshape(count, -1), mask], axis=1)
    row, place = np.nonzero(sample.mask)
    return np.concatenate([rounds[row], place[:, None].astype(np.float32)], axis=1)


def state_of(samples: Sequence[RoundSample], size: int) -> tuple[Floats32, Ints]:
    """Return what a central critic sees beside each thread, and the round of each row.

    It is the mean and the maximum of the thread features of all threads of the factory in the same round, on both
    sides, and their number.

    Args:
        samples: L3's samples.
        size: Number of factories.
    """
    seats = np.concatenate([sample.seats for sample in samples])
    day = np.concatenate([sample.day for sample in samples])
    round_ = np.concatenate([sample.round for sample in samples])
    threads = np.concatenate([sample.inputs.x_thread for sample in samples])
    key = (seats + size * day) * 1024 + round_
    _, group = np.unique(key, return_inverse=True)
    group = group.ravel()
    count = np.bincount(group).astype(np.float32)
    total = np.zeros((len(count), threads.shape[1]), np.float32)
    most = np.full(total.shape, -np.inf, np.float32)
    np.add.at(total, group, threads)
    np.maximum.at(most, group, threads)
    state = np.concatenate([total / count[:, None], most, count[:, None] / 6.0], axis=1)
    return state.astype(np.float32), group.astype(np.int64)


def day_rows(samples: Sequence[DaySample], horizon: int) -> tuple[Ints, Ints, Floats32, Floats32, Floats32]:
    """Return factory, day, flat observation, action and log-probability of L2's samples."""
    return (
        np.concatenate([sample.seats for sample in samples]),
        np.concatenate([sample.day for sample in samples]),
        np.concatenate([flat_days(sample.inputs, horizon) for sample in samples]),
        np.concatenate([sample.action for sample in samples]),
        np.concatenate([sample.log_prob for sample in samples]),
    )
