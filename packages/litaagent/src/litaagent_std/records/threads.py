"""What a factory knew of its negotiation threads before each of its turns, rebuilt from a record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from litaagent_std.policy.arrays import Floats, Ints
from litaagent_std.policy.columns import OfferBatch, ThreadBatch
from litaagent_std.policy.observation import Calendar, Offer, ThreadObservation, Turn
from litaagent_std.records.columns import WorldColumns, ints
from litaagent_std.records.observations import WorldDays
from litaagent_std.records.storage.segment import Tables

__all__ = ["RecordedThreads", "decisions", "recorded_threads"]


@dataclass(frozen=True, slots=True)
class RecordedThreads:
    """The turns of some factories; see `policy.features.thread_features` for `start` and `count`.

    Attributes:
        threads: The thread before each turn, ``[M]``; its seat is a row of `WorldDays.batch`.
        offers: All offers of all negotiations of these factories, those of the first factory first, ``[T]``.
        start: First offer of each turn's negotiation, ``[M]``.
        count: Offers before the turn, ``[M]``.
    """

    threads: ThreadBatch
    offers: OfferBatch
    start: Ints
    count: Ints


def recorded_threads(
    world: WorldColumns, days: WorldDays, seats: Sequence[int], turns: Sequence[Ints]
) -> RecordedThreads:
    """Return what factories knew before their turns.

    Args:
        world: The world's negotiations.
        days: Its observations.
        seats: The factories.
        turns: The turns of each factory.
    """
    # [N] per negotiation and factory of it: negotiation, factory and its index, offers, and the first of them in [T]
    own = [np.flatnonzero((world.buyer == seat) | (world.seller == seat)) for seat in seats]
    index = np.repeat(np.arange(len(seats)), [len(threads) for threads in own])
    thread, seat = np.concatenate(own), np.asarray(seats)[index]
    n_offers = world.n_offers[thread]
    first = np.cumsum(n_offers) - n_offers
    offers = _offers(world, thread, seat, index * days.n_days + world.day[thread], n_offers, first)
    start = np.zeros((len(seats), len(world.day)), np.int64)  # [factory, negotiation]
    start[index, thread] = first
    # [M] per turn
    index = np.repeat(np.arange(len(seats)), [len(own_turns) for own_turns in turns])
    turn, seat = np.concatenate(turns), np.asarray(seats)[index]
    thread = world.thread[turn]
    selling, answers = world.seller[thread] == seat, world.answers[turn]
    partner = np.where(selling, world.buyer[thread], world.seller[thread])
    received = np.where(answers, world.received[turn], 0)
    offer = world.offers[received] if len(world.offers) else np.zeros((len(turn), 3), np.int64)
    threads = ThreadBatch(
        seat=index * days.n_days + world.day[thread],
        selling=selling,
        partner=(partner - np.searchsorted(days.level, days.level[partner])),  # seats of a level follow each other
        round=world.round[turn],
        n_rounds=np.full(len(turn), world.n_rounds),
        opens=world.caller[thread] == seat,
        answers=answers,
        offer=np.where(answers[:, None], offer, 0),
    )
    return RecordedThreads(threads, offers, start[index, thread], world.before[turn])


def _offers(world: WorldColumns, thread: Ints, seat: Ints, row: Ints, n_offers: Ints, first: Ints) -> OfferBatch:
    """Return the offers of negotiations, each as one of its factories sees them.

    Args:
        world: The world's negotiations.
        thread: The negotiations, ``[N]``.
        seat: The factories, ``[N]``.
        row: Rows of their observations, ``[N]``.
        n_offers: Offers of the negotiations, ``[N]``.
        first: First of them in the result, ``[N]``.
    """
    number = np.repeat(np.arange(len(thread)), n_offers)  # [T]
    index = np.arange(len(number)) - first[number]
    offer = world.first_offer[thread][number] + index  # among all offers of the world
    return OfferBatch(
        seat=row[number],
        selling=(world.seller[thread] == seat)[number],
        n_rounds=np.full(len(number), world.n_rounds),
        index=index,
        mine=world.offer_by[offer] == seat[number],
        terms=world.offers[offer],
    )


def decisions(
    tables: Tables, world: WorldColumns, days: WorldDays, factory: int
) -> Iterator[tuple[ThreadObservation, int]]:
    """Yield what a factory knew of a thread before each of its turns, and the row of the turn, in the order of play.

    Args:
        tables: The world's tables.
        world: Its negotiations.
        days: Its observations.
        factory: The seat.
    """
    turn, decided = ints(tables["turns"]["turn"]), ints(tables["turns"]["decided"])
    own = np.flatnonzero(world.factory == factory)
    contracts = _Contracts(tables, days, factory)
    for row in own[np.lexsort((turn[own], world.day[world.thread[own]]))].tolist():
        thread = int(world.thread[row])
        day = int(world.day[thread])
        yield _observe(world, days, factory, row, contracts.calendar(day, int(decided[row]))), row


def _observe(world: WorldColumns, days: WorldDays, factory: int, row: int, calendar: Calendar) -> ThreadObservation:
    thread, before, answers = int(world.thread[row]), int(world.before[row]), bool(world.answers[row])
    first, buying, round_ = int(world.first_offer[thread]), world.buyer[thread] == factory, int(world.round[row])
    known = slice(first, first + before)
    offers = [
        Turn(made, by == factory, Offer(*terms))
        for made, by, terms in zip(
            world.offer_round[known].tolist(), world.offer_by[known].tolist(), world.offers[known].tolist(), strict=True
        )
    ]
    return ThreadObservation(
        day=int(world.day[thread]),
        partner=days.names[int(world.seller[thread] if buying else world.buyer[thread])],
        buying=bool(buying),
        round=round_,
        n_rounds=world.n_rounds,
        relative_time=min(1.0, (round_ + 1) / (world.n_rounds + 1)),
        opens=bool(world.caller[thread] == factory),
        offer=offers[-1].offer if answers else None,
        turns=tuple(offers[:-1] if answers else offers),
        calendar=calendar,
    )


class _Contracts:
    """A factory's contracts, for its calendar at any moment of a day.

    Args:
        tables: The world's tables.
        days: Its observations.
        factory: The seat.
    """

    def __init__(self, tables: Tables, days: WorldDays, factory: int) -> None:
        table = tables["contracts"]
        columns = [ints(table[name]) for name in ("day", "turn", "buyer", "seller", "time", "quantity", "unit_price")]
        own = (columns[2] == factory) | (columns[3] == factory)
        self._day, self._turn, self._buyer, _, self._time, self._quantity, self._price = (c[own] for c in columns)
        self._days, self._factory = days, factory

    def calendar(self, day: int, turns: int) -> Calendar:
        """Return the calendar after a number of the day's turns."""
        calendar: Floats = self._days.calendar[:, day, self._factory].copy()  # [4, lead]
        new = (self._day == day) & (self._turn < turns)
        row, lead = np.where(self._buyer[new] == self._factory, 0, 2), self._time[new] - day
        np.add.at(calendar, (row, lead), self._quantity[new])
        np.add.at(calendar, (row + 1, lead), self._quantity[new] * self._price[new])
        bought, bought_value, sold, sold_value = calendar.tolist()
        return Calendar(tuple(map(int, bought)), tuple(bought_value), tuple(map(int, sold)), tuple(sold_value))
