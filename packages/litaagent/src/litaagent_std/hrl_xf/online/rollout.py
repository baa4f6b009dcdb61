"""One world under one version of the policies, from its first day to its last, as arrays to learn from.

Trajectories close properly: a seat's days end with the world, a thread's rounds with its negotiation. A transition
belongs to one day, one thread and one version, and rows of different ones are never joined.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from litaagent_std.agents.online.acting import PolicySet, SampledAction
from litaagent_std.agents.online.seat import DecisionRequest, EpisodeLog
from litaagent_std.agents.online.steering import Layer
from litaagent_std.hrl_xf.online.envs.game import Game, Health
from litaagent_std.hrl_xf.online.worlds import TrainingWorld, WorldPlan, draw_world
from litaagent_std.hrl_xf.rewards import (
    DAY_TERMS,
    THREAD_TERMS,
    DayWeights,
    day_reward,
    day_terms,
    thread_terms,
)
from litaagent_std.policy.arrays import Floats, Floats32, Ints

__all__ = ["DayRows", "RoundRows", "SeatRollout", "WorldRollout", "play_reference", "play_training_world", "play_world"]


@dataclass(frozen=True, slots=True, eq=False)
class DayRows:
    """A seat's decisions of L2, in order; n of them.

    Attributes:
        day: [n].
        views: [n, len(DAY_VIEW)].
        actions: [n, len(DAY_ACTIONS)]; zeros without an L2 policy.
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
        states: What the central critic sees, once per round [r, len(STATE_VIEW)].
        state_of: The row's place in `states` [m].
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
    """What one of our seats brought.

    Attributes:
        seat: Its number.
        kind: Number of levels and place in the chain.
        score: Final balance over initial balance.
        beaten: For each rival's name, whether we ended above it.
        health: What was watched.
        days: Decisions of L2.
        rounds: Decisions of L3 and L4; None if rounds were not steered.
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
    """A world.

    Attributes:
        version: The version of the policies, of every transition in it.
        seed: The world's seed.
        n_days: Its days.
        seats: Our seats.
        seconds: CPU time by what it was spent on: ``inference``, and ``total``.
    """

    version: int
    seed: int
    n_days: int
    seats: tuple[SeatRollout, ...]
    seconds: dict[str, float]


@dataclass(slots=True)
class _Notes:
    """Questions of a seat with their answers, while the world is played."""

    days: list[tuple[DecisionRequest, SampledAction]] = field(default_factory=list)
    rounds: list[tuple[DecisionRequest, SampledAction]] = field(default_factory=list)


def play_world(
    plan: WorldPlan, policies: PolicySet, weights: DayWeights, luck_seed: int | None, *, rounds: bool
) -> WorldRollout:
    """Plays the world of a plan; what a worker does. See `play_training_world`."""
    return play_training_world(draw_world(plan), policies, weights, luck_seed, rounds=rounds)


def play_training_world(
    training_world: TrainingWorld, policies: PolicySet, weights: DayWeights, luck_seed: int | None, *, rounds: bool
) -> WorldRollout:
    """Plays a world to its end with all our seats under the same policies.

    Args:
        training_world: The world.
        policies: The snapshot.
        weights: For the form of the potential.
        luck_seed: Seed of the exploration, which depends on nothing else; None plays without exploration.
        rounds: Whether rounds are steered.
    """
    began, inference = time.process_time(), 0.0
    luck = {
        seat: None if luck_seed is None else np.random.default_rng(np.random.SeedSequence([luck_seed, seat]))
        for seat in training_world.seats
    }
    notes = {seat: _Notes() for seat in training_world.seats}
    with Game(training_world, rounds=rounds) as game:
        while game.pending is not None:
            asked = game.pending
            start = time.process_time()
            drawn = luck[asked.seat]
            answer = (
                SampledAction(policies.answer(asked.question), {}, {})
                if drawn is None
                else policies.sample(asked.question, drawn)
            )
            inference += time.process_time() - start
            kept = notes[asked.seat]
            (kept.days if asked.question.kind == "day" else kept.rounds).append((asked.question, answer))
            game.answer(answer.numbers)
        seats = tuple(_seat_rollout(game, seat, notes[seat], weights, rounds=rounds) for seat in training_world.seats)
    seconds = {"inference": inference, "total": time.process_time() - began}
    return WorldRollout(policies.version, training_world.setup.seed, training_world.setup.n_days, seats, seconds)


def play_reference(plan: WorldPlan, weights: DayWeights, *, rounds: bool = False) -> dict[int, list[float]]:
    """Return what the reference policy (zeros everywhere) earns on each day of a plan's world, by seat.

    Days without a decision count with the decision before; the list has an entry for every day.
    """
    return reference_of(play_world(plan, PolicySet(), weights, None, rounds=rounds), weights)


def reference_of(rollout: WorldRollout, weights: DayWeights) -> dict[int, list[float]]:
    """Return the weighted reward of each day of a rollout, by seat."""
    found = {}
    for seat in rollout.seats:
        daily = [0.0] * rollout.n_days
        for place, day in enumerate(seat.days.day):
            daily[int(day)] = day_reward({name: float(seat.days.terms[name][place]) for name in DAY_TERMS}, weights)
        found[seat.seat] = daily
    return found


def _seat_rollout(game: Game, seat: int, notes: _Notes, weights: DayWeights, *, rounds: bool) -> SeatRollout:
    training_world, diary = game.training_world, game.diary(seat)
    score = game.score(seat)
    return SeatRollout(
        seat=seat,
        kind=training_world.kind(seat),
        score=score,
        beaten={name: score > game.score(rival) for rival, name in training_world.rivals.items()},
        health=game.health(seat),
        days=_day_rows(diary, notes, game.cash(seat), weights),
        rounds=_round_rows(diary, notes) if rounds else None,
    )


def _day_rows(diary: EpisodeLog, notes: _Notes, final_cash: float, weights: DayWeights) -> DayRows:
    asked = [entry for entry in diary.days if entry.asked]
    terms: dict[str, list[float]] = {name: [] for name in DAY_TERMS}
    for place, entry in enumerate(asked):
        after = asked[place + 1].obs if place + 1 < len(asked) else None
        evening = entry.evening or entry.obs.calendar
        for name, value in day_terms(entry.obs, evening, after, final_cash, weights).items():
            terms[name].append(value)
    answers = [answer for _, answer in notes.days]
    return DayRows(
        day=np.array([entry.obs.day for entry in asked], np.int64),
        views=_stack([question.view for question, _ in notes.days]),
        actions=_stack([answer.actions.get("l2", answer.numbers) for answer in answers]),
        log_probs=np.array([answer.log_probs.get("l2", 0.0) for answer in answers], np.float32),
        terms={name: np.array(values, np.float64) for name, values in terms.items()},
    )


def _stack(rows: list[Floats32]) -> Floats32:
    return np.stack(rows) if rows else np.zeros((0, 0), np.float32)


def _round_rows(diary: EpisodeLog, notes: _Notes) -> RoundRows:
    order: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for place, (question, _) in enumerate(notes.rounds):
        for row, partner in enumerate(question.partners):
            order.setdefault((question.day, partner), []).append((place, row))
    rows = [(thread, place, row) for thread, steps in enumerate(order.values()) for place, row in steps]
    layers: list[Layer] = [layer for layer in notes.rounds[0][1].actions] if notes.rounds else []
    ends = {key: _thread_end(diary, *key) for key in order}
    return RoundRows(
        thread=np.array([thread for thread, _, _ in rows], np.int64),
        day=np.array([day for day, _ in order], np.int64),
        partner=tuple(partner for _, partner in order),
        views=_stack([notes.rounds[place][0].view[row] for _, place, row in rows]),
        states=_stack([question.state for question, _ in notes.rounds]),
        state_of=np.array([place for _, place, _ in rows], np.int64),
        actions={
            layer: _stack([notes.rounds[place][1].actions[layer][row] for _, place, row in rows]) for layer in layers
        },
        log_probs={
            layer: np.array([notes.rounds[place][1].log_probs[layer][row] for _, place, row in rows], np.float32)
            for layer in layers
        },
        terms={name: np.array([ends[key][name] for key in order], np.float64) for name in THREAD_TERMS},
    )


def _thread_end(diary: EpisodeLog, day: int, partner: str) -> dict[str, float]:
    entry = diary.threads.get((day, partner))
    obs = next(found.obs for found in reversed(diary.days) if found.obs.day == day)
    if entry is None:  # cut off by somebody's exception: neither deal nor end was told
        return dict.fromkeys(THREAD_TERMS, 0.0)
    return thread_terms(
        obs,
        buying=entry.buying,
        deal=entry.deal,
        goal_quantity=entry.goal_quantity,
        goal_price=entry.goal_price,
    )
