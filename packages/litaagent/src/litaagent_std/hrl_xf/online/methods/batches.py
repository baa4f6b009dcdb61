"""Batches of a layer: rows of rollouts with rewards, trajectory by trajectory.

Rewards are centred by the reference policy's in the same world and scaled by kind of configuration and seat. A day's
reward is at that day's decision; a thread's own reward and its share of the day's are at its last round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from apexrl.storage.rollout import MixedVersionsError
from apexrl.storage.samples import gae
from litaagent_std.hrl_xf.online.config import Layer
from litaagent_std.hrl_xf.online.rollout import RoundRows, SeatRollout, WorldRollout
from litaagent_std.hrl_xf.rewards import (
    DAY_TERMS,
    DayWeights,
    ReturnScales,
    ThreadWeights,
    centred,
    day_reward,
    thread_reward,
)
from litaagent_std.policy.arrays import Floats, Floats32, Ints
from litaagent_std.policy.networks.inputs import ALPHA_LIMIT

__all__ = ["LayerBatch", "References", "day_batch", "round_batch", "trajectory_gae"]

References = Mapping[int, Mapping[int, Sequence[float]]]
"""The reference policy's reward on every day, by the world's seed and the seat."""


@dataclass(frozen=True, slots=True, eq=False)
class LayerBatch:
    """Rows of whole trajectories, one trajectory after the other.

    Attributes:
        version: Version of the policy that acted.
        observations: Inputs of the policy [n, in].
        critic_observations: Inputs of the critic [n, c].
        actions: [n, out].
        log_probs: [n].
        rewards: [n].
        trajectory: Trajectory of each row [n], rising from 0 without gaps.
    """

    version: int
    observations: Floats32
    critic_observations: Floats32
    actions: Floats32
    log_probs: Floats32
    rewards: Floats
    trajectory: Ints

    def __len__(self) -> int:
        return len(self.rewards)


def check_version(rollouts: Iterable[WorldRollout], version: int) -> None:
    """Check that all worlds were played under one version.

    Raises:
        MixedVersionsError: If one was not.
    """
    for rollout in rollouts:
        if rollout.version != version:
            raise MixedVersionsError(
                f"world {rollout.seed} was played under version {rollout.version}, but the batch is of version "
                f"{version}; on-policy learning must not mix versions: play the world again under the present snapshot"
            )


def seat_rewards(seat: SeatRollout, reference: Sequence[float], weights: DayWeights) -> list[float]:
    """Return a seat's reward per decision, less the reference's over the same days."""
    terms = seat.days.terms
    raw = [
        day_reward({name: float(terms[name][row]) for name in DAY_TERMS}, weights) for row in range(len(seat.days.day))
    ]
    return centred(raw, [int(day) for day in seat.days.day], reference)


def day_batch(
    rollouts: Sequence[WorldRollout], references: References, weights: DayWeights, scales: ReturnScales, version: int
) -> LayerBatch:
    """Return L2's batch: one trajectory per world and seat."""
    check_version(rollouts, version)
    seats = [(rollout.seed, seat) for rollout in rollouts for seat in rollout.seats if len(seat.days.day)]
    rewards, trajectory = [], []
    for index, (seed, seat) in enumerate(seats):
        own = seat_rewards(seat, references.get(seed, {}).get(seat.seat, ()), weights)
        rewards.append(np.array(own) / scales.scale(seat.kind))
        trajectory.append(np.full(len(own), index))
    views = np.concatenate([seat.days.views for _, seat in seats])
    return LayerBatch(
        version,
        views,
        views,
        np.concatenate([seat.days.actions for _, seat in seats]),
        np.concatenate([seat.days.log_probs for _, seat in seats]),
        np.concatenate(rewards),
        np.concatenate(trajectory),
    )


@dataclass(frozen=True, slots=True)
class RoundRewards:
    """Rewards of rounds.

    Attributes:
        references: See `References`.
        days: Weights of the day's terms.
        threads: Weights of the thread's terms.
        scales: Scales of returns.
    """

    references: References
    days: DayWeights
    threads: ThreadWeights
    scales: ReturnScales

    def of(self, seed: int, seat: SeatRollout, rows: RoundRows) -> Floats:
        """Return the rewards of a seat's rows [m]: own terms and a share of the day at each thread's last round."""
        by_decision = seat_rewards(seat, self.references.get(seed, {}).get(seat.seat, ()), self.days)
        shared = {int(day): reward for day, reward in zip(seat.days.day, by_decision, strict=True)}
        scale = self.scales.scale(seat.kind)
        rewards = np.zeros(len(rows.thread))
        last = np.flatnonzero(np.diff(rows.thread, append=-1))  # [k] last row of each thread
        for thread, row in enumerate(last):
            terms = {name: float(values[thread]) for name, values in rows.terms.items()}
            day = self.threads.shared * shared.get(int(rows.day[thread]), 0.0) / scale
            rewards[row] = thread_reward(terms, self.threads) + day
        return rewards


def round_batch(
    layer: Layer, rollouts: Sequence[WorldRollout], round_rewards: RoundRewards, version: int, *, central: bool
) -> LayerBatch:
    """Return L3's or L4's batch: one trajectory per negotiation.

    Args:
        layer: ``l3`` or ``l4``.
        rollouts: Worlds in which the layer explored.
        round_rewards: Rewards of the rows.
        version: Version that all worlds must have.
        central: Whether L3's critic sees the factory's other threads beside its own; otherwise it sees L3's inputs.
    """
    check_version(rollouts, version)
    parts: list[tuple[Floats32, Floats32, Floats32, Floats32, Floats, Ints]] = []
    threads = 0  # of the seats before
    for rollout in rollouts:
        for seat in rollout.seats:
            rows = seat.rounds
            if rows is None or not len(rows.thread):
                continue
            inputs = critic = rows.views[layer]
            if central and layer == "l3":
                critic = np.concatenate((inputs, rows.states[rows.state_of]), axis=1)  # [m, thread + state]
            rewards = round_rewards.of(rollout.seed, seat, rows)
            if layer == "l4":
                rewards = rewards + weight_rewards(rows.actions["l4"][:, 0], rewards, rows.thread, round_rewards)
            parts.append((inputs, critic, rows.actions[layer], rows.log_probs[layer], rewards, rows.thread + threads))
            threads += len(rows.day)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return LayerBatch(version, *columns)


def weight_rewards(log_alpha: Floats32, rewards: Floats, thread: Ints, round_rewards: RoundRewards) -> Floats:
    """Return L4's own term: a large α is rewarded in a thread that ends well and punished in one that ends badly.

    It is ``w · log α · reward`` at the thread's last round, log α being the mean over its rounds.

    Args:
        log_alpha: ``[m]``.
        rewards: Rewards of the rows without this term, ``[m]``.
        thread: Which thread a row belongs to, ``[m]``.
        round_rewards: Holds the weight.
    """
    count = np.bincount(thread)
    mean = np.bincount(thread, np.clip(log_alpha, -ALPHA_LIMIT, ALPHA_LIMIT)) / np.maximum(1, count)
    return np.asarray(round_rewards.threads.weight * mean[thread] * rewards, np.float64)


def trajectory_gae(rewards: Tensor, values: Tensor, trajectory: Tensor, gamma: float, gae_lambda: float) -> Tensor:
    """Return the generalised advantages [n] of trajectories that all terminated.

    Args:
        rewards: [n].
        values: V of each row [n].
        trajectory: Trajectory of each row [n], rising from 0 without gaps.
        gamma: Discount.
        gae_lambda: λ.
    """
    lengths = torch.bincount(trajectory)  # [K] rows per trajectory
    starts = torch.cumsum(lengths, 0) - lengths  # [K] first row of each
    step = torch.arange(len(rewards)) - starts[trajectory]  # [n] time within the trajectory
    shape = (int(lengths.max()), len(lengths))  # [T, K] trajectories side by side: one pass over time for all

    def padded(column: Tensor) -> Tensor:
        grid = torch.zeros(shape, dtype=column.dtype)
        grid[step, trajectory] = column
        return grid

    last = step == lengths[trajectory] - 1  # [n]
    # [n] V of the next row; 0 after the last
    following = torch.where(last, torch.zeros_like(values), torch.roll(values, -1))
    advantages = gae(padded(rewards), padded(values), padded(following), padded(last), gamma, gae_lambda)
    return advantages[step, trajectory]
