"""Rounds to distil L4 from: simultaneous recorded offers, and those that the exact coordinator accepts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from litaagent_std.hrl_xf.data_pipeline.options import Split
from litaagent_std.hrl_xf.training.data import GoalHat, TrainingData, rows_of
from litaagent_std.policy.arrays import Bools, Floats, Floats32, Ints
from litaagent_std.policy.buckets import bucket_of
from litaagent_std.policy.features import THREAD_FEATURES
from litaagent_std.policy.networks.inputs import L4_SIZE, coordinator_inputs, spread
from litaagent_std.policy.plan import best_subsets

__all__ = ["Rounds", "exact_choice", "rounds_of"]

_LEAST_GAIN = 0.01
"""Value of a unit at our limit price, as in the policy, so that an offer at the limit beats none."""


@dataclass(frozen=True)
class Rounds:
    """G rounds of up to K threads.

    Attributes:
        threads: Inputs ``[G, K, L4_SIZE]``.
        mask: Threads that exist, bool ``[G, K]``.
        taken: 1 where the exact coordinator accepts ``[G, K]``, ½ where there is no offer: such a thread is neutral.
        value: Value of each offer ``[G, K]``.
        quantity: Units of each offer ``[G, K]``.
        lead: Delivery day of each offer ``[G, K]``.
        room: Units that may be agreed on that day ``[G, K]``.
    """

    threads: Floats32
    mask: Bools
    taken: Floats32
    value: Floats
    quantity: Ints
    lead: Ints
    room: Ints

    def __len__(self) -> int:
        return len(self.threads)

    def tensors(self, rows: Ints) -> dict[str, Tensor]:
        """Return the tensors of rounds by their numbers."""
        return {
            "threads": torch.from_numpy(self.threads[rows]),
            "mask": torch.from_numpy(self.mask[rows]),
            "taken": torch.from_numpy(self.taken[rows]),
        }


def exact_choice(quantity: Ints, lead: Ints, value: Floats, room: Ints) -> Bools:
    """Return the offers that the exact coordinator accepts: a knapsack for each delivery day."""
    taken = np.zeros(len(quantity), np.bool_)
    for day in np.unique(lead):
        due = np.flatnonzero(lead == day)
        taken[due] = best_subsets(np.zeros(len(due), np.int64), quantity[due], value[due], room[due[:1]])
    return taken


def _groups(data: TrainingData, split: Split, max_rounds: int) -> list[Ints]:
    """Return the decisions of each selected round."""
    micro = data.micro
    rows = rows_of(micro, split)
    if not len(rows):
        return []
    # Decisions on the same day, side and round are one round.
    keys = [np.asarray(micro[name][rows], np.int64) for name in ("round", "side", "day_row")]
    order = np.lexsort(keys)
    ordered = np.stack([key[order] for key in keys])  # [3, n] sorted by day, side, round
    starts = np.flatnonzero(np.r_[True, (ordered[:, 1:] != ordered[:, :-1]).any(0)])
    groups = np.split(rows[order], starts[1:])
    offered = np.asarray(micro["received"][rows])[:, 0] > 0
    some = np.split(offered[order], starts[1:])
    groups = [group for group, there in zip(groups, some, strict=True) if there.any()]
    groups = [group for group in groups if len(group) > 1] or groups  # a single thread needs no coordination
    step = max(1, -(-len(groups) // max_rounds))
    return groups[::step]


def rounds_of(data: TrainingData, goal_hat: GoalHat, split: Split, max_rounds: int) -> Rounds:
    """Collect rounds of a split, evenly over it, and solve each exactly.

    Args:
        data: The dataset.
        goal_hat: Goals of all days: they give the room of each delivery day and the limit price.
        split: The split.
        max_rounds: Maximal number of rounds.
    """
    groups = _groups(data, split, max_rounds)
    width = max((len(group) for group in groups), default=1)
    shape = (len(groups), width)
    rounds = Rounds(
        np.zeros((*shape, L4_SIZE), np.float32),
        np.zeros(shape, np.bool_),
        np.zeros(shape, np.float32),
        np.zeros(shape),
        np.zeros(shape, np.int64),
        np.full(shape, -1, np.int64),
        np.zeros(shape, np.int64),
    )
    for index, group in enumerate(groups):
        _solve(rounds, index, group, data, goal_hat)
    return rounds


def _solve(rounds: Rounds, index: int, group: Ints, data: TrainingData, goal_hat: GoalHat) -> None:
    micro, macro, horizon = data.micro, data.macro, data.league_horizon
    day = int(micro["day_row"][group[0]])
    side = int(micro["side"][group[0]])
    offers = np.asarray(micro["received"][group], np.float64)  # [K, 3] quantity, lead, unit price
    there = offers[:, 0] > 0
    offers = np.where(there[:, None], offers, 0.0)
    lines, trading_price = float(macro["lines"][day]), float(macro["price"][day][side])
    lead = np.clip(offers[:, 1].astype(np.int64), 0, horizon)
    if index % 2:  # most goals leave little to choose, so every other round gets a random one
        rng = np.random.default_rng(int(group[0]))
        room = rng.integers(0, int(2 * lines) + 1, horizon + 1).astype(np.float64)
        limit = np.full(len(group), rng.uniform(offers[there, 2].min() - 1.0, offers[there, 2].max() + 1.0))
    else:
        room = np.minimum(spread(goal_hat.quantity[day, side], horizon), lines)
        limit = np.array([goal_hat.price[day, side, bucket_of(int(days), horizon)] for days in lead], np.float64)
    # [K] gain per unit over our limit price, and value of the offer; below the limit it is never accepted
    surplus = offers[:, 2] - limit if side == 1 else limit - offers[:, 2]
    value = np.where(there & (surplus >= 0), offers[:, 0] * (surplus + _LEAST_GAIN), -1.0)
    x_thread, x_partner = (np.asarray(micro[name][group]) for name in ("x_thread", "x_partner"))
    time = x_thread[:, THREAD_FEATURES["x_thread"].index("relative_time")]
    here = (index, slice(0, len(group)))
    rounds.threads[here] = coordinator_inputs(
        offers, surplus, room[lead], time, lines, trading_price, horizon, x_thread, x_partner
    )
    rounds.mask[here] = True
    rounds.value[here], rounds.lead[here] = value, lead
    rounds.quantity[here], rounds.room[here] = offers[:, 0].astype(np.int64), room[lead].astype(np.int64)
    taken = exact_choice(rounds.quantity[here], lead, value, rounds.room[here])
    rounds.taken[here] = np.where(there, taken, 0.5)
