"""Exploration: sampled actions of the layers' networks, and what a learner needs of them.

A layer that explores draws from the random stream of each factory, in the order in which the factory is asked, so that
a sample does not depend on which other factories are decided beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ..arrays import Array, Bools, Floats32, Ints
from .inference import DayInputs, ThreadInputs

__all__ = ["DaySample", "Exploration", "RoundSample", "WeightSample", "categorical", "gaussian"]

_HALF_LOG_2PI: Final = np.float32(0.5 * np.log(2.0 * np.pi))


@dataclass(frozen=True, slots=True, eq=False)
class DaySample:
    """L2's residuals of some factories' days.

    Attributes:
        seats: The factories as the brain numbers them, ``[B]``.
        day: Their days, ``[B]``.
        inputs: The network's inputs, B rows.
        action: Residuals, ``[B, 7·buckets + 1]``.
        log_prob: ``[B]``.
    """

    seats: Ints
    day: Ints
    inputs: DayInputs
    action: Floats32
    log_prob: Floats32


@dataclass(frozen=True, slots=True, eq=False)
class RoundSample:
    """L3's decisions of some threads.

    Attributes:
        seats: Factory of each thread as the brain numbers it, ``[M]``.
        day: Its day, ``[M]``.
        selling: Which side the threads are on.
        partner: Index of the partner among the side's partners, ``[M]``.
        round: Rounds completed, ``[M]``.
        inputs: The network's inputs, M rows.
        action: Operation, lead, quantity and position of the price, ``[M, 4]``.
        log_prob: ``[M]``.
    """

    seats: Ints
    day: Ints
    selling: bool
    partner: Ints
    round: Ints
    inputs: ThreadInputs
    action: Floats32
    log_prob: Floats32


@dataclass(frozen=True, slots=True, eq=False)
class WeightSample:
    """L4's weights of a side's round of some factories.

    Attributes:
        seats: The factories as the brain numbers them, ``[S]``.
        day: Their days, ``[S]``.
        selling: Which side this is.
        threads: The network's inputs, ``[S, K, L4_SIZE]``.
        mask: Threads that exist, ``[S, K]``.
        partner: Index of each thread's partner among the side's partners, ``[S, K]``.
        round: Rounds completed, ``[S, K]``.
        action: Logarithms of α, ``[S, K]``; 0 where there is no thread.
        log_prob: Of each thread's, ``[S, K]``.
    """

    seats: Ints
    day: Ints
    selling: bool
    threads: Floats32
    mask: Bools
    partner: Ints
    round: Ints
    action: Floats32
    log_prob: Floats32


@dataclass(slots=True, eq=False)
class Exploration:
    """Random streams of the factories, and the samples so far in the order in which they were drawn.

    Attributes:
        rngs: Stream of each factory as the brain numbers it; None: the factory does not explore.
        days: Samples of L2.
        rounds: Samples of L3.
        weights: Samples of L4.
    """

    rngs: Sequence[np.random.Generator | None]
    days: list[DaySample] = field(default_factory=list)
    rounds: list[RoundSample] = field(default_factory=list)
    weights: list[WeightSample] = field(default_factory=list)

    def normals(self, seats: Ints, size: int) -> Floats32:
        """Return standard normal numbers, ``[len(seats), size]``, each row from its factory's stream; 0 without one."""
        out = np.zeros((len(seats), size), np.float32)
        for row, seat in enumerate(seats.tolist()):
            rng = self.rngs[seat]
            if rng is not None:
                out[row] = rng.standard_normal(size, dtype=np.float32)
        return out

    def exponentials(self, seats: Ints, size: int) -> Floats32:
        """Return exponential numbers likewise; 1 without a stream, which gives the most probable choice."""
        out = np.ones((len(seats), size), np.float32)
        for row, seat in enumerate(seats.tolist()):
            rng = self.rngs[seat]
            if rng is not None:
                out[row] = np.maximum(rng.standard_exponential(size, dtype=np.float32), np.float32(1e-30))
        return out


def gaussian(mean: Floats32, log_std: Floats32, noise: Floats32) -> tuple[Floats32, Floats32]:
    """Return samples ``[N, n]`` and their log-probabilities ``[N]``.

    Args:
        mean: ``[N, n]``.
        log_std: ``[n]``; −∞ for a component that is not explored, which is a constant and has no density.
        noise: Standard normal numbers, ``[N, n]``.
    """
    action = np.asarray(mean + noise * np.exp(log_std), np.float32)
    explored = np.isfinite(log_std)
    # [N, explored] in the order of memory in which a row is summed as if it were alone
    z = np.ascontiguousarray((action - mean)[:, explored]) * np.exp(-log_std[explored])
    log_prob = -0.5 * np.square(z).sum(1) - log_std[explored].sum() - explored.sum() * _HALF_LOG_2PI
    return action, np.asarray(log_prob, np.float32)


def categorical(logits: Array, noise: Floats32) -> tuple[Ints, Floats32]:
    """Return choices ``[N]`` by the exponential race, and their log-probabilities ``[N]``.

    Args:
        logits: ``[N, n]``.
        noise: Exponential numbers, ``[N, n]``; ones give the most probable choice.
    """
    choice = (logits - np.log(noise)).argmax(1)
    shifted = logits - logits.max(1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return choice, np.asarray(log_probs[np.arange(len(choice)), choice], np.float32)
