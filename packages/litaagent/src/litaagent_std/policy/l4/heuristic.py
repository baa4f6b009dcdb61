"""L4, heuristic: which offers to accept together.

`accept_offers` chooses offers by their value beyond our limit price, by an exact knapsack for each day or greedily.
What remains is proposed by `spread`. Both read `SideView`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ..arrays import Array, Bools, Floats, Ints, true_rows
from ..columns import BUY, SELL, ObservationBatch, ranks
from ..l1.baseline import reservation
from ..l1.safety import legal
from ..layers import SituationBatch
from .view import SideView, conceded_with, free_cash

__all__ = ["Subsets", "accept_offers", "excess_cost", "limit_prices"]

Subsets = Callable[[Ints, Ints, Floats, Ints], Bools]
"""`plan.best_subsets` or `plan.greedy_subsets`."""


_FIRST: Final = np.zeros(1, np.int64)


def limit_prices(situation: SituationBatch, view: SideView, rows: Array) -> Floats:
    """Return our limit price for the delivery days of the offers on the table, ``[rows]``."""
    threads = situation.threads
    seat = threads.seat[rows]
    lead = threads.offer[rows, 1] - situation.day.obs.day[seat]
    end = situation.goals.side(selling=situation.selling)[1][seat, lead]
    start, conceded = view.start[seat], conceded_with(view.rounds.judged[rows], situation, rows)
    if situation.selling:
        return reservation(True, start, end, conceded, patience=view.patience[rows])
    return reservation(False, start, end, conceded, urgency=situation.day.parameters.buy_urgency[seat])


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
    if not len(chosen):
        return accept
    if len(chosen) == 1:
        order, keys, group = _FIRST, (seat * room.shape[1] + lead)[chosen], _FIRST
    else:
        key = (seat * room.shape[1] + lead)[chosen]
        order = np.argsort(key, kind="stable")
        key = key[order]
        new = np.concatenate(([True], key[1:] != key[:-1]))
        keys, group = key[new], new.cumsum() - 1
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
    left, waves = cash.copy(), int(wave.max()) + 1
    if waves == 1:
        return choose(group, quantity, value, np.maximum(0, np.minimum(room, left[seats])))
    for step in range(waves):
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
