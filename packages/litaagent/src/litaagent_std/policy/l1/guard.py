"""L1, guard: clips whatever the layers decided to the bounds, all threads of a factory's side together.

Accepted sets never exceed the lines that a day has left, nor free cash. Proposals are made smaller, or dropped,
until the units that partners could take beyond the soft bound cost no more than the risk budget in expectation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arrays import Array, Bools, Floats, Ints, true_rows
from ..columns import ranks
from ..layers import ACCEPT, COUNTER, KEEP, ActionBatch, SituationBatch
from ..plan import Books, PlanBatch, best_subsets
from .safety import clip, legal

__all__ = ["Allowance", "guard", "wanted_plan"]

Chance = Callable[[Ints, Ints, Ints, Ints], Floats]
"""Probability that partners take offers: from threads, leads, quantities and prices, ``[R]`` each; 1 if unknown."""


@dataclass(frozen=True, slots=True, eq=False)
class Allowance:
    """Limits that the guard enforces on S factories.

    Attributes:
        caps: Units that may be promised by lead, ``[S, H + 1]``: `risk.sale_caps` or `risk.purchase_cap`.
        total: Units that may be promised over all leads together, ``[S]``; None for sales.
        excess_cost: Cost of one unit too many, ``[S]``.
        budgets: Expected cost of excess that may be risked, ``[S, H + 1]``; changed in place.
        chance: Probability that a thread's partner takes an offer.
    """

    caps: Ints
    total: Ints | None
    excess_cost: Floats
    budgets: Floats
    chance: Chance


def wanted_plan(situation: SituationBatch, actions: ActionBatch) -> PlanBatch:
    """Return the heuristic plan with a layer's actions in place of its own."""
    plan, kind = situation.plan, actions.kind
    assert plan is not None  # the brain makes it before it asks the layers
    keep = kind == KEEP
    return PlanBatch(
        np.where(keep, plan.accept, (kind == ACCEPT) & situation.threads.answers),
        np.where(keep, plan.propose, kind == COUNTER),
        np.where(keep[:, None], plan.offer, actions.offer),
    )


def guard(situation: SituationBatch, wanted: PlanBatch, allowance: Allowance) -> PlanBatch:
    """Return the part of a plan that the bounds allow.

    An accepted offer that does not fit any more becomes a counter-offer of as many units as fit.
    """
    obs, threads = situation.day.obs, situation.threads
    # Outstanding proposals and accepted offers reduce what may still be promised.
    caps = allowance.caps.copy()
    total = None if allowance.total is None else allowance.total.copy()
    seat, partner = np.nonzero(situation.pending)
    if len(seat):
        _promise(caps, total, seat, situation.outstanding[seat, partner], obs.day)
    accept = _accepted(situation, wanted, caps, total)
    rows = true_rows(accept)
    _promise(caps, total, threads.seat[rows], threads.offer[rows], obs.day)
    return _proposals(situation, wanted, accept, caps, total, allowance)


def _promise(caps: Ints, total: Ints | None, seat: Ints, offers: Ints, day: Ints) -> None:
    """Take promised units ``[R]`` out of what may be promised."""
    lead = offers[:, 1] - day[seat]
    inside = (lead >= 0) & (lead < caps.shape[1])
    np.subtract.at(caps, (seat[inside], lead[inside]), offers[inside, 0])
    if total is not None:
        np.subtract.at(total, seat, offers[:, 0])


def _accepted(situation: SituationBatch, wanted: PlanBatch, caps: Ints, total: Ints | None) -> Bools:
    """Return the offers that are accepted: of each delivery day the most valuable set that fits."""
    threads, agenda = situation.threads, situation.agenda
    accept = np.zeros(len(threads), np.bool_)
    rows = true_rows(wanted.accept & threads.answers)
    rows = rows[legal(threads.offer[rows], agenda[threads.seat[rows]])]
    lead = threads.offer[rows, 1] - situation.day.obs.day[threads.seat[rows]]
    rows, lead = rows[lead < caps.shape[1]], lead[lead < caps.shape[1]]
    if not len(rows):
        return accept
    key = threads.seat[rows] * caps.shape[1] + lead
    order = np.argsort(key, kind="stable")
    rows = rows[order]
    keys, group = np.unique(key[order], return_inverse=True)
    seats, leads = keys // caps.shape[1], keys % caps.shape[1]
    quantity, price = threads.offer[rows, 0], threads.offer[rows, 2]
    ends = agenda[threads.seat[rows]]
    gain = price - ends[:, 4] if situation.selling else ends[:, 5] - price
    worth = quantity * (gain + 1.0)  # above the agenda's worst, always positive
    free = caps[seats, leads]
    if situation.selling:
        free = np.minimum(free, situation.day.bounds.lines[seats, leads])
    left, wave = None if total is None else total.copy(), ranks(seats)
    for step in range(int(wave.max()) + 1):
        groups = true_rows(wave == step)
        within = true_rows(np.isin(group, groups))
        room = free[groups] if left is None else np.minimum(free[groups], left[seats[groups]])
        part = np.searchsorted(groups, group[within])
        taken = within[best_subsets(part, quantity[within], worth[within], np.maximum(0, room))]
        accept[rows[taken]] = True
        if left is not None:
            np.subtract.at(left, seats[group[taken]], quantity[taken])
    return accept


def _proposals(
    situation: SituationBatch,
    wanted: PlanBatch,
    accept: Bools,
    caps: Ints,
    total: Ints | None,
    allowance: Allowance,
) -> PlanBatch:
    threads, obs = situation.threads, situation.day.obs
    plan = PlanBatch(accept, np.zeros(len(threads), np.bool_), np.zeros((len(threads), 3), np.int64))
    refused = wanted.accept & ~accept
    offer = np.where(refused[:, None], threads.offer, wanted.offer)
    agenda = situation.agenda[threads.seat]
    offer, there = clip(offer, agenda, agenda[:, 1])
    lead = offer[:, 1] - obs.day[threads.seat]
    rows = true_rows(~accept & (wanted.propose | refused) & there & (lead < caps.shape[1]))
    if not len(rows):
        return plan
    # [S, H + 1] units that the lines leave free beside what was accepted
    lines = situation.day.bounds.lines.copy()
    _promise(lines, None, threads.seat[accept], threads.offer[accept], obs.day)
    rank = ranks(threads.seat[rows])
    books = Books(caps, int(agenda[:, 1].max()), int(rank.max()) + 1)
    for k in range(int(rank.max()) + 1):
        now = rows[rank == k]
        seat = threads.seat[now]
        most = np.minimum(offer[now, 0], lines[seat, lead[now]] if total is None else total[seat])
        units, risk, chance = _fitting(situation, now, offer[now], lead[now], most, books, allowance)
        fits = units >= np.maximum(1, agenda[now, 0])
        now, seat, units = now[fits], seat[fits], units[fits]
        if not len(now):
            continue
        plan.propose[now], plan.offer[now] = True, offer[now]
        plan.offer[now, 0] = units
        allowance.budgets[seat, lead[now]] -= risk[fits]
        books.add(seat, lead[now], units, chance[fits])
        if total is not None:
            total[seat] -= units
    return plan


def _fitting(
    situation: SituationBatch,
    threads: Ints,
    offer: Ints,
    lead: Ints,
    most: Array,
    books: Books,
    allowance: Allowance,
) -> tuple[Ints, Floats, Floats]:
    """Return the largest parts of offers whose risk is affordable (0 if none), their risks and their probabilities."""
    seat = situation.threads.seat[threads]
    sizes = np.arange(max(1, int(most.max(initial=0))) + 1)  # [Q]
    excess = books.excess[seat, lead][:, : len(sizes)]  # [A, Q]
    rows, size = (np.repeat(threads, len(sizes)), np.tile(sizes, len(threads)))
    wide = [np.repeat(column, len(sizes)) for column in (lead, offer[:, 2])]
    chance = allowance.chance(rows, wide[0], size, wide[1]).reshape(len(threads), len(sizes))
    risk = chance * excess * allowance.excess_cost[seat][:, None]
    budget = allowance.budgets[seat, lead][:, None]
    fits = (sizes >= 1) & (sizes <= most[:, None]) & (risk <= budget + 1e-9) & ((excess <= 1e-12) | (budget > 0.0))
    units = np.where(fits, sizes, 0).max(1)
    at = (np.arange(len(threads)), units)
    return units, risk[at], chance[at]
