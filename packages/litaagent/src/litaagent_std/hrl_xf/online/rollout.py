"""Rollouts: worlds under one version of the policies, from their first days to their last, as arrays.

Worlds are played in lockstep (`lockstep`), and what becomes of one does not depend on the others. A trajectory of L2 is
a seat's days and ends with the world; a trajectory of L3 and L4 is a thread's rounds and ends with its negotiation. A
transition belongs to one day, one thread and one version, and rows of different ones are never joined.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from apexrl.runs.errors import DivergedError
from litaagent_std.agents.online.acting import PolicySet
from litaagent_std.agents.online.steering import Layer
from litaagent_std.hrl_xf.online.episodes import EpisodeLog, Health, outcome_terms
from litaagent_std.hrl_xf.online.exploration import Exploration, SeatDays, SeatRounds
from litaagent_std.hrl_xf.online.lockstep import Lockstep, LockstepSeat, LockstepWorld
from litaagent_std.hrl_xf.online.worlds import TrainingWorld, WorldPlan, draw_world
from litaagent_std.hrl_xf.rewards import (
    DAY_TERMS,
    THREAD_TERMS,
    DayWeights,
    day_reward,
    day_terms,
)
from litaagent_std.policy.arrays import Floats, Floats32, Ints
from litaagent_std.policy.layers import LayerSet

__all__ = [
    "DayRows",
    "Play",
    "RoundRows",
    "SeatRollout",
    "WorldRollout",
    "check_rollouts",
    "play_training_world",
    "play_world",
    "play_worlds",
    "reference_of",
]


@dataclass(frozen=True, slots=True, eq=False)
class DayRows:
    """A seat's decisions of L2, in order; n of them.

    Attributes:
        day: [n].
        views: [n, len(DAY_VIEW)]; [n, 0] if there are no policies.
        actions: [n, len(DAY_ACTIONS)]; zeros if there is no L2 policy.
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
        views: [m, len(THREAD_VIEW)].
        states: State that a central critic sees, once per round [r, len(STATE_VIEW)].
        state_of: Each row's index in `states` [m].
        actions: By layer, [m, n].
        log_probs: By layer, [m].
        terms: Reward terms of each thread by name, each [k].
    """

    thread: Ints
    day: Ints
    partner: tuple[str, ...]
    views: Floats32
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
        rounds: Decisions of L3 and L4; None if rounds had no residual actions.
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
        views: Any = rounds.views  # the learned hierarchy has views of each layer
        for view in views.values() if isinstance(views, dict) else (views,):
            yield "a thread's view", view, rounds.day[rounds.thread]
        yield "the critic's state", rounds.states[rounds.state_of], rounds.day[rounds.thread]
        for name, term in rounds.terms.items():
            yield f"reward term {name}", term, rounds.day


@dataclass(frozen=True, slots=True, eq=False)
class Play:
    """A world to play, and by which policies.

    Attributes:
        world: The world.
        policies: Policies of our seats; an empty set is the heuristic agent.
        rng_seed: Seed of the exploration; None plays without exploration.
    """

    world: TrainingWorld
    policies: PolicySet
    rng_seed: int | None

    def rng(self, seat: int) -> np.random.Generator | None:
        """Return the rng of a seat's exploration."""
        return None if self.rng_seed is None else np.random.default_rng(np.random.SeedSequence([self.rng_seed, seat]))


def play_world(
    plan: WorldPlan, policies: PolicySet, weights: DayWeights, rng_seed: int | None, *, rounds: bool
) -> WorldRollout:
    """Draw and play the world of a plan, see `play_worlds`."""
    return play_training_world(draw_world(plan), policies, weights, rng_seed, rounds=rounds)


def play_training_world(
    training_world: TrainingWorld, policies: PolicySet, weights: DayWeights, rng_seed: int | None, *, rounds: bool
) -> WorldRollout:
    """Play a world to its end with the same policies in all our seats, see `play_worlds`."""
    return play_worlds([Play(training_world, policies, rng_seed)], weights, rounds=rounds)[0]


def play_worlds(plays: Sequence[Play], weights: DayWeights, *, rounds: bool) -> list[WorldRollout]:
    """Play worlds to their ends in lockstep, each with its own policies and exploration.

    Args:
        plays: The worlds.
        weights: Form and discount of the potential.
        rounds: Whether rounds have residual actions.
    """
    began = time.process_time()
    made: list[tuple[Sequence[LockstepSeat], Exploration]] = []

    def make_layers(seats: Sequence[LockstepSeat]) -> LayerSet:
        play_of = {id(world): play for world, play in zip(lockstep.worlds, plays, strict=True)}
        own = [(play_of[id(seat.world)], seat) for seat in seats]
        exploration = Exploration([(play.policies, play.rng(seat.seat)) for play, seat in own])
        made.append((seats, exploration))
        return exploration.layers(rounds=rounds)

    lockstep = Lockstep(make_layers)
    try:
        worlds = lockstep.add([play.world for play in plays])
        lockstep.run()
        rollouts = _seat_rollouts(made, weights, rounds=rounds)
    finally:
        lockstep.close()
    # the time of a batch is shared by its worlds
    inference = sum(exploration.seconds for _, exploration in made) / len(plays)
    total = time.process_time() - began
    seconds = {"inference": inference, "policy": lockstep.seconds / len(plays), "total": total / len(plays)}
    return [
        WorldRollout(
            play.policies.version,
            play.world.setup.seed,
            play.world.setup.n_days,
            tuple(rollouts[id(seat)] for seat in world.ours),
            dict(seconds),
        )
        for play, world in zip(plays, worlds, strict=True)
    ]


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


def _seat_rollouts(
    made: Sequence[tuple[Sequence[LockstepSeat], Exploration]], weights: DayWeights, *, rounds: bool
) -> dict[int, SeatRollout]:
    """Return the rollouts of all seats by their id."""
    rollouts = {}
    for seats, exploration in made:
        by_round: Sequence[SeatRounds | None] = exploration.rounds() if rounds else [None] * len(seats)
        for seat, days, decided in zip(seats, exploration.days(), by_round or [None] * len(seats), strict=True):
            assert seat.world is not None  # it was played
            rollouts[id(seat)] = _seat_rollout(seat.world, seat, days, decided, weights)
    return rollouts


def _seat_rollout(
    world: LockstepWorld, seat: LockstepSeat, days: SeatDays, rounds: SeatRounds | None, weights: DayWeights
) -> SeatRollout:
    training_world, score = world.training_world, world.score(seat.seat)
    return SeatRollout(
        seat=seat.seat,
        kind=training_world.kind(seat.seat),
        score=score,
        beaten={name: score > world.score(rival) for rival, name in training_world.rivals.items()},
        health=world.health(seat.seat),
        days=_day_rows(seat.episode, days, world.cash(seat.seat), weights),
        rounds=None if rounds is None else _round_rows(seat, rounds),
    )


def _day_rows(episode: EpisodeLog, made: SeatDays, final_cash: float, weights: DayWeights) -> DayRows:
    decided = [entry for entry in episode.days if entry.has_decision]
    terms: dict[str, list[float]] = {name: [] for name in DAY_TERMS}
    # a decision's reward lasts until the next decision, or until the end of the world
    for index, entry in enumerate(decided):
        after = decided[index + 1].obs if index + 1 < len(decided) else None
        end_calendar = entry.end_calendar or entry.obs.calendar
        for name, value in day_terms(entry.obs, end_calendar, after, final_cash, weights).items():
            terms[name].append(value)
    count = len(decided)
    if not made.views.shape[1]:  # the heuristic agent: no policy was asked
        made = SeatDays(
            np.zeros((count, 0), np.float32),
            np.zeros((count, made.actions.shape[1]), np.float32),
            np.zeros(count, np.float32),
        )
    return DayRows(
        day=np.array([entry.obs.day for entry in decided], np.int64),
        views=made.views,
        actions=made.actions,
        log_probs=made.log_probs,
        terms={name: np.array(values, np.float64) for name, values in terms.items()},
    )


def _round_rows(seat: LockstepSeat, made: SeatRounds) -> RoundRows:
    # [m] a thread is a partner's negotiation of one day; threads are numbered in the order of their first rounds
    keys = np.stack((made.day, made.selling, made.partner), axis=1)
    threads, first, own = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    by_start = np.argsort(first)
    number = np.empty(len(threads), np.int64)
    number[by_start] = np.arange(len(threads))
    thread = number[own.ravel()]
    order = np.argsort(thread, kind="stable")
    names = ([partner.name for partner in seat.obs.suppliers], [partner.name for partner in seat.obs.consumers])
    days = [(day, names[selling][partner]) for day, selling, partner in threads[by_start].tolist()]
    terms = [_outcome_terms(seat.episode, *key) for key in days]
    return RoundRows(
        thread=thread[order],
        day=np.array([day for day, _ in days], np.int64),
        partner=tuple(partner for _, partner in days),
        views=made.views[order],
        states=made.states,
        state_of=made.round[order],
        actions={layer: values[order] for layer, values in made.actions.items()},
        log_probs={layer: values[order] for layer, values in made.log_probs.items()},
        terms={name: np.array([term[name] for term in terms], np.float64) for name in THREAD_TERMS},
    )


def _outcome_terms(episode: EpisodeLog, day: int, partner: str) -> dict[str, float]:
    outcome = episode.threads.get((day, partner))
    if outcome is None:  # cut off by an exception of an agent: there was no event of its end
        return dict.fromkeys(THREAD_TERMS, 0.0)
    return outcome_terms(episode.entry(day).obs, outcome)
