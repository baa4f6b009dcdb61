"""`policy.features.thread_features` for all turns of a factory at once.

Names, order and scales come from the policy's own table; what depends on offers, ranges and partners is computed here
by columns, with the same operations in the same order; what depends on round and role is computed by the table
itself, once per combination. Tests compare every turn of recorded worlds with `thread_features`, bit by bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np

from litaagent_std.hrl_xf.data_pipeline.extraction.columns import WorldColumns
from litaagent_std.hrl_xf.data_pipeline.extraction.day_arrays import part, scaled
from litaagent_std.hrl_xf.data_pipeline.extraction.days import WorldDays
from litaagent_std.policy.arrays import Bools, Floats, Floats32, Ints
from litaagent_std.policy.columns import ObservationBatch, histories, live_threads
from litaagent_std.policy.features.table import LIMIT
from litaagent_std.policy.features.thread import HISTORY, PARTNER, RANGES, THREAD, thread_features
from litaagent_std.policy.observation import Agenda, Calendar, Observation, Offer, Partner, ThreadObservation

__all__ = ["ThreadArrays", "expand_history", "thread_arrays"]

_FROM_HISTORY: Final = {
    "offer_quantity": "quantity",
    "offer_lead": "lead",
    "offer_price": "price",
    "offer_advantage": "advantage",
}
"""Columns of ``x_thread`` that repeat the last row of the history."""
_COMMITTED: Final = "offer_committed"
_NAMES: Final = [feature.name for feature in THREAD]
_SOURCE: Final = [(_NAMES.index(own), [f.name for f in HISTORY].index(theirs)) for own, theirs in _FROM_HISTORY.items()]
_EMPTY: Final = Calendar((0, 0), (0.0, 0.0), (0, 0), (0.0, 0.0))
_DUMMY_PARTNER: Final = Partner("", False, (), (), 0.0, 0.0, 0.0)
_DUMMY_OBSERVATION: Final = Observation(
    *(0, 1, 1, 0, 2, 1, False, 1.0, 1.0, 0, 0, 0, 0, 0, 0.0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (1.0, 1.0, 1.0),
    (1.0, 1.0, 1.0),
    ((1.0, 1.0, 1.0),),
    (0.0, 0.0, 0.0),
    (0.0, 0.0, 0.0),
    None,
    None,
    _EMPTY,
    (),
    (),
    (),
)
"""Observation for formulas of the table that take one and do not depend on it."""


@dataclass(frozen=True, slots=True)
class ThreadArrays:
    """Features of a factory's turns; see `policy.features.thread.ThreadFeatures`.

    Attributes:
        rows: History rows of all offers of its negotiations, and a last row of zeros; see `expand_history`.
        start: Row of the first offer of each turn's negotiation.
        count: Offers before each turn.
        ranges: By turn.
        x_thread: By turn.
        x_partner: By turn.
    """

    rows: Floats32
    start: Ints
    count: Ints
    ranges: Floats32
    x_thread: Floats32
    x_partner: Floats32


@dataclass(frozen=True, slots=True)
class _Threads:
    """Features of a factory's negotiations.

    Attributes:
        start: Row of each negotiation's first offer in ``offers``, by negotiation of the world.
        offers: History rows of all its negotiations.
        ranges: By negotiation of the world.
        partner: By negotiation of the world.
        n_partners: By negotiation of the world.
    """

    start: Ints
    offers: Floats32
    ranges: Floats32
    partner: Floats32
    n_partners: Ints


def thread_arrays(world: WorldColumns, days: WorldDays, seat: int, turns: Ints) -> ThreadArrays:
    """Compute the features of a factory's turns.

    Args:
        world: The world's columns.
        days: Its observations.
        seat: The factory.
        turns: The turns.
    """
    own = _threads(world, days, seat)
    thread, before = world.thread[turns], world.before[turns]
    answers = world.answers[turns]
    x_thread = _by_role(world, seat, own, turns)
    last = own.offers[np.where(answers, own.start[thread] + before - 1, -1)]  # [turn, n_history] offer on the table
    for column, source in _SOURCE:
        x_thread[:, column] = last[:, source]
    x_thread[:, _NAMES.index(_COMMITTED)] = _committed(world, days, seat, turns)
    start = own.start[thread]
    return ThreadArrays(own.offers, start, before, own.ranges[thread], x_thread, own.partner[thread])


def _threads(world: WorldColumns, days: WorldDays, seat: int) -> _Threads:
    n = len(world.day)
    threads = np.flatnonzero((world.buyer == seat) | (world.seller == seat))
    day, buying = world.day[threads], world.buyer[threads] == seat
    other = np.where(buying, world.seller[threads], world.buyer[threads])
    counts = world.n_offers[threads]
    ends = np.cumsum(counts)
    start, n_partners = np.zeros(n, np.int64), np.zeros(n, np.int64)
    start[threads] = ends - counts
    # [day] consumers and suppliers that are not bankrupt
    alive = [(~days.bankrupt[:, days.seats_at(int(days.level[seat]) + step)]).sum(axis=1) for step in (1, -1)]
    n_partners[threads] = np.where(buying, alive[1][day], alive[0][day])
    ranges, partner = np.zeros((n, len(RANGES)), np.float32), np.zeros((n, len(PARTNER)), np.float32)
    ranges[threads] = scaled(RANGES, _ranges(world, days, seat, threads))
    partner[threads] = scaled(PARTNER, _partner(days, seat, day, other))
    # [own offer] its index among all offers of the world
    index = np.repeat(world.first_offer[threads] - (ends - counts), counts) + np.arange(int(counts.sum()))
    rows = scaled(HISTORY, _history(world, days, seat, np.repeat(threads, counts), index))
    # The last row, of zeros, is that of missing offers.
    offers = np.concatenate([rows, np.zeros((1, len(HISTORY)), np.float32)])
    return _Threads(start, offers, ranges, partner, n_partners)


def _usual(world: WorldColumns, days: WorldDays, threads: Ints) -> Floats:
    """Return the trading price of the negotiated product, 1 where there is none."""
    price = days.trading[world.day[threads], world.product[threads]]
    return np.where(price > 0, price, 1.0)


def _ranges(world: WorldColumns, days: WorldDays, seat: int, threads: Ints) -> dict[str, Floats]:
    day = world.day[threads]
    q_min, q_max, t_min, t_max, p_min, p_max = days.ends[day, world.product[threads]].T
    lines, horizon, usual = days.lines[seat], max(1, days.horizon), _usual(world, days, threads)
    return {
        "quantity_min": q_min / lines,
        "quantity_max": q_max / lines,
        "lead_min": (t_min - day) / horizon,
        "lead_max": (t_max - day) / horizon,
        "price_min": p_min / usual - 1.0,
        "price_max": p_max / usual - 1.0,
    }


def _partner(days: WorldDays, seat: int, day: Ints, other: Ints) -> dict[str, Floats]:
    r, at, initial = days.reports, (day, other), days.private["balance"][0, seat]
    # cash per day between the oldest and the latest kept report
    trend = part(r.last_cash[at] - r.first_cash[at], r.last_day[at] - r.first_day[at])
    reported = r.stop[at] > 0
    return {
        "bankrupt": days.bankrupt[at].astype(np.float64),
        "reported": reported.astype(np.float64),
        "report_age": np.where(reported, day - r.last_day[at], 0).astype(np.float64),
        "cash": part(r.last_cash[at], initial),
        "cash_trend": np.where(r.kept[at] >= 2, part(trend, initial), 0.0),
        "assets": part(r.assets[at], initial),
        "breach_probability": r.breach_probability[at],
        "breach_level": r.breach_level[at],
    }


def _history(world: WorldColumns, days: WorldDays, seat: int, threads: Ints, index: Ints) -> dict[str, Floats]:
    """Return the columns of offers, given the negotiation and the index of each among all offers."""
    quantity, time, price = world.offers[index].T.astype(np.float64)
    turn = (index - world.first_offer[threads]).astype(np.float64)
    low, high = days.ends[world.day[threads], world.product[threads]][:, 4:].T  # legal prices, [offer]
    wide, band = high > low, np.where(high > low, high - low, 1)
    buying = world.buyer[threads] == seat
    advantage = np.where(buying, high - price, price - low) / band
    return {
        "mine": (world.offer_by[index] == seat).astype(np.float64),
        "relative_time": (turn // 2 + 1) / (world.n_rounds + 1),
        "quantity": quantity / days.lines[seat],
        "lead": (time - world.day[threads]) / max(1, days.horizon),
        "price": price / _usual(world, days, threads) - 1.0,
        "advantage": np.where(wide, advantage, 0.5),
    }


def _by_role(world: WorldColumns, seat: int, own: _Threads, turns: Ints) -> Floats32:
    """Return the columns of ``x_thread`` that follow from round, side, role and number of partners."""
    thread = world.thread[turns]
    buying, opens = world.buyer[thread] == seat, world.caller[thread] == seat
    parts = (world.round[turns], buying, opens, world.answers[turns], own.n_partners[thread])
    # One number per combination of round, side, opener, whether it answers, and number of partners.
    packed = np.ravel_multi_index(
        [np.asarray(part, np.int64) for part in parts], (1 + world.n_rounds, 2, 2, 2, 1 + int(own.n_partners.max()))
    )
    combinations, firsts, inverse = np.unique(packed, return_index=True, return_inverse=True)
    rows = np.empty((len(combinations), len(THREAD)), np.float32)
    for number, first in enumerate(firsts.tolist()):
        rows[number] = _role_row(world.n_rounds, *(int(part[first]) for part in parts))
    return rows[inverse.reshape(-1)]


@cache
def _role_row(n_rounds: int, round_: int, buys: int, opens: int, answers: int, n_partners: int) -> Floats32:
    """Return ``x_thread`` for a combination of time and role; the other columns are placeholders."""
    agenda, partners = Agenda(1, 1, 0, 0, 1, 1), (_DUMMY_PARTNER,) * max(1, n_partners)
    obs = replace(_DUMMY_OBSERVATION, buy_agenda=agenda, sell_agenda=agenda, suppliers=partners, consumers=partners)
    offer = Offer(1, 0, 1) if answers else None
    now = ThreadObservation(0, "", bool(buys), round_, n_rounds, 0.0, bool(opens), offer, (), _EMPTY)
    features = thread_features(live_threads([now], [obs], [0]), ObservationBatch.of([obs]), *histories([now], [0]))
    return features.x_thread[0]


def _committed(world: WorldColumns, days: WorldDays, seat: int, turns: Ints) -> Floats32:
    """Return the units committed at day start on the delivery day of the offer on the table, over the lines."""
    if not len(world.offers):
        return np.zeros(len(turns), np.float32)
    thread = world.thread[turns]
    units = days.calendar[[0, 2], :, seat]  # [side, day, lead]
    day = world.day[thread]
    lead = world.offers[np.maximum(0, world.received[turns]), 1] - day
    inside = world.answers[turns] & (lead >= 0) & (lead < units.shape[2])
    side = (world.buyer[thread] != seat).astype(np.int64)
    values = units[side, day, np.where(inside, lead, 0)] / days.lines[seat]
    return np.where(inside, np.minimum(values, LIMIT), 0.0).astype(np.float32)


def expand_history(rows: Floats32, start: Ints, count: Ints, length: int) -> tuple[Floats32, Bools]:
    """Return each action's history with its mask, [n, length, n_history] and [n, length].

    Args:
        rows: Offers of all negotiations; the last row is zeros.
        start: Row of each action's first offer.
        count: Offers before it.
        length: Rows of a history.
    """
    steps = np.arange(length)
    mask = steps < np.asarray(count)[:, None]  # [n, length]
    return np.take(rows, np.where(mask, np.asarray(start)[:, None] + steps, len(rows) - 1), axis=0), mask
