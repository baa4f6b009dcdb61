"""Observations as structs of arrays: what every function of the policy reads.

Each struct has a leading batch dimension: B factories' days, M threads, T offers. Days do not depend on each other: a
record's days are one batch; in live play the batch is one factory, in training all seats that wait. Sides are indexed
`BUY` and `SELL`; leads (days until delivery) are the last axis, 0 to the horizon H. Batches with different horizons or
numbers of partners are padded: `ObservationBatch.horizon` and `PartnerBatch.there` tell what exists.

There is one builder per source: `ObservationBatch.of` stacks live observations (`observation.observe_day`), the data
pipeline fills the same columns from the tables of a record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, NamedTuple, Self

import numpy as np

from .arrays import Array, Bools, Floats, Indices, Ints, true_rows
from .observation import REPORTS_KEPT, Agenda, Calendar, Observation, Partner, ThreadObservation

__all__ = [
    "BUY",
    "PRICE_DAYS",
    "SELL",
    "Batch",
    "CalendarBatch",
    "Histories",
    "ObservationBatch",
    "OfferBatch",
    "PartnerBatch",
    "ThreadBatch",
    "histories",
    "live_threads",
    "ranks",
]

BUY: Final = 0
SELL: Final = 1
PRICE_DAYS: Final = 10
"""Days before today whose trading prices an observation keeps."""

_WHOLE: Final = (
    "day", "n_days", "horizon", "level", "n_levels", "n_lines", "stock_in", "stock_out", "needed_sales",
    "needed_supplies", "exogenous_in", "exogenous_out",
)  # fmt: skip
_REAL: Final = (
    "cash", "initial_balance", "exogenous_in_value", "exogenous_out_value", "production_cost", "shortfall_penalty",
    "storage_cost", "disposal_cost", "shortfall_penalty_mean", "storage_cost_mean", "disposal_cost_mean",
)  # fmt: skip
_whole_of, _real_of = attrgetter(*_WHOLE), attrgetter(*_REAL)
_NO_AGENDA: Final = (0, 0, 0, 0, 0, 0)


class Batch:
    """A struct of arrays that share their first axis."""

    __slots__ = ()

    def take(self, rows: Array | slice) -> Self:
        """Return some rows."""
        taken: list[Any] = []
        names: tuple[str, ...] = self.__slots__  # the fields of a dataclass
        for name in names:
            value = getattr(self, name)
            taken.append(value.take(rows) if isinstance(value, Batch) else value[rows])
        return type(self)(*taken)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the rows of all parts; second axes that differ (leads, partners) are padded with zeros."""
        names: tuple[str, ...] = cls.__slots__  # the fields of a dataclass
        return cls(*[_joined([getattr(part, name) for part in parts]) for name in names])

    def copy(self) -> Self:
        """Return a copy."""
        names: tuple[str, ...] = self.__slots__
        return type(self)(*[getattr(self, name).copy() for name in names])

    def with_rows(self, rows: Array | slice, other: Self) -> Self:
        """Return the batch with some rows replaced, all of them if they are a slice; the batch stays as it is."""
        if isinstance(rows, slice):
            return other
        made = self.copy()
        made.put(rows, other)
        return made

    def put(self, rows: Array | slice, other: Self) -> None:
        """Replace some rows in place."""
        names: tuple[str, ...] = self.__slots__
        for name in names:
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, Batch):
                mine.put(rows, theirs)
            else:
                mine[rows] = theirs


def _joined(parts: Sequence[Any]) -> Any:  # noqa: ANN401 - arrays, or batches of them
    """Return the rows of arrays or batches of one kind."""
    if isinstance(parts[0], Batch):
        return type(parts[0]).joined(parts)
    if parts[0].ndim > 1 and len({part.shape[1] for part in parts}) > 1:
        width, rest = max(part.shape[1] for part in parts), [(0, 0)] * (parts[0].ndim - 2)
        parts = [np.pad(part, [(0, 0), (0, width - part.shape[1]), *rest]) for part in parts]
    return np.concatenate(parts)


@dataclass(frozen=True, slots=True, eq=False)
class CalendarBatch(Batch):
    """Standing commitments by lead, each ``[B, H + 1]``; fields as in `observation.Calendar`."""

    bought: Ints
    bought_value: Floats
    sold: Ints
    sold_value: Floats

    @classmethod
    def of(cls, calendars: Sequence[Calendar], length: int | None = None) -> CalendarBatch:
        """Stack calendars; shorter ones are padded with zeros to `length`."""
        width = max(len(calendar.sold) for calendar in calendars) if length is None else length
        table = np.zeros((4, len(calendars), width))
        for row, calendar in enumerate(calendars):
            parts = (calendar.bought, calendar.bought_value, calendar.sold, calendar.sold_value)
            table[:, row, : len(calendar.sold)] = parts
        return cls(table[0].astype(np.int64), table[1], table[2].astype(np.int64), table[3])


@dataclass(frozen=True, slots=True, eq=False)
class PartnerBatch(Batch):
    """The suppliers, consumers or competitors of B factories, P at most.

    Attributes:
        there: Which entries are partners, ``[B, P]``; the others are 0.
        bankrupt: Whether a partner is bankrupt today, ``[B, P]``.
        n_reports: Number of its reports that are kept, ``[B, P]``.
        report_days: Their days, the latest last, ``[B, P, REPORTS_KEPT]``; entries before the first are 0.
        report_cash: Cash in them, likewise.
        assets: Assets in the latest report, ``[B, P]``.
        breach_probability: Its share of days with a breach, ``[B, P]``.
        breach_level: Its mean breach level, ``[B, P]``.
    """

    there: Bools
    bankrupt: Bools
    n_reports: Ints
    report_days: Ints
    report_cash: Floats
    assets: Floats
    breach_probability: Floats
    breach_level: Floats

    @classmethod
    def of(cls, groups: Sequence[Sequence[Partner]], width: int | None = None) -> PartnerBatch:
        """Stack groups of partners, padded to `width`."""
        columns = max((len(group) for group in groups), default=0) if width is None else width
        rows = [row for group in groups for row in (*map(_partner_row, group), *[_NO_PARTNER] * (columns - len(group)))]
        # [B, P, …] there, bankrupt, assets, breach probability, breach level, reports, their days, their cash
        table = np.array(rows, np.float64).reshape(len(groups), columns, len(_NO_PARTNER))
        there, bankrupt = table[..., 0] > 0.0, table[..., 1] > 0.0
        whole = table[..., 5:-REPORTS_KEPT].astype(np.int64)
        n_reports, days, cash = whole[..., 0], whole[..., 1:], table[..., -REPORTS_KEPT:]
        return cls(there, bankrupt, n_reports, days, cash, table[..., 2], table[..., 3], table[..., 4])

    def report(self, kept: int) -> tuple[Ints, Floats]:
        """Return day and cash of the oldest of a partner's latest `kept` reports, ``[B, P]``; 0 if there is none."""
        index = REPORTS_KEPT - np.maximum(1, np.minimum(kept, self.n_reports))
        index += REPORTS_KEPT * np.arange(index.size).reshape(index.shape)  # of all partners' reports in a row
        return self.report_days.reshape(-1).take(index), self.report_cash.reshape(-1).take(index)


_NO_PARTNER: Final = (0.0,) * (6 + 2 * REPORTS_KEPT)


def _partner_row(p: Partner) -> tuple[float, ...]:
    """Return a partner as a row of the table of `PartnerBatch.of`."""
    kept = len(p.report_days)
    pad = _NO_PARTNER[: REPORTS_KEPT - kept]
    facts = (1.0, p.bankrupt, p.assets, p.breach_probability, p.breach_level, kept)
    return (*facts, *pad, *p.report_days, *pad, *p.report_cash)


@dataclass(frozen=True, slots=True, eq=False)
class ObservationBatch(Batch):
    """B factories' days, each before its negotiations.

    Fields with the name of one of `observation.Observation` are its columns, ``[B]``. The others:

    Attributes:
        price: Trading prices of input and output, ``[B, 2]``.
        catalog: Their catalog prices, ``[B, 2]``.
        past: Trading prices of input and output k days ago, or on the first day, ``[B, PRICE_DAYS + 1, 2]``.
        n_past: Days before today that were observed, ``[B]``.
        market_price: Trading prices of the chain's first and last product, ``[B, 2]``.
        market_quantity: Units of their exogenous contracts today, ``[B, 2]``.
        market_value: Total price of these contracts, ``[B, 2]``.
        trades: Whether there is an agenda, ``[B, 2]`` by side.
        agenda: Ends of the legal ranges in the order of `observation.Agenda`, ``[B, 2, 6]``; 0 without an agenda.
        calendar: Standing commitments at the day's start.
    """

    day: Ints
    n_days: Ints
    horizon: Ints
    level: Ints
    n_levels: Ints
    n_lines: Ints
    perishable: Bools
    cash: Floats
    initial_balance: Floats
    stock_in: Ints
    stock_out: Ints
    needed_sales: Ints
    needed_supplies: Ints
    exogenous_in: Ints
    exogenous_in_value: Floats
    exogenous_out: Ints
    exogenous_out_value: Floats
    production_cost: Floats
    shortfall_penalty: Floats
    storage_cost: Floats
    disposal_cost: Floats
    shortfall_penalty_mean: Floats
    storage_cost_mean: Floats
    disposal_cost_mean: Floats
    price: Floats
    catalog: Floats
    past: Floats
    n_past: Ints
    market_price: Floats
    market_quantity: Floats
    market_value: Floats
    trades: Bools
    agenda: Ints
    calendar: CalendarBatch
    suppliers: PartnerBatch
    consumers: PartnerBatch
    competitors: PartnerBatch

    def __len__(self) -> int:
        return len(self.day)

    @classmethod
    def of(
        cls, observations: Sequence[Observation], leads: int | None = None, partners: Sequence[int] | None = None
    ) -> ObservationBatch:
        """Stack live observations.

        Args:
            observations: At least one.
            leads: Entries of a calendar; default: the greatest horizon and one.
            partners: Entries of suppliers, consumers and competitors; default: the most that an observation has.
        """
        suppliers, consumers, competitors = (None, None, None) if partners is None else partners
        whole = np.array([_whole_of(obs) for obs in observations], np.int64)
        real = np.array([_real_of(obs) for obs in observations], np.float64)
        agendas = [(_ends(obs.buy_agenda), _ends(obs.sell_agenda)) for obs in observations]
        # [B, 5, 2] prices, catalog prices, and the market's ends: price, quantity, value
        pairs = np.array([_price_pairs(obs) for obs in observations])
        columns: dict[str, Array] = {name: whole[:, index] for index, name in enumerate(_WHOLE)}
        columns |= {name: real[:, index] for index, name in enumerate(_REAL)}
        return cls(
            **columns,
            perishable=np.array([obs.perishable for obs in observations]),
            price=pairs[:, 0],
            catalog=pairs[:, 1],
            past=np.array([_past(obs) for obs in observations]),
            n_past=np.array([len(obs.price_history) - 1 for obs in observations]),
            market_price=pairs[:, 2],
            market_quantity=pairs[:, 3],
            market_value=pairs[:, 4],
            trades=np.array([(obs.buy_agenda is not None, obs.sell_agenda is not None) for obs in observations]),
            agenda=np.array(agendas, np.int64),
            calendar=CalendarBatch.of([obs.calendar for obs in observations], leads),
            suppliers=PartnerBatch.of([obs.suppliers for obs in observations], suppliers),
            consumers=PartnerBatch.of([obs.consumers for obs in observations], consumers),
            competitors=PartnerBatch.of([obs.competitors for obs in observations], competitors),
        )

    @property
    def days_left(self) -> Ints:
        """Days from today to the end, today included, ``[B]``."""
        return self.n_days - self.day

    @property
    def first_level(self) -> Bools:
        """Whether a factory's input is exogenous, ``[B]``."""
        return np.asarray(self.level == 0)

    @property
    def last_level(self) -> Bools:
        """Whether its output is exogenous, ``[B]``."""
        return np.asarray(self.level == self.n_levels - 1)

    def partners(self, side: int) -> PartnerBatch:
        """Return the partners of a side."""
        return self.consumers if side == SELL else self.suppliers


def _ends(agenda: Agenda | None) -> tuple[int, ...]:
    if agenda is None:
        return _NO_AGENDA
    a = agenda
    return a.quantity_min, a.quantity_max, a.time_min, a.time_max, a.price_min, a.price_max


def _price_pairs(obs: Observation) -> tuple[tuple[float, float], ...]:
    level, quantity, value = obs.level, obs.market_exogenous_quantity, obs.market_exogenous_value
    return (
        (obs.price_in, obs.price_out),
        (obs.catalog_prices[level], obs.catalog_prices[level + 1]),
        (obs.trading_prices[0], obs.trading_prices[-1]),
        (quantity[0], quantity[-1]),
        (value[0], value[-1]),
    )


def _past(obs: Observation) -> list[tuple[float, ...]]:
    """Return the prices of input and output, today's first; the first known day's is repeated."""
    ends = slice(obs.level, obs.level + 2)
    past = [prices[ends] for prices in obs.price_history[: -PRICE_DAYS - 2 : -1]]
    return past + [obs.price_history[0][ends]] * (PRICE_DAYS + 1 - len(past))


@dataclass(frozen=True, slots=True, eq=False)
class OfferBatch(Batch):
    """T offers made in threads, those of a thread together and in order.

    Attributes:
        seat: Row of the observation that each belongs to, ``[T]``.
        selling: Whether we sell in its thread, ``[T]``.
        n_rounds: Rounds allowed in its thread, ``[T]``.
        index: Its index in its thread, ``[T]``.
        mine: Whether we made it, ``[T]``.
        terms: Quantity, delivery day and unit price, ``[T, 3]``.
    """

    seat: Ints
    selling: Bools
    n_rounds: Ints
    index: Ints
    mine: Bools
    terms: Ints


@dataclass(slots=True, eq=False)
class ThreadBatch(Batch):
    """M threads before a decision, those of a factory in the order in which it was asked.

    Attributes:
        seat: Row of the factory in its `ObservationBatch`, ``[M]``.
        selling: Whether we sell, ``[M]``.
        partner: Index of the partner among the side's partners, ``[M]``.
        round: Rounds completed, ``[M]``.
        n_rounds: Rounds allowed, ``[M]``.
        opens: Whether we propose first in this thread, ``[M]``.
        answers: Whether an offer of the partner is on the table, ``[M]``.
        offer: That offer: quantity, delivery day and unit price, ``[M, 3]``; 0 if there is none.
    """

    seat: Ints
    selling: Bools
    partner: Ints
    round: Ints
    n_rounds: Ints
    opens: Bools
    answers: Bools
    offer: Ints

    def __len__(self) -> int:
        return len(self.seat)

    @classmethod
    def of(cls, threads: Sequence[ThreadObservation], partners: Sequence[int], seats: Sequence[int]) -> ThreadBatch:
        """Stack live threads.

        Args:
            threads: The threads.
            partners: Index of each one's partner among its side's partners.
            seats: Row of each one's factory.
        """
        rows = [
            (seat, not t.buying, partner, t.round, t.n_rounds, t.opens, t.offer is not None, *(t.offer or (0, 0, 0)))
            for t, partner, seat in zip(threads, partners, seats, strict=True)
        ]
        table = np.array(rows, np.int64).reshape(len(rows), 10).T.copy()  # [10, M]
        return cls(
            table[0], table[1] > 0, table[2], table[3], table[4], table[5] > 0, table[6] > 0, table[7:].T
        )  # fmt: skip


def live_threads(
    threads: Sequence[ThreadObservation], observations: Sequence[Observation], seats: Sequence[int]
) -> ThreadBatch:
    """Stack live threads, their partners found by name in their day's observation.

    Args:
        threads: The threads.
        observations: The observations of the batch.
        seats: Row of each thread's observation.

    Raises:
        ValueError: If a thread is of another day, its side has no agenda, or its partner is not of that side.
    """
    partners = [_partner_index(thread, observations[seat]) for thread, seat in zip(threads, seats, strict=True)]
    return ThreadBatch.of(threads, partners, seats)


def _partner_index(thread: ThreadObservation, obs: Observation) -> int:
    if thread.day != obs.day:
        raise ValueError(f"the thread is of day {thread.day}, the observation of day {obs.day}; give the thread's own")
    side, agenda, partners = (
        ("buys", obs.buy_agenda, obs.suppliers) if thread.buying else ("sells", obs.sell_agenda, obs.consumers)
    )
    if agenda is None:
        raise ValueError(f"a thread {side}, but the factory of level {obs.level} has no agenda for it on that day")
    names = [partner.name for partner in partners]
    if thread.partner not in names:
        raise ValueError(f"a thread {side} with {thread.partner!r}, but that side's partners of the day are {names}")
    return names.index(thread.partner)


class Histories(NamedTuple):
    """The offers of M threads up to the one on the table.

    Attributes:
        offers: The offers of all threads.
        start: Index of each thread's first offer, ``[M]``.
        length: Number of its offers, ``[M]``.
    """

    offers: OfferBatch
    start: Ints
    length: Ints


def histories(threads: Sequence[ThreadObservation], seats: Sequence[int], last: int | None = None) -> Histories:
    """Return the offers of live threads up to the one on the table.

    Args:
        threads: The threads.
        seats: Row of each thread's observation.
        last: How many of a thread's latest offers are kept; default: all.
    """
    rows: list[tuple[int, ...]] = []
    start, count = [], []
    for t, seat in zip(threads, seats, strict=True):
        start.append(len(rows))
        there = t.offer is not None
        length = len(t.turns) + there
        first = 0 if last is None else max(0, length - last)
        rows += [
            (seat, not t.buying, t.n_rounds, first + index, turn.mine, *turn.offer)
            for index, turn in enumerate(t.turns[first:])
        ]
        if t.offer is not None:
            rows.append((seat, not t.buying, t.n_rounds, length - 1, False, *t.offer))
        count.append(length - first)
    table = np.array(rows, np.int64).reshape(len(rows), 8)
    offers = OfferBatch(
        table[:, 0], table[:, 1] > 0, table[:, 2], table[:, 3], table[:, 4] > 0, table[:, 5:]
    )  # fmt: skip
    return Histories(offers, np.array(start, np.int64), np.array(count, np.int64))


def ranks(groups: Array) -> Indices:
    """Return how many earlier entries of the same group each entry has, ``[M]``."""
    if len(groups) < 2 or np.count_nonzero(groups == groups[0]) == len(groups):
        return np.arange(len(groups))
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    first = true_rows(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    counts = np.diff(np.append(first, len(groups)))
    rank = np.empty(len(groups), np.intp)
    rank[order] = np.arange(len(groups)) - np.repeat(first, counts)
    return rank
