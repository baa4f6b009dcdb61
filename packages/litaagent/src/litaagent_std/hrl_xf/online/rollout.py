"""Rollouts: worlds under one version of the policies, from their first days to their last, as arrays.

Worlds are played in lockstep (`hierarchy.play`), and what becomes of one does not depend on the others. A trajectory of
L2 is a seat's days and ends with the world; a trajectory of L3 and L4 is a thread's rounds and ends with its
negotiation. A transition belongs to one day, one thread and one version, and rows of different ones are never joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from apexrl.runs.errors import DivergedError
from litaagent_std.hrl_xf.online.config import Layer
from litaagent_std.hrl_xf.online.episodes import Health
from litaagent_std.hrl_xf.rewards import DAY_TERMS, DayWeights, day_reward
from litaagent_std.policy.arrays import Floats, Floats32, Ints

__all__ = [
    "DayRows",
    "RoundRows",
    "SeatRollout",
    "WorldRollout",
    "check_rollouts",
    "reference_of",
]


@dataclass(frozen=True, slots=True, eq=False)
class DayRows:
    """A seat's decisions of L2, in order; n of them.

    Attributes:
        day: [n].
        views: Flat observations [n, in], see `hierarchy.rows`; [n, 0] if L2 does not explore.
        actions: Residuals [n, out]; [n, 0] likewise.
        log_probs: [n].
        terms: Reward terms by name, each [n].
    """

    day: Ints
    views: Floats32
    actions: Floats32
    log_probs: Floats32
    terms: dict[str, Floats]


@dataclass(frozen=True, slots=True, eq=False)
class RoundRows:
    """A seat's decisions of L3 and L4, thread by thread and in the order of the rounds; m rows of k threads.

    Attributes:
        thread: Which thread a row belongs to [m], rising.
        day: The day of each thread [k].
        partner: Its partner [k].
        views: By layer, flat observations [m, in]; see `hierarchy.rows`.
        states: What a central critic sees beside a thread, once per round [r, s].
        state_of: Each row's index in `states` [m].
        actions: By layer, [m, n].
        log_probs: By layer, [m].
        terms: Reward terms of each thread by name, each [k].
    """

    thread: Ints
    day: Ints
    partner: tuple[str, ...]
    views: dict[Layer, Floats32]
    states: Floats32
    state_of: Ints
    actions: dict[Layer, Floats32]
    log_probs: dict[Layer, Floats32]
    terms: dict[str, Floats]


@dataclass(frozen=True, slots=True, eq=False)
class SeatRollout:
    """Rollout of one of our seats.

    Attributes:
        seat: Its index.
        kind: Number of levels and level in the chain, see `TrainingWorld.kind`.
        score: Final balance over initial balance.
        beaten: By name of each rival, whether our score was higher.
        health: Shortfalls, stock and bankruptcy.
        days: Decisions of L2.
        rounds: Decisions of L3 and L4; None if neither explores.
    """

    seat: int
    kind: str
    score: float
    beaten: dict[str, bool]
    health: Health
    days: DayRows
    rounds: RoundRows | None


@dataclass(frozen=True, slots=True, eq=False)
class WorldRollout:
    """Rollout of a world.

    Attributes:
        version: Version of the policies, the same for all transitions.
        seed: The world's seed.
        n_days: Its days.
        seats: Our seats.
        seconds: CPU time: ``inference`` of the networks, ``policy`` of the batches with it, and ``total``.
    """

    version: int
    seed: int
    n_days: int
    seats: tuple[SeatRollout, ...]
    seconds: dict[str, float]


def check_rollouts(rollouts: Iterable[WorldRollout]) -> None:
    """Refuse worlds with NaN or infinities before anything learns from them.

    Raises:
        DivergedError: It names the world, the seat, the column, and the day.
    """
    for rollout in rollouts:
        for seat in rollout.seats:
            for name, values, days in _columns(seat):
                if not np.isfinite(values).all():
                    day = days[np.argwhere(~np.isfinite(values))[0, 0]]
                    raise DivergedError(
                        f"{name} of seat {seat.seat} on day {day} of world {rollout.seed} is NaN or infinite",
                        "what a world reports are finite numbers, because one bad number spoils all weights",
                        "play this world alone to see why; the last checkpoint is sound",
                    )


def _columns(seat: SeatRollout) -> Iterator[tuple[str, Floats | Floats32, Ints]]:
    """Yield all columns that are learned from, by name, each with the days of its rows."""
    days, rounds = seat.days, seat.rounds
    yield "score", np.array([seat.score]), np.array([days.day[-1] if len(days.day) else 0])
    yield "L2's view", days.views, days.day
    for name, term in days.terms.items():
        yield f"reward term {name}", term, days.day
    if rounds is not None and len(rounds.thread):
        for layer, view in rounds.views.items():
            yield f"{layer.upper()}'s view", view, rounds.day[rounds.thread]
        yield "the critic's state", rounds.states[rounds.state_of], rounds.day[rounds.thread]
        for name, term in rounds.terms.items():
            yield f"reward term {name}", term, rounds.day


def reference_of(rollout: WorldRollout, weights: DayWeights) -> dict[int, list[float]]:
    """Return the weighted reward of each day of a rollout, by seat.

    The list has an entry for every day; the reward of a day without a decision is in that of the last decision before.
    """
    rewards = {}
    for seat in rollout.seats:
        daily = [0.0] * rollout.n_days
        for row, day in enumerate(seat.days.day):
            daily[int(day)] = day_reward({name: float(seat.days.terms[name][row]) for name in DAY_TERMS}, weights)
        rewards[seat.seat] = daily
    return rewards
