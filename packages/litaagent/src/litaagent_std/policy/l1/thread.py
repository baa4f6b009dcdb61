"""L1's baseline for one thread alone, from the day's observation and the thread: the base of residuals.

In play the baseline of `Side` knows the deals of the day so far. A record does not show which of them an agent knew
when it decided, so here the day is planned once, at its start: every partner gets its share of the day's goal,
and a thread's round moves only the price. The same plan is made live and from a record, so that a residual means the
same in training and in play.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Literal

from ..observation import Agenda, Observation, Offer, Partner, ThreadObservation
from ..parameters import Parameters
from ..plan import Bounds, Goals
from . import baseline
from .safety import clip

__all__ = ["SidePlan", "day_start_plans", "thread_baseline"]

Kind = Literal["accept", "reject", "end"]


@dataclass(frozen=True, slots=True)
class SidePlan:
    """What L1's baseline does on one side of a day.

    Attributes:
        day: The day.
        selling: Which side this is.
        agenda: The side's legal range of offers.
        goals: The heuristic goals of the day's start.
        parameters: The level's parameters.
        room: Most units to accept, by lead.
        most: Most units to offer, by lead.
        shares: Lead and quantity to offer each partner; partners without a share are not in it.
    """

    day: int
    selling: bool
    agenda: Agenda
    goals: Goals
    parameters: Parameters
    room: tuple[int, ...]
    most: tuple[int, ...]
    shares: Mapping[str, tuple[int, int]]


def day_start_plans(
    obs: Observation, limits: Bounds, goals: Goals, parameters: Parameters
) -> tuple[SidePlan | None, SidePlan | None]:
    """Plan both sides of a day.

    Args:
        obs: The day's observation.
        limits: L1's bounds at the day's start.
        goals: The heuristic goals at the day's start.
        parameters: The level's parameters.

    Returns:
        The plans of buying and of selling; None for a side that the level does not trade.
    """
    leads = obs.horizon + 1
    buys = sells = None
    if obs.buy_agenda is not None:
        room = tuple(min(q, limits.buy) for q in goals.q_buy)
        shares = _shares(obs, goals, obs.buy_agenda, parameters, selling=False)
        most = (limits.buy,) * leads
        buys = SidePlan(obs.day, False, obs.buy_agenda, goals, parameters, room, most, shares)
    if obs.sell_agenda is not None:
        room = tuple(min(q, line) for q, line in zip(goals.q_sell, limits.lines, strict=True))
        shares = _shares(obs, goals, obs.sell_agenda, parameters, selling=True)
        sells = SidePlan(obs.day, True, obs.sell_agenda, goals, parameters, room, limits.lines, shares)
    return buys, sells


def _shares(
    obs: Observation, goals: Goals, agenda: Agenda, parameters: Parameters, *, selling: bool
) -> dict[str, tuple[int, int]]:
    """Return the lead and quantity that the baseline would open with, were all partners of a side there."""
    make = baseline.sell_offers if selling else baseline.buy_offers
    partners = obs.consumers if selling else obs.suppliers
    threads = [_opening(obs, partner, selling=selling) for partner in partners if not partner.bankrupt]
    room = list(goals.q_sell if selling else goals.q_buy)
    offers = make(threads, agenda, room, goals, parameters)
    return {name: (offer.time - obs.day, offer.quantity) for name, offer in offers.items() if offer is not None}


def _opening(obs: Observation, partner: Partner, *, selling: bool) -> ThreadObservation:
    return ThreadObservation(obs.day, partner.name, not selling, 0, 2, 0.0, True, None, (), obs.calendar)


def thread_baseline(thread: ThreadObservation, plan: SidePlan) -> tuple[Kind, Offer]:
    """Decide one thread alone.

    Returns:
        Whether to accept, reject or end, and the counter-offer. There is always one, also beside an acceptance
        (what would be offered instead) and an end (the least that may be offered, at the price of this round): a
        residual needs something to be added to.
    """
    share = plan.shares.get(thread.partner)
    counter = None if share is None else _counter(thread, plan, *share)
    if thread.offer is not None and _acceptable(thread, thread.offer, plan):
        kind: Kind = "accept"
    else:
        kind = "end" if counter is None else "reject"
    return kind, counter or _least(thread, plan)


def _counter(thread: ThreadObservation, plan: SidePlan, lead: int, quantity: int) -> Offer | None:
    time = baseline.progress(thread, proposing=True)
    if plan.selling:
        price = ceil(baseline.sell_reservation(plan.goals, plan.agenda, lead, time, plan.parameters))
    else:
        price = floor(baseline.buy_reservation(plan.goals, plan.agenda, lead, time, plan.parameters))
    return clip(Offer(quantity, plan.day + lead, price), plan.agenda, plan.most[lead])


def _least(thread: ThreadObservation, plan: SidePlan) -> Offer:
    """Return the smallest offer for the earliest delivery."""
    agenda = plan.agenda
    lead, enough = agenda.time_min - plan.day, (agenda.quantity_max,) * len(plan.most)
    offer = _counter(thread, replace(plan, most=enough), lead, agenda.quantity_min)
    assert offer is not None
    return offer


def _acceptable(thread: ThreadObservation, offer: Offer, plan: SidePlan) -> bool:
    lead = offer.time - plan.day
    if not plan.agenda.legal(offer) or not 0 <= lead < len(plan.room) or offer.quantity > plan.room[lead]:
        return False
    time = baseline.progress(thread, proposing=False)
    if plan.selling:
        return offer.price >= baseline.sell_reservation(plan.goals, plan.agenda, lead, time, plan.parameters)
    return offer.price <= baseline.buy_reservation(plan.goals, plan.agenda, lead, time, plan.parameters)
