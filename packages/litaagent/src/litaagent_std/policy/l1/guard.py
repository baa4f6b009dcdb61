"""L1, guard: clips whatever the layers decided to the bounds, all threads of a side together.

Accepted sets never exceed the lines that a day has left, nor free cash. Proposals are made smaller, or dropped,
until the units that partners could take beyond the soft bound cost no more than the risk budget in expectation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..layers import Action, Situation
from ..observation import Offer, ThreadObservation
from ..plan import Book, Plan, best_subset
from .safety import clip

__all__ = ["Allowance", "guard", "wanted_plan"]


@dataclass(frozen=True, slots=True)
class Allowance:
    """Limits that the guard enforces.

    Attributes:
        caps: Units that may be promised by lead: `risk.sale_caps` or `risk.purchase_cap`.
        total: Units that may be promised over all leads together; None for sales.
        excess_cost: Cost of one unit too many.
        budgets: Expected cost of excess that may be risked, by lead; changed in place.
        acceptance: Probability that a thread's partner takes an offer; None if there is no model.
    """

    caps: tuple[int, ...]
    total: int | None
    excess_cost: float
    budgets: list[float]
    acceptance: Callable[[ThreadObservation, Offer], float | None]


def wanted_plan(situation: Situation, actions: Mapping[str, Action]) -> Plan:
    """Return the heuristic plan with a layer's actions in place of its own."""
    accept, offers = set(situation.plan.accept), dict(situation.plan.offers)
    for thread in situation.threads:
        action = actions.get(thread.partner, Action("keep"))
        if action.kind == "keep":
            continue
        accept.discard(thread.partner)
        if action.kind == "accept" and thread.offer is not None:
            accept.add(thread.partner)
        offers[thread.partner] = action.offer if action.kind == "counter" else None
    return Plan(frozenset(accept), offers)


def guard(situation: Situation, wanted: Plan, allowance: Allowance) -> Plan:
    """Return the part of a plan that the bounds allow.

    An accepted offer that does not fit any more becomes a counter-offer of as many units as fit.
    """
    day = situation.obs.day
    # Outstanding proposals and accepted offers reduce what may still be promised.
    caps, total = list(allowance.caps), allowance.total
    for offer in situation.outstanding.values():
        lead = offer.time - day
        if 0 <= lead < len(caps):
            caps[lead] -= offer.quantity
        total = None if total is None else total - offer.quantity
    accept = _accepted(situation, wanted, caps, total)
    for thread in situation.threads:
        if thread.partner in accept and thread.offer is not None:
            caps[thread.offer.time - day] -= thread.offer.quantity
            total = None if total is None else total - thread.offer.quantity
    return Plan(accept, _proposals(situation, wanted, accept, caps, total, allowance))


def _accepted(situation: Situation, wanted: Plan, caps: list[int], total: int | None) -> frozenset[str]:
    by_lead: dict[int, list[tuple[str, Offer]]] = {}
    for thread in situation.threads:
        offer = thread.offer
        if thread.partner in wanted.accept and offer is not None and situation.agenda.legal(offer):
            by_lead.setdefault(offer.time - situation.obs.day, []).append((thread.partner, offer))
    accepted: set[str] = set()
    for lead, offered in sorted(by_lead.items()):
        if lead >= len(caps):
            continue
        free = caps[lead] if total is None else min(caps[lead], total)
        if situation.selling:
            free = min(free, situation.bounds.lines[lead])
        quantities = [offer.quantity for _, offer in offered]
        chosen = best_subset(quantities, [_worth(situation, offer) for _, offer in offered], max(0, free))
        accepted |= {offered[index][0] for index in chosen}
        total = None if total is None else total - sum(quantities[index] for index in chosen)
    return frozenset(accepted)


def _worth(situation: Situation, offer: Offer) -> float:
    """Return the value of an offer above the agenda's worst, always positive."""
    agenda = situation.agenda
    gain = offer.price - agenda.price_min if situation.selling else agenda.price_max - offer.price
    return offer.quantity * (gain + 1.0)


def _proposals(
    situation: Situation,
    wanted: Plan,
    accept: frozenset[str],
    caps: list[int],
    total: int | None,
    allowance: Allowance,
) -> dict[str, Offer | None]:
    day, budgets = situation.obs.day, allowance.budgets
    books = [Book(units, np.ones(1)) for units in caps]
    hard = _lines_left(situation, accept, len(caps))
    offers: dict[str, Offer | None] = {}
    for thread in situation.threads:
        if thread.partner in accept:
            continue
        offer = thread.offer if thread.partner in wanted.accept else wanted.offers.get(thread.partner)
        legal = None if offer is None else clip(offer, situation.agenda, situation.agenda.quantity_max)
        offers[thread.partner] = None
        if legal is None or legal.time - day >= len(caps):
            continue
        lead = legal.time - day
        most = min(legal.quantity, hard[lead] if total is None else total)
        fitting = _fitting(thread, legal, most, books[lead], budgets[lead], allowance)
        if fitting is None or fitting[0].quantity < situation.agenda.quantity_min:
            continue
        offers[thread.partner], risk, chance = fitting
        budgets[lead] -= risk
        books[lead].add(fitting[0].quantity, chance)
        total = None if total is None else total - fitting[0].quantity
    return offers


def _lines_left(situation: Situation, accept: frozenset[str], leads: int) -> list[int]:
    lines = list(situation.bounds.lines[:leads])
    for thread in situation.threads:
        if thread.partner in accept and thread.offer is not None:
            lines[thread.offer.time - situation.obs.day] -= thread.offer.quantity
    return lines


def _fitting(
    thread: ThreadObservation, offer: Offer, most: int, book: Book, budget: float, allowance: Allowance
) -> tuple[Offer, float, float] | None:
    """Return the largest part of an offer whose risk is affordable, its risk and its probability."""
    for quantity in range(most, 0, -1):  # the largest quantity first
        part = offer._replace(quantity=quantity)
        excess = float(book.added_excess(np.array([quantity]))[0])
        if excess > 1e-12 and budget <= 0.0:
            continue
        known = allowance.acceptance(thread, part)
        chance = 1.0 if known is None else known
        risk = chance * excess * allowance.excess_cost
        if risk <= budget + 1e-9:
            return part, risk, chance
    return None
