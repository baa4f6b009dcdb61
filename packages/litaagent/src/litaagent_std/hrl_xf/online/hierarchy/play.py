"""Worlds in lockstep with the networks in our seats, and the rows that their layers sampled."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from litaagent_std.hrl_xf.online.config import Layer
from litaagent_std.hrl_xf.online.episodes import EpisodeLog, outcome_terms
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.hierarchy.rows import flat_days, flat_threads, flat_weights, state_of
from litaagent_std.hrl_xf.online.lockstep import Lockstep, LockstepSeat, LockstepWorld
from litaagent_std.hrl_xf.online.rollout import DayRows, RoundRows, SeatRollout, WorldRollout
from litaagent_std.hrl_xf.online.worlds import TrainingWorld
from litaagent_std.hrl_xf.rewards import DAY_TERMS, THREAD_TERMS, DayWeights, day_terms
from litaagent_std.policy.arrays import Array, Floats32, Ints, true_rows
from litaagent_std.policy.layers import LayerSet
from litaagent_std.policy.networks.exploration import Exploration

__all__ = ["play_worlds"]


def play_worlds(
    worlds: Sequence[TrainingWorld],
    policies: Hierarchy,
    weights: DayWeights,
    rng_seeds: Sequence[int | None],
    *,
    record: bool = False,
) -> list[WorldRollout]:
    """Play worlds to their ends in lockstep, with the same networks in all our seats.

    Args:
        worlds: The worlds.
        policies: The networks.
        weights: Form and discount of the potential.
        rng_seeds: Seed of the exploration in each world; None for none.
        record: Whether rows are kept even if no world explores.
    """
    began = time.process_time()
    made: list[tuple[Sequence[LockstepSeat], Exploration | None]] = []
    lockstep: Lockstep

    def make_layers(seats: Sequence[LockstepSeat]) -> LayerSet:
        rngs = [_rng(rng_seeds[_world_of(lockstep, seat)], seat.seat) for seat in seats]
        explores = record or any(rng is not None for rng in rngs)
        exploration = Exploration(rngs) if explores else None
        made.append((seats, exploration))
        return policies.layers(exploration)

    lockstep = Lockstep(make_layers)
    try:
        played = lockstep.add(worlds)
        lockstep.run()
        horizon = int(policies.nets["l2"].meta["horizon"]) if policies.nets else 0
        by_seat: dict[int, SeatRollout] = {}
        for seats, exploration in made:
            rows = _Rows(exploration, len(seats), horizon)
            for row, seat in enumerate(seats):
                world = played[_world_of(lockstep, seat)]
                by_seat[id(seat)] = _seat_rollout(world, seat, rows, row, weights)
    finally:
        lockstep.close()
    # the time of a batch is shared by its worlds; that of the networks is part of the policy's
    policy = lockstep.seconds / len(worlds)
    seconds = {"inference": policy, "policy": policy, "total": (time.process_time() - began) / len(worlds)}
    return [
        WorldRollout(
            policies.version,
            world.training_world.setup.seed,
            world.training_world.setup.n_days,
            tuple(by_seat[id(seat)] for seat in world.ours),
            dict(seconds),
        )
        for world in played
    ]


def _world_of(lockstep: Lockstep, seat: LockstepSeat) -> int:
    return next(index for index, world in enumerate(lockstep.worlds) if any(own is seat for own in world.ours))


def _rng(seed: int | None, seat: int) -> np.random.Generator | None:
    return None if seed is None else np.random.default_rng(np.random.SeedSequence([seed, seat]))


class _Rows:
    """All samples of a batch, by factory.

    Args:
        exploration: The samples; None if there are none.
        count: Number of factories.
        horizon: The horizon of the networks.
    """

    def __init__(self, exploration: Exploration | None, count: int, horizon: int) -> None:
        self._days: dict[str, Array] = {}
        self._rounds: dict[str, Array] = {}
        self._weights: dict[str, Array] = {}
        self._states: Floats32 | None = None
        if exploration is None:
            return
        if exploration.days:
            days = exploration.days
            self._days = {
                "seat": np.concatenate([sample.seats for sample in days]),
                "day": np.concatenate([sample.day for sample in days]),
                "view": np.concatenate([flat_days(sample.inputs, horizon) for sample in days]),
                "action": np.concatenate([sample.action for sample in days]),
                "log_prob": np.concatenate([sample.log_prob for sample in days]),
            }
        if exploration.rounds:
            rounds = exploration.rounds
            self._states, state = state_of(rounds, count)
            self._rounds = {
                "seat": np.concatenate([sample.seats for sample in rounds]),
                "key": np.concatenate([_key(x.day, x.selling, x.partner, x.round) for x in rounds]),
                "view": np.concatenate([flat_threads(sample.inputs, horizon) for sample in rounds]),
                "action": np.concatenate([sample.action for sample in rounds]),
                "log_prob": np.concatenate([sample.log_prob for sample in rounds]),
                "state": state,
            }
        if exploration.weights:
            weights = exploration.weights
            at = [np.nonzero(sample.mask) for sample in weights]
            self._weights = {
                "seat": np.concatenate([x.seats[row] for x, (row, _) in zip(weights, at, strict=True)]),
                "key": np.concatenate(
                    [
                        _key(x.day[row], x.selling, x.partner[row, k], x.round[row, k])
                        for x, (row, k) in zip(weights, at, strict=True)
                    ]
                ),
                "view": np.concatenate([flat_weights(sample) for sample in weights]),
                "action": np.concatenate([x.action[x.mask][:, None] for x in weights]),
                "log_prob": np.concatenate([x.log_prob[x.mask] for x in weights]),
            }

    def days(self, seat: int) -> dict[str, Array]:
        """Return L2's rows of a factory, by day; empty if L2 does not learn."""
        return _of(self._days, seat, "day")

    def rounds(self, seat: int) -> dict[str, Array]:
        """Return L3's rows of a factory."""
        return _of(self._rounds, seat, "key")

    def weights(self, seat: int) -> dict[str, Array]:
        """Return L4's rows of a factory."""
        return _of(self._weights, seat, "key")

    @property
    def states(self) -> Floats32:
        """What a central critic sees, a row for each round."""
        return np.zeros((1, 0), np.float32) if self._states is None else self._states


_PARTNERS, _ROUNDS = 64, 1024


def _key(day: Ints, selling: bool, partner: Ints, round_: Ints) -> Ints:
    """Return a number for each row that orders them by thread and round; `_thread_of` is that of the thread."""
    return np.asarray(((day * 2 + int(selling)) * _PARTNERS + partner) * _ROUNDS + round_, np.int64)


def _of(columns: dict[str, Array], seat: int, order: str) -> dict[str, Array]:
    if not columns:
        return {}
    rows = true_rows(columns["seat"] == seat)
    rows = rows[np.argsort(columns[order][rows], kind="stable")]
    return {name: values[rows] for name, values in columns.items()}


def _seat_rollout(world: LockstepWorld, seat: LockstepSeat, rows: _Rows, row: int, weights: DayWeights) -> SeatRollout:
    training_world, score = world.training_world, world.score(seat.seat)
    return SeatRollout(
        seat=seat.seat,
        kind=training_world.kind(seat.seat),
        score=score,
        beaten={name: score > world.score(rival) for rival, name in training_world.rivals.items()},
        health=world.health(seat.seat),
        days=_days(seat.episode, rows.days(row), world.cash(seat.seat), weights),
        rounds=_rounds(seat, rows, row),
    )


def _days(episode: EpisodeLog, made: dict[str, Array], final_cash: float, weights: DayWeights) -> DayRows:
    decided = [entry for entry in episode.days if entry.has_decision]
    terms: dict[str, list[float]] = {name: [] for name in DAY_TERMS}
    # a decision's reward lasts until the next decision, or until the end of the world
    for index, entry in enumerate(decided):
        after = decided[index + 1].obs if index + 1 < len(decided) else None
        end_calendar = entry.end_calendar or entry.obs.calendar
        for name, value in day_terms(entry.obs, end_calendar, after, final_cash, weights).items():
            terms[name].append(value)
    day = np.array([entry.obs.day for entry in decided], np.int64)
    none = np.zeros((len(day), 0), np.float32)
    if made:
        kept = np.isin(made["day"], day)
        made = {name: values[kept] for name, values in made.items()}
    return DayRows(
        day=day,
        views=made.get("view", none),
        actions=made.get("action", none),
        log_probs=made.get("log_prob", np.zeros(len(day), np.float32)),
        terms={name: np.array(values, np.float64) for name, values in terms.items()},
    )


def _rounds(seat: LockstepSeat, rows: _Rows, row: int) -> RoundRows | None:
    l3, l4 = rows.rounds(row), rows.weights(row)
    made = l3 or l4
    if not made:
        return None
    names = ([partner.name for partner in seat.obs.suppliers], [partner.name for partner in seat.obs.consumers])
    threads, thread = np.unique(made["key"] // _ROUNDS, return_inverse=True)
    keys = [(int(key) // (2 * _PARTNERS), names[int(key) // _PARTNERS % 2][int(key) % _PARTNERS]) for key in threads]
    terms = [_outcome(seat.episode, *key) for key in keys]
    by_layer: dict[Layer, dict[str, Array]] = {"l3": l3, "l4": l4}
    return RoundRows(
        thread=thread.ravel().astype(np.int64),
        day=np.array([day for day, _ in keys], np.int64),
        partner=tuple(partner for _, partner in keys),
        views={layer: own["view"] for layer, own in by_layer.items() if own},
        states=rows.states,
        state_of=l3["state"] if l3 else np.zeros(len(thread), np.int64),
        actions={layer: own["action"] for layer, own in by_layer.items() if own},
        log_probs={layer: own["log_prob"] for layer, own in by_layer.items() if own},
        terms={name: np.array([term[name] for term in terms], np.float64) for name in THREAD_TERMS},
    )


def _outcome(episode: EpisodeLog, day: int, partner: str) -> dict[str, float]:
    outcome = episode.threads.get((day, partner))
    if outcome is None:  # cut off by an exception of an agent: there was no event of its end
        return dict.fromkeys(THREAD_TERMS, 0.0)
    return outcome_terms(episode.entry(day).obs, outcome)
