"""L4, heuristic: proposals across threads.

`spread` distributes the units that remain over the threads. Each proposal is chosen by the value of the deal and the
probability that the partner takes it; the same units may be offered to several partners as long as the expected cost of
too many acceptances stays within the risk budget. It goes over the k-th thread of all factories at once and scores only
offers that are open.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from ..arrays import Array, Bools, Floats, Indices, Ints, true_rows
from ..columns import ranks
from ..l3.heuristic import Acceptance
from ..layers import SituationBatch
from ..plan import Books, PlanBatch
from .view import SideView, conceded_with, free_cash

__all__ = ["spread"]

_FIRST: Final = np.zeros(1, np.int64)
_NOTHING: Final = np.zeros(0, np.intp)
_NUMBERS: Final = np.arange(1024)
_NONE, _SLACK = np.array(0.0), np.array(1e-9)
_TODAY: Final = _NUMBERS == 0


class _Open(NamedTuple):
    """Open offers: of each cell, or repeated for each thread; in the order of lead, quantity and price.

    A cell is a factory's threads of the same round, which share what may be offered.

    Attributes:
        owner: The cell or the thread of each offer, ``[R]``, or one for all.
        seat: Its factory, likewise.
        whole: Lead, quantity, unit price, and indices of delivery day and quantity, and of delivery day, among those
            of all factories, ``[5, R]``.
        real: Acceptance by each archetype, gain per unit, and loss by one unit too many, ``[6, R]``.
    """

    owner: Ints
    seat: Ints
    whole: Ints
    real: Floats


def spread(
    situation: SituationBatch,
    view: SideView,
    rest: Bools,
    taken: Ints | None,
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
        taken: Units accepted in this round, ``[S, H + 1]``; None if there are none.
        room: Units that may be agreed, ``[S, H + 1]``.
        budgets: Expected cost of excess that may be risked, ``[S, H + 1]``, contiguous; reduced in place.
    """
    threads = situation.threads
    plan, rows = PlanBatch.none(len(threads)), true_rows(rest)
    if not len(rows) or view.acceptance is None:
        return plan
    if situation.alpha is not None:  # threads of greater α first
        rows = rows[np.lexsort((-situation.alpha[rows], threads.seat[rows]))]
    n_cells, cell, first = _cells(situation, view, rows)
    open_ = _open_offers(situation, view, rows[first], taken, room)
    if not open_.whole.shape[1]:
        return plan
    ends = [open_.whole.shape[1]]
    if len(rows) > 1:
        open_, ends = _by_thread(open_, rows, n_cells, cell, threads.seat[rows])
    best = _proposals(situation, view, view.acceptance, open_, ends, taken, room, budgets)
    if len(best):
        thread = _at(open_.owner, best)
        plan.propose[thread] = True
        # [A, 3] quantity, delivery day and price
        offer = open_.whole[_TERMS, best[:, None]]
        offer[:, 1] += situation.day.obs.day[_at(open_.seat, best)]
        plan.offer[thread] = offer
    return plan


_TERMS: Final = np.array([1, 0, 2])


def _at(column: Array, rows: Array) -> Array:
    """Return some rows of a column that holds one value for all rows, or one for each."""
    return column if len(column) == 1 else column[rows]


def _cells(situation: SituationBatch, view: SideView, rows: Ints) -> tuple[int, Ints, Ints]:
    """Return the number of cells, the cell of each thread, and the first thread of each cell."""
    if len(rows) == 1:
        return 1, _FIRST, _FIRST
    seat, time = situation.threads.seat[rows], view.rounds.clock.time[rows]
    if situation.alpha is not None:  # concessions differ
        time = time + situation.alpha[rows]
    if seat[0] == seat[-1] and np.count_nonzero(time == time[0]) == len(time):
        return 1, np.zeros(len(rows), np.int64), _FIRST
    key = seat * (1 << 32) + np.rint(time * 1e9).astype(np.int64)
    cells, first, cell = np.unique(key, return_index=True, return_inverse=True)
    return len(cells), cell, first


def _open_offers(situation: SituationBatch, view: SideView, first: Ints, taken: Ints | None, room: Ints) -> _Open:
    """Return the offers that may be made in each cell, whoever the partner is.

    Args:
        situation: The round.
        view: What the side knows of the round.
        first: A thread of each cell, ``[C]``.
        taken: Units accepted in this round, ``[S, H + 1]``; None if there are none.
        room: Units that may be agreed, ``[S, H + 1]``.
    """
    selling, goals, grid, wanted = situation.selling, situation.goals, view.grid, view.wanted
    seat, clock, m = situation.threads.seat[first], view.rounds.clock.take(first), view.market  # [C]
    # [S, H + 1] units that one deal may hold at most
    units = wanted.units
    if taken is not None:
        left = np.minimum(np.maximum(0, wanted.hard - taken), m.quantity_max[:, None])
        units = np.minimum(left, units)  # units are 0 on days that cannot be agreed for
    units = units * (room > 0)
    enough, highest, low = wanted.enough, wanted.highest, m.price_min[:, None]
    one = len(room) == len(first) == 1
    if not one:
        units, enough, highest, low = units[seat], enough[seat], highest[seat], low[seat]
    # [C, H + 1] the lowest price as a step of the grid, and how many are above it
    lowest = None
    if selling:  # within our limit, and gaining something
        conceded = conceded_with(view.rounds.conceded[first], situation, first)[:, None]
        end, drop, gains, urgent = goals.p_sell, wanted.drop, wanted.least, wanted.urgent
        if not one:
            end, drop, gains = end[seat], drop[seat], gains[seat]
            urgent = None if urgent is None else urgent[seat]
        if urgent is not None:  # powers rise with the time, so that of the later time is the greater
            conceded = np.maximum(conceded, urgent)
        lowest = np.maximum(np.maximum(np.rint(end + drop * (1.0 - conceded)), gains) - low, _NONE)
        prices = highest - lowest
    else:  # later days only in the second half of the thread, or if they are urgent
        late = clock.time[:, None]
        if wanted.urgency is not None:
            late = np.maximum(late, wanted.urgency[seat])
        units, prices = units * (_TODAY[: room.shape[1]] | (late >= 0.5)), highest
    units = units * (prices >= _NONE)
    # [K] quantities for a delivery day of a cell that may be offered, numbered (cell · L + lead) · Q + quantity
    leads, quantities, steps = grid.shape
    sized = (_NUMBERS[:quantities] <= units[:, :, None]) & enough
    slot = true_rows(sized.reshape(-1))
    day = slot // quantities
    count = prices.reshape(-1).take(day).astype(np.int64) + 1
    single = len(seat) == 1
    cell = _FIRST if single else day // leads
    at = seat.take(cell)
    step = count - count.cumsum()
    if lowest is not None:
        step += lowest.reshape(-1).take(day).astype(np.int64)
    table = np.empty((7 if single else 9, len(slot)), np.int64)
    np.subtract(slot, day * quantities, out=table[1])
    np.add(step, m.price_min.take(at), out=table[2])
    table[0], table[3], table[4] = day, slot, day
    if grid.n > 1 or not single:  # rows of all cells become rows of the factories here, and of all of the brain
        own = (at - cell) * leads
        table[0], table[3], table[4] = day - cell * leads, slot + own * quantities, day + own
        known = (situation.seats.take(at) - cell) * leads
        slot, day = slot + known * quantities, day + known
    np.add(day * steps, step, out=table[5])
    np.add(cell * steps, step, out=table[6])
    if not single:
        table[7], table[8] = cell, at
    whole = table.repeat(count, axis=1)
    number = np.arange(whole.shape[1])
    whole[2] += number
    whole[5:7] += number
    real = np.empty((6, len(number)))
    grid.archetypes(situation.seats.take(seat), clock, cell, slot, count, whole[5:7], out=real[:4])
    owner, at = (first, seat) if single else whole[7:]
    if selling:
        np.subtract(whole[2], goals.hold.reshape(-1).take(whole[4]), out=real[4])
        real[5] = view.cost.take(at)
    else:
        np.subtract(goals.unit_value.take(at), whole[2], out=real[4])
        np.add(whole[2], view.cost.take(at), out=real[5])
    return _Open(owner, at, whole[:5], real)


def _by_thread(open_: _Open, rows: Ints, n_cells: int, cell: Ints, seat: Ints) -> tuple[_Open, list[int]]:
    """Repeat the offers of cells for their threads, the k-th threads of all factories together.

    Args:
        open_: The offers of cells.
        rows: The threads, ``[N]``.
        n_cells: Number of cells.
        cell: The cell of each thread, ``[N]``.
        seat: Its factory, ``[N]``.

    Returns:
        The offers, and where those of the k-th threads end.
    """
    if n_cells == 1:
        size, number = open_.whole.shape[1], len(rows)
        index = np.arange(size * number) % size
        owner, ends = rows.repeat(size), list(range(size, size * number + 1, size))
        return _Open(owner, open_.seat, open_.whole.take(index, axis=1), open_.real.take(index, axis=1)), ends
    rank = ranks(seat)
    order = rank.argsort(kind="stable")
    start = open_.owner.searchsorted(np.arange(n_cells + 1))  # cells of offers rise
    own = cell[order]
    first, count = start[own], (start[1:] - start[:-1])[own]
    last = count.cumsum()
    # [T] the offer of the cell that each row repeats
    index = np.arange(last[-1]) + (first - last + count).repeat(count)
    ends = last[np.bincount(rank).cumsum() - 1].tolist()
    whole, real = open_.whole.take(index, axis=1), open_.real.take(index, axis=1)
    return _Open(rows[order].repeat(count), open_.seat[index], whole, real), ends


def _weights(situation: SituationBatch, view: SideView) -> Floats:
    """Return the weight of the probability of acceptance in the choice of a proposal, ``[M]``."""
    p, seat = situation.day.parameters, situation.threads.seat
    start = 1.0 - view.patience if situation.selling else p.buy_urgency.take(seat)
    weight = (1.0 - start) * view.rounds.weight
    weight += start
    weight *= p.model_weight.take(seat)
    return weight


def _proposals(
    situation: SituationBatch,
    view: SideView,
    acceptance: Acceptance,
    open_: _Open,
    ends: list[int],
    taken: Ints | None,
    room: Ints,
    budgets: Floats,
) -> Indices:
    """Return the proposals as rows of the open offers, at most one of each thread.

    Args:
        situation: The round.
        view: What the side knows of it.
        acceptance: L3's probabilities.
        open_: The open offers of all threads, T rows.
        ends: Where those of the k-th threads of all factories end.
        taken: Units accepted in this round, ``[S, H + 1]``; None if there are none.
        room: Units that may be agreed, ``[S, H + 1]``.
        budgets: Expected cost of excess that may be risked, ``[S, H + 1]``; reduced in place.
    """
    thread, seat, (lead, quantity, price, slot, day), real = open_
    gain, cost = real[4], real[5]
    beliefs, weight = acceptance.belief.weights(view.partner).T, _weights(situation, view)
    if len(thread) > 1 or len(weight) > 1:  # [4, T] and [T]
        beliefs, weight = beliefs.take(thread, axis=1), weight.take(thread)
    chance = acceptance.probabilities(view.partner.take(thread), beliefs, real[:4], lead, quantity, price)
    if view.wanted.urgency is not None:
        weight = np.maximum(weight, view.wanted.urgency.reshape(-1).take(day))
    weighed = np.log(chance)  # [T]
    weighed *= weight
    cash, solvent = None, None
    if not situation.selling:
        cash = free_cash(situation)
        cash = cash if taken is None else cash - taken.sum(1)
    elif np.count_nonzero(view.last_day < np.inf):  # a consumer must be likely to be solvent at delivery
        solvent = (lead == 0) | (lead + situation.day.obs.day[seat] <= view.last_day[thread])
    books = Books(room, view.grid.shape[1] - 1, len(ends))
    excess_of, risked, begin = books.excess.reshape(-1), budgets.reshape(-1), 0
    chosen = []
    for end in ends:
        part = slice(begin, end)
        # [R] gain of each offer if it is accepted, units beyond the room bringing a loss, and the loss to be expected
        excess, units = excess_of.take(slot[part]), quantity[part]
        lost = excess * cost[part]
        value = units - excess
        value *= gain[part]
        value -= lost
        risk = chance[part] * excess
        risk *= cost[part]
        free = value > _NONE
        free &= risk <= risked.take(day[part]) + _SLACK
        if cash is not None:
            free &= units <= cash[seat if len(seat) == 1 else seat[part]]
        elif solvent is not None:
            free &= solvent[part]
        rows = true_rows(free)
        if len(rows):
            score = np.log(value.take(rows))
            score += weighed[part].take(rows)
            if len(seat) == 1:  # one factory: one thread in each pass
                at = score.argmax()
                rows = rows[at : at + 1]
            else:
                rows = rows[_first_best(score, seat[part][rows])]
            best = rows + begin
            risked[day[best]] -= risk[rows]
            if end < ends[-1]:
                books.add(_at(seat, best), lead[best], quantity[best], chance[best])
                if cash is not None:
                    cash[_at(seat, best)] -= quantity[best]
            chosen.append(best)
        begin = end
    return np.concatenate(chosen or [_NOTHING])


def _first_best(score: Floats, seat: Ints) -> Array:
    """Return the row of each factory's first greatest score; rows of a factory are adjacent."""
    starts = true_rows(np.concatenate(([True], seat[1:] != seat[:-1])))
    best = np.maximum.reduceat(score, starts)
    counts = np.diff(np.append(starts, len(score)))
    winners = true_rows(score == np.repeat(best, counts))
    first = np.concatenate(([True], seat[winners][1:] != seat[winners][:-1]))
    return winners[first]
