"""L4, heuristic: which offers to accept together, and proposals across threads.

`accept_offers` chooses offers by their value beyond our limit price, by an exact knapsack for each day or greedily.
`spread` distributes the units that remain over the threads. Each proposal is chosen by the value of the deal and the
probability that the partner takes it; the same units may be offered to several partners as long as the expected cost of
too many acceptances stays within the risk budget. It goes over the k-th thread of all factories at once and scores only
offers that are open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from ..arrays import Array, Bools, Floats, Ints, true_rows
from ..columns import BUY, SELL, ObservationBatch, ranks
from ..l1.baseline import reservation
from ..l1.safety import legal
from ..l3.grid import OfferGrid
from ..l3.heuristic import Acceptance, Market, at_time
from ..l3.rounds import Rounds
from ..layers import SituationBatch
from ..plan import Books, PlanBatch

__all__ = ["SideView", "Subsets", "accept_offers", "excess_cost", "free_room", "limit_prices", "spread"]

Subsets = Callable[[Ints, Ints, Floats, Ints], Bools]
"""`plan.best_subsets` or `plan.greedy_subsets`."""


_FIRST, _NOTHING = np.zeros(1, np.int64), np.zeros(0, np.int64)
_NUMBERS: Final = np.arange(1024)
_NO_STEPS: Final = np.zeros((1, 1))


class SideView(NamedTuple):
    """What a side knows of a round with M threads of S factories.

    Attributes:
        partner: The partner of each thread as `Acceptance` numbers it, ``[M]``.
        last_day: The last day on which it may be trusted to be solvent, ``[M]``.
        patience: How long to wait for a better price, from 0 to 1, ``[M]``; of purchases 1.
        rounds: How far the threads are, M rows.
        market: The day's markets, S rows.
        cost: Cost of one unit too many, that of a purchase without its price, ``[S]``.
        start: Prices that concessions start from, ``[S]``.
        urgency: Urgency of the side's goals, ``[S, H + 1]``; None if nothing is urgent.
        urgent: Share of the concession that is made at once, likewise.
        grid: The offers that may be made; numbered by the brain's factories.
        acceptance: L3's probabilities; None if there is no model.
    """

    partner: Ints
    last_day: Floats
    patience: Floats
    rounds: Rounds
    market: Market
    cost: Floats
    start: Floats
    urgency: Floats | None
    urgent: Floats | None
    grid: OfferGrid
    acceptance: Acceptance | None


def free_room(situation: SituationBatch) -> Ints:
    """Return the goals' units by lead, less our outstanding proposals, ``[S, H + 1]``."""
    room = situation.goals.side(selling=situation.selling)[0].copy()
    seat, partner = situation.pending.nonzero()
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


def limit_prices(situation: SituationBatch, view: SideView, rows: Array) -> Floats:
    """Return our limit price for the delivery days of the offers on the table, ``[rows]``."""
    threads = situation.threads
    seat = threads.seat[rows]
    lead = threads.offer[rows, 1] - situation.day.obs.day[seat]
    end = situation.goals.side(selling=situation.selling)[1][seat, lead]
    start, conceded = view.start[seat], _weighed(view.rounds.judged[rows], situation, rows)
    if situation.selling:
        return reservation(True, start, end, conceded, patience=view.patience[rows])
    return reservation(False, start, end, conceded, urgency=situation.day.parameters.buy_urgency[seat])


def _weighed(conceded: Floats, situation: SituationBatch, rows: Array) -> Floats:
    """Return concessions ``[rows]`` scaled by L4's weights: a thread of greater α concedes earlier."""
    return conceded if situation.alpha is None else np.minimum(1.0, conceded * situation.alpha[rows])


def accept_offers(situation: SituationBatch, view: SideView, room: Ints, choose: Subsets) -> Bools:
    """Return which offers on the table to accept, ``[M]``.

    Args:
        situation: The round.
        view: What the side knows of it.
        room: Units that may be agreed, ``[S, H + 1]``; reduced in place by what is accepted.
        choose: How offers for the same day are chosen.
    """
    threads, selling, obs = situation.threads, situation.selling, situation.day.obs
    accept = np.zeros(len(threads), np.bool_)
    rows = true_rows(threads.answers & legal(threads.offer, situation.agenda.take(threads.seat, axis=0)))
    if not len(rows):
        return accept
    seat, offer = threads.seat[rows], threads.offer.take(rows, axis=0)
    # [K] value beyond our limit at this time, positive if acceptable
    limit = limit_prices(situation, view, rows)
    surplus = offer[:, 2] - limit if selling else limit - offer[:, 2]
    good = surplus >= 0.0
    if not np.count_nonzero(good):
        return accept
    lead, quantity = offer[:, 1] - obs.day[seat], offer[:, 0]
    if selling:  # a supplier's goods always arrive, a consumer may be bankrupt at a later delivery
        good &= (lead == 0) | (offer[:, 1] <= view.last_day[rows])
    # groups of offers of one factory for one day, in the order of days
    chosen = true_rows(good)
    if len(chosen) == 1:
        order, keys, group = _FIRST, (seat * room.shape[1] + lead)[chosen], _FIRST
    else:
        key = (seat * room.shape[1] + lead)[chosen]
        order = np.argsort(key, kind="stable")
        keys, group = np.unique(key[order], return_inverse=True)
    seats, leads = keys // room.shape[1], keys % room.shape[1]
    chosen = chosen[order]
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


class _Open(NamedTuple):
    """Offers that threads of the same factory and time may be made, in the order of lead, quantity and price.

    Attributes:
        cell: Factory and time of each offer, ``[R]``.
        seat: Its factory, ``[R]``.
        lead: Days until delivery, ``[R]``.
        quantity: Units, ``[R]``.
        price: Unit price, ``[R]``.
        gain: Gain per unit, ``[R]``.
        cost: Loss by one unit too many, ``[R]``, or one for all.
        table: Acceptance by each archetype, ``[4, R]``.
    """

    cell: Ints
    seat: Ints
    lead: Ints
    quantity: Ints
    price: Ints
    gain: Floats
    cost: Floats
    table: Floats

    def take(self, rows: Array) -> _Open:
        """Return some of the offers."""
        cost = self.cost if len(self.cost) == 1 else self.cost[rows]
        return _Open(
            self.cell[rows],
            self.seat[rows],
            self.lead[rows],
            self.quantity[rows],
            self.price[rows],
            self.gain[rows],
            cost,
            self.table.take(rows, axis=1),
        )


def spread(
    situation: SituationBatch,
    view: SideView,
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
        view: What the side knows of the round.
        rest: Threads that need a proposal, ``[M]``.
        taken: Units accepted in this round, ``[S, H + 1]``.
        room: Units that may be agreed, ``[S, H + 1]``.
        budgets: Expected cost of excess that may be risked, ``[S, H + 1]``; reduced in place.
    """
    threads, selling, bounds = situation.threads, situation.selling, situation.day.bounds
    plan, acceptance = PlanBatch.none(len(threads)), view.acceptance
    rows = true_rows(rest)
    if not len(rows) or acceptance is None:
        return plan
    # cells: threads of one factory in the same round share what may be offered
    if situation.alpha is not None:  # threads of greater α first
        rows = rows[np.lexsort((-situation.alpha[rows], threads.seat[rows]))]
    time = view.rounds.clock.time[rows]
    time = time if situation.alpha is None else time + situation.alpha[rows]
    n_cells, cell, first = _cells(threads.seat[rows], time)
    hard = np.maximum(0, (bounds.lines if selling else bounds.buy[:, None]) - taken)
    open_ = _open_offers(situation, view, rows[first], hard, room)
    if not len(open_.lead):
        return plan
    cash = None if selling else free_cash(situation) - taken.sum(1)
    weight = _weights(situation, view)
    beliefs = acceptance.belief.weights(view.partner)  # [M, 4]
    rank = ranks(threads.seat[rows])
    passes = int(rank[-1] if n_cells == 1 else rank.max()) + 1
    books = Books(room, int(view.market.quantity_max.max()), passes)
    for k in range(passes):
        if n_cells == 1:
            thread_at = rows[k : k + 1]
        else:
            now = true_rows(rank == k)
            thread_at = np.full(n_cells, -1)  # [cells] the thread that is decided now
            thread_at[cell[now]] = rows[now]
        choice = _choose(situation, view, acceptance, open_, thread_at, weight, beliefs, books, budgets, cash)
        if choice is None:
            continue
        seat = choice.seat
        budgets[seat, choice.lead] -= choice.risk
        if k + 1 < passes:
            books.add(seat, choice.lead, choice.quantity, choice.probability)
        if cash is not None:
            cash[seat] -= choice.quantity
        thread = choice.thread
        plan.propose[thread] = True
        plan.offer[thread, 0], plan.offer[thread, 2] = choice.quantity, choice.price
        plan.offer[thread, 1] = situation.day.obs.day[seat] + choice.lead
    return plan


def _cells(seat: Ints, time: Floats) -> tuple[int, Ints, Ints]:
    """Return the number of pairs of factory and time, the pair of each thread, and the first thread of each pair."""
    if len(seat) == 1 or (seat[0] == seat[-1] and np.count_nonzero(time == time[0]) == len(time)):
        return 1, _NOTHING, _FIRST
    key = seat * (1 << 32) + np.rint(time * 1e9).astype(np.int64)
    cells, first, cell = np.unique(key, return_index=True, return_inverse=True)
    return len(cells), cell, first


def _open_offers(situation: SituationBatch, view: SideView, first: Ints, hard: Ints, room: Ints) -> _Open:
    """Return the offers that may be made in each cell, whoever the partner is.

    Args:
        situation: The round.
        view: What the side knows of the round.
        first: A thread of each cell, ``[C]``.
        hard: Units that one deal may hold at most, ``[S, H + 1]``.
        room: Units that may be agreed, ``[S, H + 1]``.
    """
    selling, goals, grid, clock = situation.selling, situation.goals, view.grid, view.rounds.clock.take(first)
    seat = situation.threads.seat[first]  # [C]
    only = len(room) == 1  # one factory: what holds for all rows need not be repeated for each
    m = view.market if only else view.market.take(seat)
    # [C, H + 1] steps of the lowest and the highest price that is within our limit and gains something
    lowest: Array = _NO_STEPS
    if selling:
        conceded = _weighed(view.rounds.conceded[first], situation, first)[:, None]
        if view.urgent is not None:  # powers rise with the time, so that of the later time is the greater
            conceded = np.maximum(conceded, view.urgent[seat])
        floor = reservation(True, view.start[seat][:, None], goals.p_sell[seat], conceded)
        lowest = np.maximum(floor, np.floor(goals.hold[seat]) + 1.0) - m.price_min[:, None]
        highest = (m.price_max - m.price_min)[:, None]
    else:
        ceiling = np.minimum(np.rint(goals.p_buy[seat]), (np.ceil(goals.unit_value[seat]) - 1.0)[:, None])
        highest = np.minimum(ceiling, m.price_max[:, None]) - m.price_min[:, None]
    # [C, H + 1] delivery days with room, and the most units of one deal
    leads = _NUMBERS[: room.shape[1]]
    days = (room[seat] > 0) & (leads < m.n_leads[:, None])
    if not selling:
        late = clock.time[:, None] if view.urgency is None else np.maximum(clock.time[:, None], view.urgency[seat])
        days &= (leads == 0) | (late >= 0.5)
    units = np.minimum(hard[seat], m.quantity_max[:, None]) * days
    # [C, H + 1, Q, Z] open offers as the grid numbers them
    _, quantities, prices = grid.shape
    quantity, step = _NUMBERS[:quantities], _NUMBERS[:prices]
    sized = (quantity <= units[:, :, None]) & (quantity >= m.quantity_min[:, None, None])
    priced = (step >= lowest[:, :, None]) & (step <= highest[:, :, None])
    within = (sized[:, :, :, None] & priced[:, :, None, :]).reshape(len(seat), -1)
    if len(seat) == 1:
        offer = within[0].nonzero()[0]
        cell, at = _FIRST, seat
    else:
        cell, offer = within.nonzero()
        at = seat[cell]
        clock = clock.take(cell)
    lead, quantity, step = grid.lead[offer], grid.quantity[offer], grid.step[offer]
    price = m.price_min[0] + step if only else view.market.price_min[at] + step
    gain = price - goals.hold[at, lead] if selling else goals.unit_value[at] - price
    cost = view.cost if only else view.cost[at]
    if not selling:
        cost = price + cost
    fixed = grid.traits(situation.seats[at], offer)
    return _Open(cell, at, lead, quantity, price, gain, cost, at_time(fixed, clock, selling=selling))


def _weights(situation: SituationBatch, view: SideView) -> Floats:
    """Return the weight of the probability of acceptance in the choice of a proposal, ``[M]``."""
    p, seat = situation.day.parameters, situation.threads.seat
    start = 1.0 - view.patience if situation.selling else p.buy_urgency[seat]
    return np.asarray(p.model_weight[seat] * (start + (1.0 - start) * view.rounds.weight))


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
    view: SideView,
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
        view: What the side knows of it.
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
    decided = thread_at >= 0
    whole = one or np.count_nonzero(decided) == len(decided)
    part = open_ if whole else open_.take(true_rows(decided[open_.cell]))
    thread = thread_at if one else thread_at[part.cell]
    seat, lead, quantity, cost = part.seat, part.lead, part.quantity, part.cost
    chance = acceptance.probabilities(view.partner[thread], beliefs[thread], part.table, lead, quantity, part.price)
    excess = books.excess[seat, lead, quantity]
    # [R] gain of each offer if it is accepted, units beyond the room bringing a loss, and the loss to be expected
    value = (quantity - excess) * part.gain - excess * cost
    risk = chance * excess * cost
    free = (value > 0.0) & (risk <= budgets[seat, lead] + 1e-9)
    if cash is not None:
        free &= quantity <= cash[seat]
    else:  # a consumer must be likely to be solvent at delivery
        last = view.last_day[thread]
        if np.count_nonzero(last < np.inf):
            free &= (lead == 0) | (lead + situation.day.obs.day[seat] <= last)
    rows = true_rows(free)
    if not len(rows):
        return None
    by_offer = weight[thread] if one else weight[thread[rows]]
    if view.urgency is not None:
        by_offer = np.maximum(by_offer, view.urgency[seat if one else seat[rows], lead[rows]])
    score = by_offer * np.log(chance[rows]) + np.log(value[rows])
    if one:
        best = rows[score.argmax() :][:1]
        return _Choice(thread, seat, lead[best], quantity[best], part.price[best], chance[best], risk[best])
    best = rows[_first_best(score, seat[rows])]
    return _Choice(thread[best], seat[best], lead[best], quantity[best], part.price[best], chance[best], risk[best])


def _first_best(score: Floats, seat: Ints) -> Array:
    """Return the row of each factory's first greatest score; rows of a factory are adjacent."""
    starts = true_rows(np.concatenate(([True], seat[1:] != seat[:-1])))
    best = np.maximum.reduceat(score, starts)
    counts = np.diff(np.append(starts, len(score)))
    winners = true_rows(score == np.repeat(best, counts))
    first = np.concatenate(([True], seat[winners][1:] != seat[winners][:-1]))
    return winners[first]
