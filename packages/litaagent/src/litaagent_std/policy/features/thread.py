"""Features of a negotiation thread at the moment of an action, from what came before it.

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

from ..arrays import Bools, Floats, Floats32
from ..observation import Agenda, Observation, Offer, Partner, ThreadObservation
from .table import Feature, part, to_columns, to_vector

__all__ = ["HISTORY", "PARTNER", "RANGES", "THREAD", "ThreadFeatures", "thread_features"]


@dataclass(frozen=True, slots=True, eq=False)
class ThreadFeatures:
    """A thread before an action as arrays; names of the columns are in `features.THREAD_FEATURES`.

    Attributes:
        history: Offers before the action, oldest first, the one on the table last, [length, n_history];
            rows that are masked are 0.
        mask: Which rows of the history are offers, [length].
        ranges: Ends of the legal ranges of an offer, [n_ranges].
        x_thread: Time, role and the offer on the table, [n_thread].
        x_partner: The partner as its reports show it, [n_partner].
    """

    history: Floats32
    mask: Bools
    ranges: Floats32
    x_thread: Floats32
    x_partner: Floats32


@dataclass(frozen=True, slots=True)
class Moment:
    """A thread with the data of its day."""

    thread: ThreadObservation
    obs: Observation
    agenda: Agenda
    partner: Partner
    n_partners: int

    @property
    def price(self) -> float:
        """Trading price of what is negotiated."""
        return self.obs.price_in if self.thread.buying else self.obs.price_out


@dataclass(frozen=True, slots=True)
class Offers:
    """Offers of a thread as columns ``[L]``, with their indices counted from the thread's first."""

    now: Moment
    index: Floats
    mine: Floats
    quantity: Floats
    time: Floats
    price: Floats


def thread_features(thread: ThreadObservation, obs: Observation, length: int | None = None) -> ThreadFeatures:
    """Turn a thread before an action into arrays.

    Args:
        thread: The thread.
        obs: The observation of its day.
        length: Rows of the history; default: two for each round, which holds every history. Of a longer
            history the latest offers are kept.

    Raises:
        ValueError: If the day is another one, the partner is not of that day or side, the length is not
            positive, or a value is not finite.
    """
    now = _moment(thread, obs)
    rows = 2 * thread.n_rounds if length is None else length
    if rows < 1:
        raise ValueError(f"length={rows} leaves no room for a history; give at least 1")
    offers = _offers(now, rows)
    n_offers = len(offers.index)
    history = np.zeros((rows, len(HISTORY)), np.float32)
    history[:n_offers] = to_columns(HISTORY, offers, n_offers)
    return ThreadFeatures(
        history, np.arange(rows) < n_offers, to_vector(RANGES, now), to_vector(THREAD, now), to_vector(PARTNER, now)
    )


def _moment(thread: ThreadObservation, obs: Observation) -> Moment:
    if thread.day != obs.day:
        raise ValueError(f"the thread is of day {thread.day}, the observation of day {obs.day}; give the thread's own")
    side, agenda, partners = (
        ("buys", obs.buy_agenda, obs.suppliers) if thread.buying else ("sells", obs.sell_agenda, obs.consumers)
    )
    if agenda is None:
        raise ValueError(f"a thread {side}, but the factory of level {obs.level} has no agenda for it on that day")
    for partner in partners:
        if partner.name == thread.partner:
            return Moment(thread, obs, agenda, partner, sum(not other.bankrupt for other in partners))
    known = [partner.name for partner in partners]
    raise ValueError(f"a thread {side} with {thread.partner!r}, but that side's partners of the day are {known}")


def _offers(now: Moment, most: int) -> Offers:
    thread = now.thread
    rows = [(turn.mine, *turn.offer) for turn in thread.turns]
    if thread.offer is not None:
        rows.append((False, *thread.offer))
    first = max(0, len(rows) - most)
    table = np.array(rows[first:], np.float64).reshape(-1, 4)
    index = np.arange(first, len(rows), dtype=np.float64)
    return Offers(now, index, table[:, 0], table[:, 1], table[:, 2], table[:, 3])


def _advantage(now: Moment, price: Floats | float) -> Floats | float:
    """Return a price's position in the legal band, 0 for our worst price and 1 for our best."""
    low, high = now.agenda.price_min, now.agenda.price_max
    if high <= low:
        return price * 0.0 + 0.5
    return (high - price) / (high - low) if now.thread.buying else (price - low) / (high - low)


def _usual(now: Moment) -> float:
    return now.price if now.price > 0 else 1.0


def _columns(x: Floats | float) -> Floats:
    return np.asarray(x, np.float64)


_OFFER: Final = Feature[Offers, Floats]
_NOW: Final = Feature[Moment, float]

# One entry per feature; the formatter would put each argument on a line of its own.
HISTORY: Final[tuple[Feature[Offers, Floats], ...]] = (
    _OFFER("mine", "turns.mine", "1 for our offers", 1, lambda h: h.mine),
    _OFFER("relative_time", "index of the offer, n_rounds", "(index // 2 + 1) / (n_rounds + 1)", 1,
           lambda h: (h.index // 2 + 1) / (h.now.thread.n_rounds + 1)),
    _OFFER("quantity", "turns.offer, offer, n_lines", "quantity / n_lines", 1,
           lambda h: h.quantity / h.now.obs.n_lines),
    _OFFER("lead", "turns.offer, offer, day, horizon", "(time − day) / horizon", 1,
           lambda h: (h.time - h.now.obs.day) / max(1, h.now.obs.horizon)),
    _OFFER("price", "turns.offer, offer, trading_prices", "price / trading price − 1", 0.1,
           lambda h: h.price / _usual(h.now) - 1.0),
    _OFFER("advantage", "turns.offer, offer, agenda, buying",
           "position in the legal band of prices, 0 our worst, 1 our best, ½ in a band of one price", 1,
           lambda h: _columns(_advantage(h.now, h.price))),
)  # fmt: skip

RANGES: Final[tuple[Feature[Moment, float], ...]] = (
    _NOW("quantity_min", "agenda, n_lines", "quantity_min / n_lines", 1,
         lambda m: m.agenda.quantity_min / m.obs.n_lines),
    _NOW("quantity_max", "agenda, n_lines", "quantity_max / n_lines", 1,
         lambda m: m.agenda.quantity_max / m.obs.n_lines),
    _NOW("lead_min", "agenda, day, horizon", "(time_min − day) / horizon", 1,
         lambda m: (m.agenda.time_min - m.obs.day) / max(1, m.obs.horizon)),
    _NOW("lead_max", "agenda, day, horizon", "(time_max − day) / horizon", 1,
         lambda m: (m.agenda.time_max - m.obs.day) / max(1, m.obs.horizon)),
    _NOW("price_min", "agenda, trading_prices", "price_min / trading price − 1", 0.1,
         lambda m: m.agenda.price_min / _usual(m) - 1.0),
    _NOW("price_max", "agenda, trading_prices", "price_max / trading price − 1", 0.1,
         lambda m: m.agenda.price_max / _usual(m) - 1.0),
)  # fmt: skip


def _on_table(now: Moment) -> Offer | None:
    return now.thread.offer


def _committed(now: Moment) -> float:
    """Return what the calendar of the day's start holds of our side on the delivery day of the offer on the table."""
    offer, calendar = now.thread.offer, now.obs.calendar
    units = calendar.bought if now.thread.buying else calendar.sold
    if offer is None or not 0 <= offer.time - now.obs.day < len(units):
        return 0.0
    return units[offer.time - now.obs.day] / now.obs.n_lines


THREAD: Final[tuple[Feature[Moment, float], ...]] = (
    _NOW("relative_time", "round, n_rounds", "(round + 1) / (n_rounds + 1), the mechanism's relative time", 1,
         lambda m: (m.thread.round + 1) / (m.thread.n_rounds + 1)),
    _NOW("round", "round", "round", 20, lambda m: float(m.thread.round)),
    _NOW("rounds_left", "round, n_rounds", "n_rounds − round − 1", 20,
         lambda m: float(m.thread.n_rounds - m.thread.round - 1)),
    _NOW("last_round", "round, n_rounds", "1 in the last round", 1,
         lambda m: float(m.thread.round >= m.thread.n_rounds - 1)),
    _NOW("buying", "buying", "1 if we buy", 1, lambda m: float(m.thread.buying)),
    _NOW("selling", "buying", "1 if we sell", 1, lambda m: float(not m.thread.buying)),
    _NOW("opens", "opens", "1 if we propose first", 1, lambda m: float(m.thread.opens)),
    _NOW("answers", "offer", "1 if an offer is on the table", 1, lambda m: float(m.thread.offer is not None)),
    _NOW("n_partners", "suppliers or consumers", "partners of that side that are not bankrupt", 6,
         lambda m: float(m.n_partners)),
    _NOW("offer_quantity", "offer, n_lines", "quantity / n_lines, 0 if none", 1,
         lambda m: 0.0 if (o := _on_table(m)) is None else o.quantity / m.obs.n_lines),
    _NOW("offer_lead", "offer, day, horizon", "(time − day) / horizon, 0 if none", 1,
         lambda m: 0.0 if (o := _on_table(m)) is None else (o.time - m.obs.day) / max(1, m.obs.horizon)),
    _NOW("offer_price", "offer, trading_prices", "price / trading price − 1, 0 if none", 0.1,
         lambda m: 0.0 if (o := _on_table(m)) is None else o.price / _usual(m) - 1.0),
    _NOW("offer_advantage", "offer, agenda, buying", "position in the legal band as in the history, 0 if none", 1,
         lambda m: 0.0 if (o := _on_table(m)) is None else float(_advantage(m, o.price))),
    _NOW("offer_committed", "offer, the day's calendar, n_lines",
         "units of our side already agreed for its delivery day / n_lines, 0 if none", 1, _committed),
)  # fmt: skip


def _trend(now: Moment) -> float:
    days, cash = now.partner.report_days, now.partner.report_cash
    if len(days) < 2:
        return 0.0
    return part(part(cash[-1] - cash[0], days[-1] - days[0]), now.obs.initial_balance)


PARTNER: Final[tuple[Feature[Moment, float], ...]] = (
    _NOW("bankrupt", "partner.bankrupt", "1 if bankrupt", 1, lambda m: float(m.partner.bankrupt)),
    _NOW("reported", "partner.report_days", "1 if there is a report", 1, lambda m: float(bool(m.partner.report_days))),
    _NOW("report_age", "partner.report_days, day", "day − day of the latest report, 0 if none", 5,
         lambda m: float(m.obs.day - m.partner.report_days[-1]) if m.partner.report_days else 0.0),
    _NOW("cash", "partner.report_cash, initial_balance", "latest cash / our initial_balance, 0 if none", 1,
         lambda m: part(m.partner.report_cash[-1], m.obs.initial_balance) if m.partner.report_cash else 0.0),
    _NOW("cash_trend", "partner.report_cash, partner.report_days, initial_balance",
         "change of cash per day over its kept reports / our initial_balance, 0 with fewer than two", 0.02, _trend),
    _NOW("assets", "partner.assets, initial_balance", "assets / our initial_balance", 1,
         lambda m: part(m.partner.assets, m.obs.initial_balance)),
    _NOW("breach_probability", "partner.breach_probability", "as it is", 1, lambda m: m.partner.breach_probability),
    _NOW("breach_level", "partner.breach_level", "as it is", 1, lambda m: m.partner.breach_level),
)  # fmt: skip
