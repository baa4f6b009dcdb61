"""L4, heuristic: which offers to accept together, and proposals across threads.

`accept_offers` chooses offers by their value beyond our limit price, by an exact knapsack for each day or greedily.
`spread` distributes the units that remain over the threads. Each proposal is chosen by the value of the deal and the
probability that the partner takes it; the same units may be offered to several partners as long as the expected cost of
too many acceptances stays within the risk budget. It goes over the k-th thread of all factories at once and scores only
offers that are open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays import Array, Bools, Floats, Ints, true_rows
from ..columns import BUY, SELL, ObservationBatch, ranks
from ..l1.baseline import power, progress, reservation, start_price
from ..l1.safety import legal
from ..l3.heuristic import Acceptance, Clock, Market, Offers, archetypes
from ..layers import SituationBatch
from ..parameters import ParameterColumns
from ..plan import Books, PlanBatch

__all__ = ["Partners", "Subsets", "accept_offers", "excess_cost", "free_room", "spread"]

Subsets = Callable[[Ints, Ints, Floats, Ints], Bools]
"""`plan.best_subsets` or `plan.greedy_subsets`."""


@dataclass(frozen=True, slots=True, eq=False)
class Partners:
    """What is known of the partners of M threads, ``[M]`` each.

    Attributes:
        index: The partner as `Acceptance` numbers it.
        bankrupt_on: The day of its forecast bankruptcy.
        patience: How long to wait for a better price, from 0 to 1; of purchases 1.
    """

    index: Ints
    bankrupt_on: Floats
    patience: Floats


def free_room(situation: SituationBatch) -> Ints:
    """Return the goals' units by lead, less our outstanding proposals, ``[S, H + 1]``."""
    room = situation.goals.side(selling=situation.selling)[0].copy()
    seat, partner = np.nonzero(situation.pending)
    if len(seat):
        offers = situation.outstanding[seat, partner]
        lead = offers[:, 1] - situation.day.obs.day[seat]
        inside = (lead >= 0) & (lead < room.shape[1])
        np.subtract.at(room, (seat[inside], lead[inside]), offers[inside, 0])
    return room


def free_cash(situation: SituationBatch) -> Ints:
    """Return the units that free cash buys, less our outstanding proposals, ``[S]``."""
    units = (situation.outstanding[:, :, 0] * situation.pending).sum(1)
    return np.asarray(situation.day.bounds.buy - units, np.int64)


def limit_prices(situation: SituationBatch, partners: Partners, rows: Array) -> Floats:
    """Return our limit price for the delivery days of the offers on the table, ``[rows]``."""
    threads = situation.threads.take(rows)
    seat, p = threads.seat, situation.day.parameters.take(threads.seat)
    lead = threads.offer[:, 1] - situation.day.obs.day[seat]
    end = situation.goals.side(selling=situation.selling)[1][seat, lead]
    start = start_price(situation.selling, situation.agenda[seat], p)
    time = progress(threads, proposing=False)
    return reservation(situation.selling, start, end, time, p, partners.patience[rows])


def accept_offers(situation: SituationBatch, partners: Partners, room: Ints, choose: Subsets) -> Bools:
    """Return which offers on the table to accept, ``[M]``.

    Args:
        situation: The round.
        partners: The partners of its threads.
        room: Units that may be agreed, ``[S, H + 1]``; reduced in place by what is accepted.
        choose: How offers for the same day are chosen.
    """
    threads, selling, obs = situation.threads, situation.selling, situation.day.obs
    accept = np.zeros(len(threads), np.bool_)
    rows = true_rows(threads.answers)
    if len(rows):
        rows = rows[legal(threads.offer[rows], situation.agenda[threads.seat[rows]])]
    if not len(rows):
        return accept
    seat, offer = threads.seat[rows], threads.offer[rows]
    lead, quantity = offer[:, 1] - obs.day[seat], offer[:, 0]
    # [K] value beyond our limit at this time, positive if acceptable
    limit = limit_prices(situation, partners, rows)
    surplus = offer[:, 2] - limit if selling else limit - offer[:, 2]
    good = surplus >= 0.0
    if selling:  # a supplier's goods always arrive, a consumer may be bankrupt at a later delivery
        last = partners.bankrupt_on[rows] - situation.day.parameters.bankruptcy_days[seat]
        good &= (lead == 0) | (offer[:, 1] <= last)
    if not good.any():
        return accept
    # groups of offers of one factory for one day, in the order of days
    key = (seat * room.shape[1] + lead)[good]
    order = np.argsort(key, kind="stable")
    keys, group = np.unique(key[order], return_inverse=True)
    seats, leads = keys // room.shape[1], keys % room.shape[1]
    chosen = true_rows(good)[order]
    rows, quantity, value = rows[chosen], quantity[chosen], (quantity * (surplus + 0.01))[chosen]
    free = np.maximum(0, np.minimum(room[seats, leads], situation.day.bounds.lines[seats, leads])) if selling else None
    if free is not None:
        taken = choose(group, quantity, value, free)
    else:
        taken = _within_cash(group, quantity, value, room[seats, leads], seats, free_cash(situation), choose)
    accept[rows[taken]] = True
    np.subtract.at(room, (seats[group[taken]], leads[group[taken]]), quantity[taken])
    return accept


def _within_cash(
    group: Ints, quantity: Ints, value: Floats, room: Ints, seats: Ints, cash: Ints, choose: Subsets
) -> Bools:
    """Choose purchases day by day: what one day takes of the cash is gone for the next."""
    taken, wave = np.zeros(len(group), np.bool_), ranks(seats)
    left = cash.copy()
    for step in range(int(wave.max()) + 1):
        groups = true_rows(wave == step)
        rows = true_rows(np.isin(group, groups))
        free = np.maximum(0, np.minimum(room[groups], left[seats[groups]]))
        chosen = rows[choose(np.searchsorted(groups, group[rows]), quantity[rows], value[rows], free)]
        taken[chosen] = True
        np.subtract.at(left, seats[group[chosen]], quantity[chosen])
    return taken


def excess_cost(obs: ObservationBatch, price: Array | float, *, selling: bool) -> Floats:
    """Return the cost of one unit too many at prices: a sale's penalty, or a purchase and its storage, ``[B]``."""
    if selling:
        return np.asarray(obs.shortfall_penalty_mean * obs.price[:, SELL])
    storage = obs.storage_cost_mean * obs.price[:, BUY] * np.minimum(10, obs.days_left)
    return np.asarray(price + storage)


@dataclass(frozen=True, slots=True, eq=False)
class _Open:
    """Offers that threads of the same factory and time may be made, in the order of lead, quantity and price.

    Attributes:
        cell: Factory and time of each offer, ``[R]``.
        seat: Its factory, ``[R]``.
        offers: The offers.
        table: Acceptance by each archetype, ``[4, R]``.
        gain: Gain per unit, ``[R]``.
        cost: Loss by one unit too many, ``[R]``.
    """

    cell: Ints
    seat: Ints
    offers: Offers
    table: Floats
    gain: Floats
    cost: Floats

    def take(self, rows: Array) -> _Open:
        """Return some of the offers."""
        o = self.offers
        market = o.market if len(o.market.day) == 1 else o.market.take(rows)
        offers = Offers(market, o.lead[rows], o.quantity[rows], o.price[rows])
        cost = self.cost if len(self.cost) == 1 else self.cost[rows]
        return _Open(self.cell[rows], self.seat[rows], offers, self.table[:, rows], self.gain[rows], cost)


def spread(
    situation: SituationBatch,
    partners: Partners,
    acceptance: Acceptance,
    market: Market,
    rest: Bools,
    taken: Ints,
    room: Ints,
    budgets: Floats,
) -> PlanBatch:
    """Propose to threads, each with regard to the proposals made before.

    The score of an offer is ``weight · log P + log gain``: with weight 0 the most valuable deal, with weight 1 the
    greatest expected gain.

    Args:
        situation: The round.
        partners: The partners of its threads.
        acceptance: L3's probabilities.
        market: The side's markets, S rows.
        rest: Threads that need a proposal, ``[M]``.
        taken: Units accepted in this round, ``[S, H + 1]``.
        room: Units that may be agreed, ``[S, H + 1]``.
        budgets: Expected cost of excess that may be risked, ``[S, H + 1]``; reduced in place.
    """
    threads, selling, bounds = situation.threads, situation.selling, situation.day.bounds
    plan = PlanBatch(
        np.zeros(len(threads), np.bool_), np.zeros(len(threads), np.bool_), np.zeros((len(threads), 3), np.int64)
    )
    rows = true_rows(rest)
    if not len(rows):
        return plan
    time = progress(threads, proposing=True)
    # cells: threads of one factory in the same round share what may be offered
    n_cells, cell, first = _cells(threads.seat[rows], time[rows])
    first = rows[first]
    hard = np.maximum(0, (bounds.lines if selling else bounds.buy[:, None]) - taken)
    open_ = _open_offers(situation, market, first, time, hard, room)
    if not len(open_.cell):
        return plan
    cash = None if selling else free_cash(situation) - taken.sum(1)
    largest = int(market.quantity_max.max())
    rank = ranks(threads.seat[rows])
    books = Books(room, np.arange(largest + 1), int(rank.max()) + 1)
    weight = _weights(situation, partners, time)
    beliefs = acceptance.belief.weights(partners.index)  # [M, 4]
    passes = int(rank.max()) + 1
    for k in range(passes):
        now = true_rows(rank == k)
        thread_at = np.full(n_cells, -1)  # [cells] the thread that is decided now
        thread_at[cell[now]] = rows[now]
        choice = _choose(situation, partners, acceptance, open_, thread_at, weight, beliefs, books, budgets, cash)
        if choice is None:
            continue
        seat = choice.seat
        budgets[seat, choice.lead] -= choice.risk
        if k + 1 < passes:
            books.add(seat, choice.lead, choice.quantity, choice.probability)
        if cash is not None:
            cash[seat] -= choice.quantity
        plan.propose[choice.thread] = True
        delivery = situation.day.obs.day[seat] + choice.lead
        plan.offer[choice.thread] = np.stack([choice.quantity, delivery, choice.price], axis=1)
    return plan


def _cells(seat: Ints, time: Floats) -> tuple[int, Ints, Ints]:
    """Return the number of pairs of factory and time, the pair of each thread, and the first thread of each pair."""
    if seat[0] == seat[-1] and (time == time[0]).all():
        return 1, np.zeros(len(seat), np.int64), np.zeros(1, np.int64)
    key = seat * (1 << 32) + np.rint(time * 1e9).astype(np.int64)
    cells, first, cell = np.unique(key, return_index=True, return_inverse=True)
    return len(cells), cell, first


def _open_offers(situation: SituationBatch, market: Market, first: Ints, time: Floats, hard: Ints, room: Ints) -> _Open:
    """Return the offers that may be made in each cell, whoever the partner is.

    Args:
        situation: The round.
        market: S rows.
        first: A thread of each cell, ``[C]``.
        time: Relative times of the threads, ``[M]``.
        hard: Units that one deal may hold at most, ``[S, H + 1]``.
        room: Units that may be agreed, ``[S, H + 1]``.
    """
    selling, goals = situation.selling, situation.goals
    seat = situation.threads.seat[first]  # [C]
    p = situation.day.parameters.take(seat)
    _, ends, urgencies = goals.side(selling=selling)
    end, urgency = ends[seat], urgencies[seat]  # [C, H + 1]
    start = start_price(selling, situation.agenda[seat], p)
    when = time[first]
    m = market if len(market.day) == 1 else market.take(seat)
    lead = np.arange(end.shape[1])
    price = np.arange(int(market.price_min.min()), int(market.price_max.max()) + 1)  # [Z] all prices
    legal_price = (price >= m.price_min[:, None]) & (price <= m.price_max[:, None])  # [C, Z]
    # [C, H + 1, Z] prices within our limit that gain something
    if selling:
        floor = _urgent_floor(start, end, when, urgency, p)
        gain = price - goals.hold[seat][:, :, None]
        priced = (price >= floor[:, :, None] - 1e-9) & (gain > 0.0) & legal_price[:, None, :]
        soon = np.ones(end.shape, np.bool_)
    else:
        ceiling = reservation(selling, start, end, np.ones(len(when)), p)
        gain = np.broadcast_to((goals.unit_value[seat][:, None] - price)[:, None, :], (*end.shape, len(price)))
        priced = (price <= ceiling[:, :, None] + 1e-9) & (gain > 0.0) & legal_price[:, None, :]
        soon = (lead == 0) | (np.maximum(when[:, None], urgency) >= 0.5)
    # [C, H + 1] delivery days with room, [C, H + 1, Q] quantities that one deal may hold
    days = soon & (room[seat] > 0) & (lead < m.n_leads[:, None])
    quantity = np.arange(int(market.quantity_max.max()) + 1)
    sized = (quantity >= m.quantity_min[:, None]) & (quantity <= m.quantity_max[:, None])
    fits = (quantity <= hard[seat][:, :, None]) & sized[:, None, :] & days[:, :, None]
    cell, row, units, column = np.nonzero(fits[:, :, :, None] & priced[:, :, None, :])
    at = seat[cell]
    one = len(seat) == 1
    offers = Offers(m if one else m.take(cell), row, units, price[column])
    clock = Clock.of(when)
    cost = excess_cost(situation.day.obs, 0.0, selling=selling)[seat]  # [C]
    cost = cost if one else cost[cell]
    if not selling:
        cost = offers.price + cost
    table = archetypes(offers, clock if one else clock.take(cell), selling=selling)
    return _Open(cell, at, offers, table, gain[cell, row, column], cost)


def _urgent_floor(start: Floats, end: Floats, time: Floats, urgency: Floats, p: ParameterColumns) -> Floats:
    """Return the least prices of sales by lead at the later of round and urgency, ``[C, H + 1]``."""
    if not urgency.any():
        return reservation(True, start, end, time, p)
    late = np.maximum(time[:, None], urgency)
    curve = np.broadcast_to(p.sell_curve[:, None], late.shape)
    conceded = power(late.ravel(), curve.ravel()).reshape(late.shape)
    return np.rint(end + np.maximum(0.0, start[:, None] - end) * (1.0 - conceded) * 1.0)


def _weights(situation: SituationBatch, partners: Partners, time: Floats) -> Floats:
    """Return the weight of the probability of acceptance in the choice of a proposal, ``[M]``."""
    p = situation.day.parameters.take(situation.threads.seat)
    start = 1.0 - partners.patience if situation.selling else p.buy_urgency
    return np.asarray(p.model_weight * (start + (1.0 - start) * power(time, p.model_curve)))


class _Choice(NamedTuple):
    """Proposals of one pass, at most one of each factory, ``[A]`` each."""

    thread: Ints
    seat: Ints
    lead: Ints
    quantity: Ints
    price: Ints
    probability: Floats
    risk: Floats


def _choose(
    situation: SituationBatch,
    partners: Partners,
    acceptance: Acceptance,
    open_: _Open,
    thread_at: Ints,
    weight: Floats,
    beliefs: Floats,
    books: Books,
    budgets: Floats,
    cash: Ints | None,
) -> _Choice | None:
    """Return the best open offers of one pass; None if there is none.

    Args:
        situation: The round.
        partners: The partners of its threads.
        acceptance: L3's probabilities.
        open_: The open offers of all cells.
        thread_at: The thread of each cell that is decided now, -1 if there is none.
        weight: Weight of the probability of acceptance, ``[M]``.
        beliefs: Beliefs about the partners, ``[M, 4]``.
        books: The proposals made before.
        budgets: Expected cost of excess that may be risked, ``[S, H + 1]``.
        cash: Units that free cash buys, ``[S]``; None for sales.
    """
    one = len(thread_at) == 1  # what holds for all rows need not be repeated for each
    part = open_ if one else open_.take(true_rows(thread_at[open_.cell] >= 0))
    thread = thread_at if one else thread_at[part.cell]
    seat, offers, cost = part.seat, part.offers, part.cost
    lead, quantity = offers.lead, offers.quantity
    chance = acceptance.probabilities(partners.index[thread], beliefs[thread], part.table, offers)
    excess = books.excess[seat, lead, quantity]
    # [R] gain of each offer if it is accepted, units beyond the room bringing a loss
    value = (quantity - excess) * part.gain - excess * cost
    # [R] expected cost of its units beyond the room
    risk = chance * excess * cost
    free = (value > 0.0) & (risk <= budgets[seat, lead] + 1e-9)
    if cash is not None:
        free &= quantity <= cash[seat]
    else:  # a consumer must be likely to be solvent at delivery
        last = partners.bankrupt_on[thread] - situation.day.parameters.bankruptcy_days[situation.threads.seat[thread]]
        if not np.isposinf(last).all():
            free &= (lead == 0) | (lead + situation.day.obs.day[seat] <= last)
    rows = true_rows(free)
    if not len(rows):
        return None
    urgency = situation.goals.side(selling=situation.selling)[2]
    by_offer = weight[thread] if one else weight[thread[rows]]
    if urgency.any():
        by_offer = np.maximum(by_offer, urgency[seat[rows], lead[rows]])
    score = by_offer * np.log(chance[rows]) + np.log(value[rows])
    best = rows[_first_best(score, seat[rows])]
    chosen = thread if one else thread[best]
    return _Choice(chosen, seat[best], lead[best], quantity[best], offers.price[best], chance[best], risk[best])


def _first_best(score: Floats, seat: Ints) -> Array:
    """Return the row of each factory's first greatest score; rows of a factory are adjacent."""
    if seat[0] == seat[-1]:
        return np.array([score.argmax()])
    starts = true_rows(np.concatenate(([True], seat[1:] != seat[:-1])))
    best = np.maximum.reduceat(score, starts)
    counts = np.diff(np.append(starts, len(score)))
    winners = true_rows(score == np.repeat(best, counts))
    first = np.concatenate(([True], seat[winners][1:] != seat[winners][:-1]))
    return winners[first]
