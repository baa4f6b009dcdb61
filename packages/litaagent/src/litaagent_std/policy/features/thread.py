"""Features of negotiation threads at the moment of an action, from what came before it.

Three things are left out on purpose. A thread's calendar holds deals of the same day, and which of them an agent
knew depends on whether it replies to its partners together or one by one: commitments are those of the day's start. The
time of an action follows from its round: before a mechanism starts, its own clock still shows 0. The time of an offer
follows from its index, because offers alternate, two a round: an agent that replies to all partners together receives
an offer only in the round after.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from ..arrays import Array, Bools, Floats, Floats32, Ints
from ..columns import BUY, SELL, ObservationBatch, OfferBatch, ThreadBatch
from ..observation import REPORTS_KEPT
from .table import Feature, part, to_columns

__all__ = ["HISTORY", "PARTNER", "RANGES", "THREAD", "ThreadFeatures", "thread_features"]


@dataclass(frozen=True, slots=True, eq=False)
class ThreadFeatures:
    """M threads before an action as arrays; names of the columns are in `features.THREAD_FEATURES`.

    Attributes:
        rows: Every offer of the threads, and a last row of zeros, [T + 1, n_history].
        start: Row of the first offer of each thread, [M].
        count: Its offers before the action, the one on the table last, [M].
        ranges: Ends of the legal ranges of an offer, [M, n_ranges].
        x_thread: Time, role and the offer on the table, [M, n_thread].
        x_partner: The partner as its reports show it, [M, n_partner].
    """

    rows: Floats32
    start: Ints
    count: Ints
    ranges: Floats32
    x_thread: Floats32
    x_partner: Floats32

    def padded(self, length: int) -> tuple[Floats32, Bools]:
        """Return the latest offers of each thread, oldest first, and which rows are offers; the others are 0.

        Args:
            length: Rows of a history.

        Returns:
            History ``[M, length, n_history]`` and mask ``[M, length]``.

        Raises:
            ValueError: If the length is not positive.
        """
        if length < 1:
            raise ValueError(f"length={length} leaves no room for a history; give at least 1")
        steps = np.arange(length)
        mask = steps < self.count[:, None]  # [M, length]
        first = self.start + np.maximum(0, self.count - length)
        return np.take(self.rows, np.where(mask, first[:, None] + steps, len(self.rows) - 1), axis=0), mask


@dataclass(frozen=True, slots=True)
class _Place:
    """Facts of the day and side of n offers or threads, ``[n]`` each."""

    selling: Bools
    day: Ints
    n_lines: Ints
    horizon: Ints
    usual: Floats
    agenda: Ints

    @classmethod
    def of(cls, obs: ObservationBatch, seat: Ints, selling: Bools) -> _Place:
        side = selling.astype(np.int64)
        price = obs.price[seat, side]
        return cls(
            selling,
            obs.day[seat],
            obs.n_lines[seat],
            np.maximum(1, obs.horizon[seat]),
            np.where(price > 0, price, 1.0),  # trading price of what is negotiated
            obs.agenda[seat, side],  # [n, 6]
        )

    def advantage(self, price: Ints) -> Floats:
        """Return prices' positions in the legal band, 0 for our worst price and 1 for our best."""
        low, high = self.agenda[:, 4], self.agenda[:, 5]
        ours = np.where(self.selling, price - low, high - price)
        return np.where(high > low, ours / np.where(high > low, high - low, 1), 0.5)


@dataclass(frozen=True, slots=True)
class Offers:
    """Offers of threads with the data of their day, ``[T]`` each."""

    now: _Place
    offers: OfferBatch


@dataclass(frozen=True, slots=True)
class Moments:
    """Threads with the data of their day and partner, ``[M]`` each."""

    now: _Place
    threads: ThreadBatch
    obs: ObservationBatch

    @property
    def initial_balance(self) -> Floats:
        """Our balance on the first day."""
        return self.obs.initial_balance[self.threads.seat]

    def of_partner(self, suppliers: Array, consumers: Array) -> Array:
        """Return each thread's entry of the columns ``[B, P, …]`` of its side's partners."""
        threads = self.threads
        out = np.zeros((len(threads), *suppliers.shape[2:]), suppliers.dtype)
        for side, column in ((BUY, suppliers), (SELL, consumers)):
            rows = np.flatnonzero(threads.selling == side)
            if len(rows):
                out[rows] = column[threads.seat[rows], threads.partner[rows]]
        return out

    def partner(self, name: str) -> Array:
        """Return a column of `PartnerBatch` for each thread's partner."""
        return self.of_partner(getattr(self.obs.suppliers, name), getattr(self.obs.consumers, name))

    def offered(self, values: Array) -> Array:
        """Return values where an offer is on the table, 0 elsewhere."""
        return np.where(self.threads.answers, values, 0.0)


def thread_features(
    threads: ThreadBatch, obs: ObservationBatch, offers: OfferBatch, start: Ints, count: Ints
) -> ThreadFeatures:
    """Turn threads before an action into arrays.

    Args:
        threads: The threads; their seats are rows of `obs`.
        obs: The observations of their days.
        offers: Offers of these threads.
        start: Index of each thread's first offer, ``[M]``.
        count: Its offers before the action, the one on the table included, ``[M]``.

    Raises:
        ValueError: If a value is not finite.
    """
    size, n_offers = len(threads), len(offers.index)
    now = Moments(_Place.of(obs, threads.seat, threads.selling), threads, obs)
    rows = np.zeros((n_offers + 1, len(HISTORY)), np.float32)
    rows[:-1] = to_columns(HISTORY, Offers(_Place.of(obs, offers.seat, offers.selling), offers), (n_offers,))
    return ThreadFeatures(
        rows,
        start,
        count,
        to_columns(RANGES, now, (size,)),
        to_columns(THREAD, now, (size,)),
        to_columns(PARTNER, now, (size,)),
    )


_OFFER: Final = Feature[Offers]
_NOW: Final = Feature[Moments]

# One entry per feature; the formatter would put each argument on a line of its own.
HISTORY: Final[tuple[Feature[Offers], ...]] = (
    _OFFER("mine", "turns.mine", "1 for our offers", 1, lambda h: h.offers.mine),
    _OFFER("relative_time", "index of the offer, n_rounds", "(index // 2 + 1) / (n_rounds + 1)", 1,
           lambda h: (h.offers.index // 2 + 1) / (h.offers.n_rounds + 1)),
    _OFFER("quantity", "turns.offer, offer, n_lines", "quantity / n_lines", 1,
           lambda h: h.offers.terms[:, 0] / h.now.n_lines),
    _OFFER("lead", "turns.offer, offer, day, horizon", "(time − day) / horizon", 1,
           lambda h: (h.offers.terms[:, 1] - h.now.day) / h.now.horizon),
    _OFFER("price", "turns.offer, offer, trading_prices", "price / trading price − 1", 0.1,
           lambda h: h.offers.terms[:, 2] / h.now.usual - 1.0),
    _OFFER("advantage", "turns.offer, offer, agenda, buying",
           "position in the legal band of prices, 0 our worst, 1 our best, ½ in a band of one price", 1,
           lambda h: h.now.advantage(h.offers.terms[:, 2])),
)  # fmt: skip

RANGES: Final[tuple[Feature[Moments], ...]] = (
    _NOW("quantity_min", "agenda, n_lines", "quantity_min / n_lines", 1,
         lambda m: m.now.agenda[:, 0] / m.now.n_lines),
    _NOW("quantity_max", "agenda, n_lines", "quantity_max / n_lines", 1,
         lambda m: m.now.agenda[:, 1] / m.now.n_lines),
    _NOW("lead_min", "agenda, day, horizon", "(time_min − day) / horizon", 1,
         lambda m: (m.now.agenda[:, 2] - m.now.day) / m.now.horizon),
    _NOW("lead_max", "agenda, day, horizon", "(time_max − day) / horizon", 1,
         lambda m: (m.now.agenda[:, 3] - m.now.day) / m.now.horizon),
    _NOW("price_min", "agenda, trading_prices", "price_min / trading price − 1", 0.1,
         lambda m: m.now.agenda[:, 4] / m.now.usual - 1.0),
    _NOW("price_max", "agenda, trading_prices", "price_max / trading price − 1", 0.1,
         lambda m: m.now.agenda[:, 5] / m.now.usual - 1.0),
)  # fmt: skip


def _n_partners(m: Moments) -> Ints:
    """Return the partners of each thread's side that are not bankrupt."""
    alive = [(group.there & ~group.bankrupt).sum(1)[m.threads.seat] for group in (m.obs.suppliers, m.obs.consumers)]
    return np.asarray(np.where(m.threads.selling, alive[1], alive[0]), np.int64)


def _committed(m: Moments) -> Floats:
    """Return what the calendar of the day's start holds of our side on the delivery day of the offer on the table."""
    calendar, seat = m.obs.calendar, m.threads.seat
    lead = m.threads.offer[:, 1] - m.now.day
    inside = m.threads.answers & (lead >= 0) & (lead < calendar.sold.shape[1])
    at = (seat, np.where(inside, lead, 0))
    units = np.where(m.threads.selling, calendar.sold[at], calendar.bought[at])
    return np.where(inside, units / m.now.n_lines, 0.0)


THREAD: Final[tuple[Feature[Moments], ...]] = (
    _NOW("relative_time", "round, n_rounds", "(round + 1) / (n_rounds + 1), the mechanism's relative time", 1,
         lambda m: (m.threads.round + 1) / (m.threads.n_rounds + 1)),
    _NOW("round", "round", "round", 20, lambda m: m.threads.round),
    _NOW("rounds_left", "round, n_rounds", "n_rounds − round − 1", 20,
         lambda m: m.threads.n_rounds - m.threads.round - 1),
    _NOW("last_round", "round, n_rounds", "1 in the last round", 1,
         lambda m: m.threads.round >= m.threads.n_rounds - 1),
    _NOW("buying", "buying", "1 if we buy", 1, lambda m: ~m.threads.selling),
    _NOW("selling", "buying", "1 if we sell", 1, lambda m: m.threads.selling),
    _NOW("opens", "opens", "1 if we propose first", 1, lambda m: m.threads.opens),
    _NOW("answers", "offer", "1 if an offer is on the table", 1, lambda m: m.threads.answers),
    _NOW("n_partners", "suppliers or consumers", "partners of that side that are not bankrupt", 6, _n_partners),
    _NOW("offer_quantity", "offer, n_lines", "quantity / n_lines, 0 if none", 1,
         lambda m: m.offered(m.threads.offer[:, 0] / m.now.n_lines)),
    _NOW("offer_lead", "offer, day, horizon", "(time − day) / horizon, 0 if none", 1,
         lambda m: m.offered((m.threads.offer[:, 1] - m.now.day) / m.now.horizon)),
    _NOW("offer_price", "offer, trading_prices", "price / trading price − 1, 0 if none", 0.1,
         lambda m: m.offered(m.threads.offer[:, 2] / m.now.usual - 1.0)),
    _NOW("offer_advantage", "offer, agenda, buying", "position in the legal band as in the history, 0 if none", 1,
         lambda m: m.offered(m.now.advantage(m.threads.offer[:, 2]))),
    _NOW("offer_committed", "offer, the day's calendar, n_lines",
         "units of our side already agreed for its delivery day / n_lines, 0 if none", 1, _committed),
)  # fmt: skip


def _trend(m: Moments) -> Floats:
    oldest = [group.report(REPORTS_KEPT) for group in (m.obs.suppliers, m.obs.consumers)]
    first_day, first_cash = (m.of_partner(oldest[0][index], oldest[1][index]) for index in (0, 1))
    last_day, last_cash = m.partner("report_days")[:, -1], m.partner("report_cash")[:, -1]
    trend = part(part(last_cash - first_cash, last_day - first_day), m.initial_balance)
    return np.where(m.partner("n_reports") >= 2, trend, 0.0)


PARTNER: Final[tuple[Feature[Moments], ...]] = (
    _NOW("bankrupt", "partner.bankrupt", "1 if bankrupt", 1, lambda m: m.partner("bankrupt")),
    _NOW("reported", "partner.report_days", "1 if there is a report", 1, lambda m: m.partner("n_reports") > 0),
    _NOW("report_age", "partner.report_days, day", "day − day of the latest report, 0 if none", 5,
         lambda m: np.where(m.partner("n_reports") > 0, m.now.day - m.partner("report_days")[:, -1], 0)),
    _NOW("cash", "partner.report_cash, initial_balance", "latest cash / our initial_balance, 0 if none", 1,
         lambda m: part(m.partner("report_cash")[:, -1], m.initial_balance)),
    _NOW("cash_trend", "partner.report_cash, partner.report_days, initial_balance",
         "change of cash per day over its kept reports / our initial_balance, 0 with fewer than two", 0.02, _trend),
    _NOW("assets", "partner.assets, initial_balance", "assets / our initial_balance", 1,
         lambda m: part(m.partner("assets"), m.initial_balance)),
    _NOW("breach_probability", "partner.breach_probability", "as it is", 1, lambda m: m.partner("breach_probability")),
    _NOW("breach_level", "partner.breach_level", "as it is", 1, lambda m: m.partner("breach_level")),
)  # fmt: skip
