"""Signatures of all pairs of a recorded world: the events of every thread, in order, seen from both sides.

The same `Signature` takes live events in play and recorded ones here. A factory's turn shows what it knew: the offer
on the table, if it answers one. A snapshot is taken before a factory decides, as in play.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from litaagent_std.hrl_xf.training.partners.mixture import Mixture
from litaagent_std.policy.arrays import Array
from litaagent_std.policy.l1.baseline import progress_at
from litaagent_std.policy.l3.heuristic import ARCHETYPES
from litaagent_std.policy.observation import Offer
from litaagent_std.policy.partners.signature import FEATURES, Frame, Signature
from litaagent_std.records.columns import REJECT, ints
from litaagent_std.records.world import WorldRecord

__all__ = ["COLUMNS", "TABLES", "PairView", "decisions", "fold_world", "type_of"]

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


@dataclass(slots=True)
class PairView:
    """What a factory knows of a partner in one thread.

    Attributes:
        frame: The side's day.
        signature: The partner's signature.
        mixture: The hand-written belief; None if it is not computed.
        opens: Whether the factory opens the thread.
        edge: Whether the partner is at an end of the chain.
        seats: The factory's seat and the partner's.
        round: Rounds completed before the present decision.
        decisions: The factory's decisions in this thread before the present one.
    """

    frame: Frame
    signature: Signature
    mixture: Mixture | None
    opens: bool
    edge: bool
    seats: tuple[int, int]
    round: int = 0
    decisions: int = 0

    def receive(self, offer: Offer | None, round_: int) -> None:
        """Take the offer on the table before a decision; None if there is none."""
        self.round = round_
        if offer is not None:
            self.signature.receive(self.frame, offer, round_ - self.opens)
            if self.mixture is not None:
                self.mixture.receive(offer)

    def propose(self, offer: Offer, received: Offer | None) -> None:
        """Take the factory's own proposal."""
        time = progress_at(self.round, self.frame.n_rounds, opens=self.opens, proposing=True)
        self.signature.propose(self.frame, offer, time)
        if self.mixture is not None and offer != received:
            self.mixture.propose(offer, time)

    def end(self, agreement: Offer | None) -> None:
        """Take the end of the thread."""
        if agreement is None:
            self.signature.fail()
        else:
            self.signature.agree(agreement)
        if self.mixture is not None:
            self.mixture.end(agreement)

    def features(self) -> list[float]:
        """Return the signature's features at this moment."""
        return self.signature.features(selling=self.frame.selling, edge=self.edge, opens=self.opens)


class _World:
    """A recorded world while its threads are folded.

    Args:
        record: The world.
        mixture: Whether to fold the hand-written belief of competitors too.
    """

    def __init__(self, record: WorldRecord, *, mixture: bool) -> None:
        self.columns = record.columns
        facts, markets = record.facts, record.tables["markets"]
        self.n_levels: int = facts["n_levels"]
        self.levels = [row["level"] for row in record.factories]
        self.lines = [row["n_lines"] for row in record.factories]
        self._mixture = [mixture and _observer(row["agent_type"]) > 0 for row in record.factories]
        bounds = [ints(markets[name]).tolist() for name in ("day", "product", "price_min", "price_max")]
        self.prices = {(day, product): (low, high) for day, product, low, high in zip(*bounds, strict=True)}
        self.signatures: dict[tuple[int, int], Signature] = {}
        self.mixtures: dict[tuple[int, int], Mixture] = {}

    def views(self, thread: int) -> dict[int, PairView]:
        """Return the views of both sides at the start of a thread."""
        c = self.columns
        day, buyer, seller, caller = (int(column[thread]) for column in (c.day, c.buyer, c.seller, c.caller))
        prices = self.prices[day, int(c.product[thread])]
        views = {}
        for me, partner in ((buyer, seller), (seller, buyer)):
            selling = me == seller
            frame = Frame(day, c.horizon, self.lines[me], *prices, c.n_rounds, selling)
            edge = self.levels[me] == self.n_levels - 2 if selling else self.levels[me] == 1
            signature = self.signatures.setdefault((me, partner), Signature())
            mixture = None
            if self._mixture[me]:
                mixture = self.mixtures.setdefault((me, partner), Mixture())
                mixture.start(frame, edge=edge)
            views[me] = PairView(frame, signature, mixture, caller == me, edge, (me, partner))
        return views


def decisions(record: WorldRecord, *, mixture: bool = False) -> Iterator[PairView]:
    """Fold a world thread by thread.

    Args:
        record: The world.
        mixture: Whether to fold the hand-written belief of competitors too.

    Yields:
        What a factory knows of its partner, before each of its decisions.
    """
    world = _World(record, mixture=mixture)
    c = world.columns
    # plain lists: element access is much faster than in arrays
    factory, rounds, answers, op = (column.tolist() for column in (c.factory, c.round, c.answers, c.op))
    own, received = c.own_offer.tolist(), c.received.tolist()
    offers = [Offer(*terms) for terms in c.offers.tolist()]
    agreements = _agreements(record)
    ends = np.searchsorted(c.thread, np.arange(len(c.day)), side="right").tolist()  # [thread] after its last turn
    for thread, (start, end) in enumerate(pairwise([0, *ends])):
        views = world.views(thread)
        for turn in range(start, end):
            view = views[factory[turn]]
            on_table = offers[received[turn]] if answers[turn] else None
            view.receive(on_table, rounds[turn])
            yield view
            view.decisions += 1
            if op[turn] == REJECT:
                view.propose(offers[own[turn]], on_table)
        for view in views.values():
            view.end(agreements[thread])


def _agreements(record: WorldRecord) -> list[Offer | None]:
    """Return the agreement of each negotiation."""
    table = record.tables["negotiations"]
    columns = [ints(table[name]).tolist() for name in ("quantity", "time", "unit_price")]
    return [None if terms[0] < 0 else Offer(*terms) for terms in zip(*columns, strict=True)]


def fold_world(record: WorldRecord, *, mixture: bool = False) -> dict[str, Array]:
    """Return a world's snapshots as the arrays of `COLUMNS`.

    All threads of the first days are in it, and later ones and later decisions of a thread at random, from a stream
    that depends on the world alone.

    Args:
        record: The world.
        mixture: Whether to compute the hand-written belief of competitors.
    """
    rng = random.Random(int(record.facts["seed"]))
    kinds = [row["agent_type"] for row in record.factories]
    labels, observers = [type_of(kind) for kind in kinds], [_observer(kind) for kind in kinds]
    unknown = [np.nan] * len(ARCHETYPES)
    rows: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for view in decisions(record, mixture=mixture):
        day, first = view.frame.day, view.decisions == 0
        chance = (1.0 if day < EARLY_DAYS else 0.2) if first else (0.15 if day < 3 else 0.015)
        if observers[view.seats[0]] == 2:
            chance = 1.0 if first else 2.0 * chance  # our own agent's view is what plays
        if rng.random() >= chance:
            continue
        rows["features"].append(view.features())
        rows["label"].append(labels[view.seats[1]])
        rows["day"].append(day)
        rows["decision"].append(view.decisions)
        rows["observer"].append(observers[view.seats[0]])
        rows["selling"].append(view.frame.selling)
        rows["edge"].append(view.edge)
        rows["mixture"].append(unknown if view.mixture is None else view.mixture.weights)
    widths = {"features": (-1, len(FEATURES)), "mixture": (-1, len(ARCHETYPES))}
    return {name: np.array(values, COLUMNS[name]).reshape(widths.get(name, (-1,))) for name, values in rows.items()}
