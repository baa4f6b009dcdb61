"""Rollouts: one world under one version of the policies, from its first day to its last, as arrays.

A trajectory of L2 is a seat's days and ends with the world; a trajectory of L3 and L4 is a thread's rounds and ends
with its negotiation. A transition belongs to one day, one thread and one version, and rows of different ones are never
joined.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from litaagent_std.agents.online.acting import PolicySet, SampledAction
from litaagent_std.agents.online.seat import DecisionRequest, EpisodeLog
from litaagent_std.agents.online.steering import Layer
from litaagent_std.hrl_xf.online.envs.game import Game, Health, outcome_terms
from litaagent_std.hrl_xf.online.worlds import TrainingWorld, WorldPlan, draw_world
from litaagent_std.hrl_xf.rewards import (
    DAY_TERMS,
    THREAD_TERMS,
    DayWeights,
    day_reward,
    day_terms,
)
from litaagent_std.policy.arrays import Floats, Floats32, Ints

__all__ = ["DayRows", "RoundRows", "SeatRollout", "WorldRollout", "play_training_world", "play_world", "reference_of"]


@dataclass(frozen=True, slots=True, eq=False)
class DayRows:
    """A seat's decisions of L2, in order; n of them.

    Attributes:
        day: [n].
        views: [n, len(DAY_VIEW)].
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
        seconds: CPU time: ``inference``, and ``total``.
    """

    version: int
    seed: int
    n_days: int
    seats: tuple[SeatRollout, ...]
    seconds: dict[str, float]


@dataclass(slots=True)
class _SeatDecisions:
    """Requests of a seat with their actions, in order, while the world is played."""

    days: list[tuple[DecisionRequest, SampledAction]] = field(default_factory=list)
    rounds: list[tuple[DecisionRequest, SampledAction]] = field(default_factory=list)


def play_world(
    plan: WorldPlan, policies: PolicySet, weights: DayWeights, rng_seed: int | None, *, rounds: bool
) -> WorldRollout:
    """Draw and play the world of a plan, see `play_training_world`; runs in a worker."""
    return play_training_world(draw_world(plan), policies, weights, rng_seed, rounds=rounds)


def play_training_world(
    training_world: TrainingWorld, policies: PolicySet, weights: DayWeights, rng_seed: int | None, *, rounds: bool
) -> WorldRollout:
    """Play a world to its end with the same policies in all our seats.

    Args:
        training_world: The world.
        policies: The snapshot.
        weights: Form and discount of the potential.
        rng_seed: Seed of the exploration; None plays without exploration.
        rounds: Whether rounds have residual actions.
    """
    began, inference = time.process_time(), 0.0
    rngs = {
        seat: None if rng_seed is None else np.random.default_rng(np.random.SeedSequence([rng_seed, seat]))
        for seat in training_world.seats
    }
    decisions = {seat: _SeatDecisions() for seat in training_world.seats}
    with Game(training_world, rounds=rounds) as game:
        while game.pending is not None:
            seat, request = game.pending.seat, game.pending.request
            start = time.process_time()
            rng = rngs[seat]
            action = SampledAction(policies.act(request), {}, {}) if rng is None else policies.sample(request, rng)
            inference += time.process_time() - start
            own = decisions[seat]
            (own.days if request.kind == "day" else own.rounds).append((request, action))
            game.step(action.residual)
        seats = tuple(
            _seat_rollout(game, seat, decisions[seat], weights, rounds=rounds) for seat in training_world.seats
        )
    seconds = {"inference": inference, "total": time.process_time() - began}
    return WorldRollout(policies.version, training_world.setup.seed, training_world.setup.n_days, seats, seconds)


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


def _seat_rollout(
    game: Game, seat: int, decisions: _SeatDecisions, weights: DayWeights, *, rounds: bool
) -> SeatRollout:
    training_world, log = game.training_world, game.episode_log(seat)
    score = game.score(seat)
    return SeatRollout(
        seat=seat,
        kind=training_world.kind(seat),
        score=score,
        beaten={name: score > game.score(rival) for rival, name in training_world.rivals.items()},
        health=game.health(seat),
        days=_day_rows(log, decisions, game.cash(seat), weights),
        rounds=_round_rows(log, decisions) if rounds else None,
    )


def _day_rows(log: EpisodeLog, decisions: _SeatDecisions, final_cash: float, weights: DayWeights) -> DayRows:
    decided = [entry for entry in log.days if entry.has_decision]
    terms: dict[str, list[float]] = {name: [] for name in DAY_TERMS}
    # a decision's reward lasts until the next decision, or until the end of the world
    for index, entry in enumerate(decided):
        after = decided[index + 1].obs if index + 1 < len(decided) else None
        end_calendar = entry.end_calendar or entry.obs.calendar
        for name, value in day_terms(entry.obs, end_calendar, after, final_cash, weights).items():
            terms[name].append(value)
    actions = [action for _, action in decisions.days]
    return DayRows(
        day=np.array([entry.obs.day for entry in decided], np.int64),
        views=_stack([request.view for request, _ in decisions.days]),
        actions=_stack([action.actions.get("l2", action.residual) for action in actions]),
        log_probs=np.array([action.log_probs.get("l2", 0.0) for action in actions], np.float32),
        terms={name: np.array(values, np.float64) for name, values in terms.items()},
    )


def _stack(rows: list[Floats32]) -> Floats32:
    return np.stack(rows) if rows else np.zeros((0, 0), np.float32)


def _round_rows(log: EpisodeLog, decisions: _SeatDecisions) -> RoundRows:
    rounds = decisions.rounds
    # steps of each thread (day, partner): round, and the thread's row in that round
    steps: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for index, (request, _) in enumerate(rounds):
        for row, partner in enumerate(request.partners):
            steps.setdefault((request.day, partner), []).append((index, row))
    # m rows, thread by thread: thread, round, row in the round
    rows = [(thread, index, row) for thread, own in enumerate(steps.values()) for index, row in own]
    layers: list[Layer] = list(rounds[0][1].actions) if rounds else []
    terms = {key: _outcome_terms(log, *key) for key in steps}
    return RoundRows(
        thread=np.array([thread for thread, _, _ in rows], np.int64),
        day=np.array([day for day, _ in steps], np.int64),
        partner=tuple(partner for _, partner in steps),
        views=_stack([rounds[index][0].view[row] for _, index, row in rows]),
        states=_stack([request.state for request, _ in rounds]),
        state_of=np.array([index for _, index, _ in rows], np.int64),
        actions={layer: _stack([rounds[index][1].actions[layer][row] for _, index, row in rows]) for layer in layers},
        log_probs={
            layer: np.array([rounds[index][1].log_probs[layer][row] for _, index, row in rows], np.float32)
            for layer in layers
        },
        terms={name: np.array([terms[key][name] for key in steps], np.float64) for name in THREAD_TERMS},
    )


def _outcome_terms(log: EpisodeLog, day: int, partner: str) -> dict[str, float]:
    outcome = log.threads.get((day, partner))
    if outcome is None:  # cut off by an exception of an agent: there was no event of its end
        return dict.fromkeys(THREAD_TERMS, 0.0)
    return outcome_terms(log.entry(day).obs, outcome)
