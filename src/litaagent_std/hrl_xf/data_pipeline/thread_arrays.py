"""`policy.features.thread_features` for all turns of a factory at once, with the functions of the same table.

What depends on the offers is computed for all offers of a day and side in one call; what depends on the day, the side
or the partner is computed once for each of them; what depends on the round and the role is computed once for each
combination. Every number comes from the feature table's own formulas; tests compare all of them with
`thread_features`, bit by bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from litaagent_std.hrl_xf.data_pipeline.columns import Ints, WorldColumns
from litaagent_std.policy.features_table import LIMIT, Floats, Mask, to_columns, to_vector
from litaagent_std.policy.features_thread import HISTORY, PARTNER, RANGES, THREAD, Moment, Offers
from litaagent_std.policy.observation import Agenda, Calendar, Observation, Offer, Partner, ThreadObservation

__all__ = ["ThreadArrays", "thread_arrays"]

_FROM_HISTORY: Final = {
    "offer_quantity": "quantity",
    "offer_lead": "lead",
    "offer_price": "price",
    "offer_advantage": "advantage",
}
"""Columns of ``x_thread`` that repeat the last row of the history."""
_COMMITTED: Final = "offer_committed"
_NAMES: Final = [feature.name for feature in THREAD]
_PLACE: Final = [(_NAMES.index(own), [f.name for f in HISTORY].index(theirs)) for own, theirs in _FROM_HISTORY.items()]
_EMPTY: Final = Calendar((), (), (), ())
_SOMEBODY: Final = Partner("", False, (), (), 0.0, 0.0, 0.0)
_SOME_MORNING: Final = Observation(
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
"""Stands where a formula of the table asks for a morning and does not depend on it."""


@dataclass(frozen=True, slots=True)
class ThreadArrays:
    """Features of a factory's turns; see `policy.features_thread.ThreadFeatures`."""

    history: Floats
    mask: Mask
    ranges: Floats
    x_thread: Floats
    x_partner: Floats


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
    offers: Floats
    ranges: Floats
    partner: Floats
    n_partners: Ints


def thread_arrays(
    world: WorldColumns, seat: int, names: Sequence[str], mornings: Sequence[Observation], turns: Ints
) -> ThreadArrays:
    """Computes the features of a factory's turns.

    Args:
        world: The world's columns.
        seat: The factory.
        names: Ids of the factories.
        mornings: The factory's observations by day.
        turns: The turns.
    """
    own = _threads(world, seat, names, mornings)
    thread, before = world.thread[turns], world.before[turns]
    steps = np.arange(2 * world.n_rounds)
    mask = steps < before[:, None]
    history = own.offers[np.where(mask, own.start[thread][:, None] + steps, -1)]
    answers = world.answers[turns]
    x_thread = _by_role(world, seat, own, turns)
    last = own.offers[np.where(answers, own.start[thread] + before - 1, -1)]
    for place, source in _PLACE:
        x_thread[:, place] = last[:, source]
    x_thread[:, _NAMES.index(_COMMITTED)] = _committed(world, seat, mornings, turns)
    return ThreadArrays(history, mask, own.ranges[thread], x_thread, own.partner[thread])


def _threads(world: WorldColumns, seat: int, names: Sequence[str], mornings: Sequence[Observation]) -> _Threads:
    n = len(world.day)
    found = np.flatnonzero((world.buyer == seat) | (world.seller == seat))
    buys = world.buyer[found] == seat
    order = found[np.lexsort((world.day[found], ~buys))]
    counts = world.n_offers[order]
    ends = np.cumsum(counts)
    start = np.zeros(n, np.int64)
    start[order] = ends - counts
    # A last row of zeros stands for offers that were not made.
    result = _Threads(
        start,
        np.zeros((int(ends[-1]) + 1 if len(ends) else 1, len(HISTORY)), np.float32),
        np.zeros((n, len(RANGES)), np.float32),
        np.zeros((n, len(PARTNER)), np.float32),
        np.zeros(n, np.int64),
    )
    place = np.repeat(world.first_offer[order] - (ends - counts), counts) + np.arange(int(counts.sum()))
    keys = world.day[order] + world.n_days * (world.buyer[order] != seat)
    cuts = np.flatnonzero(np.diff(keys, prepend=-1, append=-1))
    for low, high in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        _fill(world, seat, names, mornings, order[low:high], place, result)
    return result


def _fill(
    world: WorldColumns,
    seat: int,
    names: Sequence[str],
    mornings: Sequence[Observation],
    group: Ints,
    place: Ints,
    result: _Threads,
) -> None:
    """Computes the rows of one day and side."""
    buying = bool(world.buyer[group[0]] == seat)
    obs = mornings[int(world.day[group[0]])]
    agenda, partners = (obs.buy_agenda, obs.suppliers) if buying else (obs.sell_agenda, obs.consumers)
    assert agenda is not None
    known = {partner.name: partner for partner in partners}
    n_partners = sum(not partner.bankrupt for partner in partners)
    thread = ThreadObservation(obs.day, "", buying, 0, world.n_rounds, 0.0, False, None, (), _EMPTY)
    others = (world.seller if buying else world.buyer)[group].tolist()
    moments = [Moment(thread, obs, agenda, known[names[other]], n_partners) for other in others]
    result.ranges[group] = to_vector(RANGES, moments[0])
    result.partner[group] = [to_vector(PARTNER, moment) for moment in moments]
    result.n_partners[group] = n_partners
    low = int(result.start[group[0]])
    high = int(result.start[group[-1]] + world.n_offers[group[-1]])
    rows = place[low:high]
    if high > low:
        offers = world.offers[rows].astype(np.float64)
        inside = (rows - np.repeat(world.first_offer[group], world.n_offers[group])).astype(np.float64)
        mine = (world.offer_by[rows] == seat).astype(np.float64)
        columns = Offers(moments[0], inside, mine, offers[:, 0], offers[:, 1], offers[:, 2])
        result.offers[low:high] = to_columns(HISTORY, columns, high - low)


def _by_role(world: WorldColumns, seat: int, own: _Threads, turns: Ints) -> Floats:
    """Returns the columns of ``x_thread`` that follow from round, side, role and number of partners."""
    thread = world.thread[turns]
    buying, opens = world.buyer[thread] == seat, world.caller[thread] == seat
    parts = (world.round[turns], buying, opens, world.answers[turns], own.n_partners[thread])
    packed = np.ravel_multi_index(
        [np.asarray(part, np.int64) for part in parts], (1 + world.n_rounds, 2, 2, 2, 1 + int(own.n_partners.max()))
    )
    kinds, firsts, places = np.unique(packed, return_index=True, return_inverse=True)
    rows = np.empty((len(kinds), len(THREAD)), np.float32)
    for kind, first in enumerate(firsts.tolist()):
        rows[kind] = _role_row(world.n_rounds, *(int(part[first]) for part in parts))
    return rows[places.reshape(-1)]


@cache
def _role_row(n_rounds: int, round_: int, buys: int, opens: int, answers: int, n_partners: int) -> Floats:
    """Returns ``x_thread`` of a thread in which only time and role are real."""
    offer = Offer(1, 0, 1) if answers else None
    now = ThreadObservation(0, "", bool(buys), round_, n_rounds, 0.0, bool(opens), offer, (), _EMPTY)
    return to_vector(THREAD, Moment(now, _SOME_MORNING, Agenda(1, 1, 0, 0, 1, 1), _SOMEBODY, n_partners))


def _committed(world: WorldColumns, seat: int, mornings: Sequence[Observation], turns: Ints) -> Floats:
    """Returns what the morning's calendar holds on the delivery day of the offer on the table, over the lines."""
    thread = world.thread[turns]
    units = np.array([(obs.calendar.bought, obs.calendar.sold) for obs in mornings], np.float64)
    day = world.day[thread]
    if not len(world.offers):
        return np.zeros(len(turns), np.float32)
    lead = world.offers[np.maximum(0, world.received()[turns]), 1] - day
    inside = world.answers[turns] & (lead >= 0) & (lead < units.shape[2])
    side = (world.buyer[thread] != seat).astype(np.int64)
    values = units[day, side, np.where(inside, lead, 0)] / mornings[0].n_lines
    return np.where(inside, np.minimum(values, LIMIT), 0.0).astype(np.float32)
