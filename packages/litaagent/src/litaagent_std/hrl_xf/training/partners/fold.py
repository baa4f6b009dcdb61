"""Signatures of all pairs of a recorded world: the events of every thread, in order, seen from both sides.

The same `Signatures` take live events in play and recorded ones here: day by day, the k-th turns of all its threads at
once. A factory's turn shows what it knew: the offer on the table, if it answers one. A snapshot is taken before a
factory decides, as in play. For comparison the hand-written belief (`l3.heuristic.Mixture`) is folded over the same
events.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from litaagent_std.policy.arrays import Array, Bools, Floats, Floats32, Ints
from litaagent_std.policy.columns import ThreadBatch, ranks
from litaagent_std.policy.l1.baseline import progress
from litaagent_std.policy.l3.heuristic import ARCHETYPES, Acceptance, Market, Mixture, Offers
from litaagent_std.policy.parameters import Parameters
from litaagent_std.policy.partners.signature import FEATURES, Frames, Signatures
from litaagent_std.records.columns import REJECT, WorldColumns, ints
from litaagent_std.records.world import WorldRecord

__all__ = ["COLUMNS", "TABLES", "Snapshots", "fold_world", "snapshots", "type_of"]

TABLES: Final = ("worlds", "factories", "markets", "days", "negotiations", "turns")
"""Tables that are read of a world."""

COLUMNS: Final[Mapping[str, str]] = {
    "features": "f4",
    "label": "i1",
    "day": "i2",
    "decision": "i2",
    "observer": "i1",
    "selling": "?",
    "edge": "?",
    "mixture": "f4",
}
"""Arrays of a dataset of snapshots, and their types; ``observer`` is 2 for our agent, 1 for other competitors, 0 for
default agents; ``mixture`` is NaN where the hand-written belief was not computed."""

EARLY_DAYS: Final = 6
"""Days whose threads are all in the dataset."""

_DEFAULT_AGENTS: Final = {"RandomStdAgent": "random", "GreedyStdAgent": "greedy", "SyncRandomStdAgent": "sharing"}
_OURS: Final = "litaagent_std."


def type_of(agent_type: str) -> int:
    """Return the index of an agent's type in `ARCHETYPES`: the league's default agents by class, all others able."""
    module, _, name = agent_type.rpartition(".")
    default = module.startswith("scml.") and name in _DEFAULT_AGENTS
    return ARCHETYPES.index(_DEFAULT_AGENTS[name] if default else "able")


def _observer(agent_type: str) -> int:
    if agent_type.startswith(_OURS):
        return 2
    return int(type_of(agent_type) == ARCHETYPES.index("able"))


@dataclass(frozen=True, slots=True, eq=False)
class Snapshots:
    """What factories know of their partners before each of their decisions in a world, a row for each turn.

    Attributes:
        seats: The factory and its partner, ``[T, 2]``.
        day: The day, ``[T]``.
        round: Rounds completed, ``[T]``.
        decision: The factory's decisions in this thread before, ``[T]``.
        selling: Whether the factory sells, ``[T]``.
        edge: Whether the partner is at an end of the chain, ``[T]``.
        features: The partner's signature, ``[T, F]``; 0 for turns that were not wanted.
        mixture: The hand-written belief, ``[T, 4]``; NaN where it was not computed.
    """

    seats: Ints
    day: Ints
    round: Ints
    decision: Ints
    selling: Bools
    edge: Bools
    features: Floats32
    mixture: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Turns:
    """The turns of a world with the facts of their day and side, ``[T]`` each."""

    pair: Ints
    partner: Ints
    index: Ints
    decision: Ints
    opens: Bools
    edge: Bools
    frames: Frames
    time: Floats
    on_table: Ints
    own: Ints

    @classmethod
    def of(cls, record: WorldRecord, c: WorldColumns) -> _Turns:
        n, thread = len(record.factories), c.thread
        levels, lines = (np.array([row[name] for row in record.factories]) for name in ("level", "n_lines"))
        selling = c.factory == c.seller[thread]
        partner = np.where(selling, c.buyer[thread], c.seller[thread])
        level, n_levels = levels[c.factory], record.facts["n_levels"]
        day, opens = c.day[thread], c.caller[thread] == c.factory
        markets = record.tables["markets"]
        prices = np.zeros((c.n_days, n_levels + 1, 2), np.int64)  # [day, product, end]
        at = (ints(markets["day"]), ints(markets["product"]))
        prices[at] = np.stack([ints(markets[name]) for name in ("price_min", "price_max")], axis=1)
        low, high = prices[day, c.product[thread]].T
        size = len(thread)
        rounds = np.full(size, c.n_rounds)
        frames = Frames.of(day, np.full(size, c.horizon), lines[c.factory], low, high, selling)
        none, offers = np.zeros((1, 3), np.int64), c.offers
        offers = offers if len(offers) else none
        threads = ThreadBatch(
            day, selling, partner, c.round, rounds, opens, c.answers, offers[np.maximum(0, c.received)]
        )
        return cls(
            c.factory * n + partner,
            partner,
            ranks(thread),
            ranks(thread * n + c.factory),
            opens,
            np.where(selling, level == n_levels - 2, level == 1),
            frames,
            progress(threads, proposing=True),
            threads.offer,
            offers[np.minimum(c.own_offer, len(offers) - 1)],
        )


class _Proposals:
    """The outstanding proposals of pairs: whether there is one ``[N]``, its terms ``[N, 3]`` and its time ``[N]``."""

    def __init__(self, pairs: int) -> None:
        self.pending = np.zeros(pairs, np.bool_)
        self.offer, self.time = np.zeros((pairs, 3), np.int64), np.zeros(pairs)

    def add(self, turns: _Turns, rows: Ints) -> None:
        """Take the proposals of turns."""
        pair = turns.pair[rows]
        self.pending[pair], self.offer[pair], self.time[pair] = True, turns.own[rows], turns.time[rows]


class _Beliefs:
    """The hand-written beliefs of both sides over recorded events."""

    def __init__(self, proposals: _Proposals, horizon: int, lines: int) -> None:
        pairs = len(proposals.pending)
        rate = np.full(pairs, Parameters().learn_rate)
        self._mixtures = (Mixture(rate), Mixture(rate))
        self._sides = tuple(
            Acceptance(mixture, pairs, 1, horizon + 1, lines, selling=selling)
            for mixture, selling in zip(self._mixtures, (False, True), strict=True)
        )
        self._proposals = proposals

    def start_day(self) -> None:
        """Start the threads of a day: what was refused on an earlier day counts no more."""
        for side in self._sides:
            side.start_day(slice(None))

    def answer(self, turns: _Turns, rows: Ints, *, accepted: bool) -> None:
        """Take partners' answers to outstanding proposals, given a turn of each pair."""
        rows = rows[self._proposals.pending[turns.pair[rows]]]
        for selling, side in enumerate(self._sides):
            own = rows[turns.frames.selling[rows] == selling]
            if len(own):
                pair, f = turns.pair[own], turns.frames.take(own)
                one = np.ones(len(own), np.int64)
                market = Market(
                    f.day, f.n_lines, f.horizon + 1, one, f.n_lines, f.price_min, f.price_max, turns.edge[own]
                )
                offer = self._proposals.offer[pair]
                offers = Offers(market, offer[:, 1] - f.day, offer[:, 0], offer[:, 2])
                side.observe(pair, offers, self._proposals.time[pair], accepted=accepted)

    def receive(self, turns: _Turns, rows: Ints) -> None:
        """Take partners' own offers, which refuse our proposals."""
        self.answer(turns, rows, accepted=False)
        for selling, mixture in enumerate(self._mixtures):
            own = rows[turns.frames.selling[rows] == selling]
            if len(own):
                mixture.observe_offers(turns.pair[own], turns.on_table[own, 0] > turns.frames.n_lines[own])

    def end(self, turns: _Turns, rows: Ints, agreement: Ints) -> None:
        """Take the ends of threads, given a turn of each pair and its agreement (-1 if there is none)."""
        failed = agreement[:, 0] < 0
        self.answer(turns, rows[failed], accepted=False)
        same = ~failed & (self._proposals.offer[turns.pair[rows]] == agreement).all(1)
        self.answer(turns, rows[same], accepted=True)

    def weights(self, turns: _Turns, rows: Ints) -> Floats:
        """Return the beliefs of turns, ``[R, 4]``."""
        sides = [mixture.weights(turns.pair[rows]) for mixture in self._mixtures]
        return np.where(turns.frames.selling[rows][:, None], sides[1], sides[0])


def snapshots(record: WorldRecord, wanted: Bools | None = None, *, mixture: bool = False) -> Snapshots:
    """Fold a world.

    Args:
        record: The world.
        wanted: Turns whose features are computed, ``[T]``; default: all.
        mixture: Whether to fold the hand-written belief of competitors too.
    """
    c = record.columns
    turns, n = _Turns.of(record, c), len(record.factories)
    wanted = np.ones(len(c.thread), np.bool_) if wanted is None else wanted
    observers = np.array([_observer(row["agent_type"]) > 0 for row in record.factories])
    believes = observers[c.factory] & mixture  # [T] turns whose factory has a hand-written belief
    signatures, proposals = Signatures(n * n), _Proposals(n * n)
    beliefs = _Beliefs(proposals, c.horizon, int(turns.frames.n_lines.max(initial=1)))
    features = np.zeros((len(c.thread), len(FEATURES)), np.float32)
    weights = np.full((len(c.thread), len(ARCHETYPES)), np.nan)
    agreements = np.stack([ints(record.tables["negotiations"][x]) for x in ("quantity", "time", "unit_price")], axis=1)
    for day in np.unique(turns.frames.day).tolist():
        today = np.flatnonzero(turns.frames.day == day)
        proposals.pending[:] = False
        signatures.start_day(slice(None))
        beliefs.start_day()
        for step in range(int(turns.index[today].max()) + 1):
            rows = today[turns.index[today] == step]
            answered = rows[c.answers[rows]]
            if len(answered):
                late = 2 * (c.round[answered] - turns.opens[answered]) > c.n_rounds
                pair, frames = turns.pair[answered], turns.frames.take(answered)
                refused = proposals.pending[pair]
                signatures.receive(pair, frames, turns.on_table[answered], late, refused, proposals.offer[pair])
                beliefs.receive(turns, answered[believes[answered]])
                proposals.pending[pair] = False
            kept = rows[wanted[rows]]
            if len(kept):
                facts = (turns.frames.selling[kept], turns.edge[kept], turns.opens[kept])
                features[kept] = signatures.features(turns.pair[kept], selling=facts[0], edge=facts[1], opens=facts[2])
                judged = kept[believes[kept]]
                weights[judged] = beliefs.weights(turns, judged)
            back = c.answers[rows] & (turns.own[rows] == turns.on_table[rows]).all(1)  # its own offer is no proposal
            proposals.add(turns, rows[(c.op[rows] == REJECT) & ~back])
        last = today[turns.decision[today] == 0]  # a turn of each pair that acted
        _end(signatures, proposals, turns, last, agreements[c.thread[last]])
        judged = last[believes[last]]
        beliefs.end(turns, judged, agreements[c.thread[judged]])
    seats = np.stack([c.factory, turns.partner], axis=1)
    selling = turns.frames.selling
    return Snapshots(seats, turns.frames.day, c.round, turns.decision, selling, turns.edge, features, weights)


def _end(signatures: Signatures, proposals: _Proposals, turns: _Turns, rows: Ints, agreement: Ints) -> None:
    """Take the ends of threads, given a turn of each pair and its agreement (-1 if there is none)."""
    pair = turns.pair[rows]
    pending, offer, time = proposals.pending[pair], proposals.offer[pair], proposals.time[pair]
    left, agreed = (agreement[:, 0] < 0) & pending, agreement[:, 0] >= 0
    signatures.fail(pair[left], turns.frames.take(rows[left]), offer[left], time[left])
    by_it = (pending & (offer == agreement).all(1))[agreed]
    signatures.agree(pair[agreed], turns.frames.take(rows[agreed]), agreement[agreed], time[agreed], by_it)


def fold_world(record: WorldRecord, *, mixture: bool = False) -> dict[str, Array]:
    """Return a world's snapshots as the arrays of `COLUMNS`.

    All threads of the first days are in it, and later ones and later decisions of a thread at random, from a stream
    that depends on the world alone.

    Args:
        record: The world.
        mixture: Whether to compute the hand-written belief of competitors.
    """
    rng, c = random.Random(int(record.facts["seed"])), record.columns
    kinds = [row["agent_type"] for row in record.factories]
    labels, observers = np.array([type_of(kind) for kind in kinds]), np.array([_observer(kind) for kind in kinds])
    day, first = c.day[c.thread], ranks(c.thread * len(kinds) + c.factory) == 0
    chance = np.where(first, np.where(day < EARLY_DAYS, 1.0, 0.2), np.where(day < 3, 0.15, 0.015))
    # our own agent's view is what plays
    chance = np.where(observers[c.factory] == 2, np.where(first, 1.0, 2.0 * chance), chance)
    rows = np.flatnonzero(np.array([rng.random() for _ in range(len(day))]) < chance)
    wanted = np.zeros(len(day), np.bool_)
    wanted[rows] = True
    made = snapshots(record, wanted, mixture=mixture)
    columns: dict[str, Array] = {
        "features": made.features[rows],
        "label": labels[made.seats[rows, 1]],
        "day": made.day[rows],
        "decision": made.decision[rows],
        "observer": observers[made.seats[rows, 0]],
        "selling": made.selling[rows],
        "edge": made.edge[rows],
        "mixture": made.mixture[rows],
    }
    return {name: columns[name].astype(kind) for name, kind in COLUMNS.items()}
