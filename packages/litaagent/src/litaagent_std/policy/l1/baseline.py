"""L1, baseline: the decision without any model of the partner.

Prices concede over the rounds from the favourable end of the band to the goal's reservation price; a sale is
offered for the least filled delivery day with all that is left of it; a purchase is spread evenly over the
suppliers.
"""

from __future__ import annotations

from math import ceil, floor

from ..observation import Agenda, Offer, ThreadObservation
from ..parameters import Parameters
from ..plan import Goals, band_price

__all__ = ["buy_offers", "buy_reservation", "progress", "progress_at", "sell_offers", "sell_reservation"]


def progress(thread: ThreadObservation, *, proposing: bool) -> float:
    """Return the relative time of a thread, 1 when this is its last effective decision.

    The side that opens has its last proposal answered in the last round; the other side's proposal of the
    last round is never answered, so its last effective one is a round earlier.
    """
    return progress_at(thread.round, thread.n_rounds, opens=thread.opens, proposing=proposing)


def progress_at(round_: int, n_rounds: int, *, opens: bool, proposing: bool) -> float:
    """Return `progress` from a thread's round, its rounds and who opens it."""
    last = n_rounds - 1 - (1 if proposing and not opens else 0)
    return min(1.0, round_ / last) if last > 0 else 1.0


def sell_reservation(
    goals: Goals, agenda: Agenda, lead: int, time: float, parameters: Parameters, patience: float = 1.0
) -> float:
    """Return the least price of a sale at this relative time, in whole units; at patience 0 the final one."""
    start = band_price(agenda, parameters.sell_start)
    end = goals.p_sell[lead]
    return float(round(end + max(0.0, start - end) * (1.0 - float(time**parameters.sell_curve)) * patience))


def buy_reservation(goals: Goals, agenda: Agenda, lead: int, time: float, parameters: Parameters) -> float:
    """Return the most to pay for a purchase at this relative time, in whole units."""
    start = band_price(agenda, parameters.buy_start)
    end = goals.p_buy[lead]
    conceded = max(parameters.buy_urgency, float(time**parameters.buy_curve))
    return float(round(min(end, start + (end - start) * conceded)))


def sell_offers(
    threads: list[ThreadObservation],
    agenda: Agenda,
    room: list[int],
    goals: Goals,
    parameters: Parameters,
) -> dict[str, Offer | None]:
    """Offer each consumer all that is left of the least filled delivery day; nothing is offered twice.

    Args:
        threads: Threads that need a proposal.
        agenda: Legal range of sales.
        room: Units that may still be offered, by lead; changed in place.
        goals: The day's goals.
        parameters: The level's parameters.
    """
    offers: dict[str, Offer | None] = {}
    for thread in threads:
        lead = max(range(len(room)), key=lambda k: (room[k], -k))
        if room[lead] <= 0:
            offers[thread.partner] = None
            continue
        time = progress(thread, proposing=True)
        price = ceil(sell_reservation(goals, agenda, lead, time, parameters))
        offers[thread.partner] = Offer(min(room[lead], agenda.quantity_max), thread.day + lead, price)
        room[lead] = 0
    return offers


def buy_offers(
    threads: list[ThreadObservation],
    agenda: Agenda,
    room: list[int],
    goals: Goals,
    parameters: Parameters,
) -> dict[str, Offer | None]:
    """Spread today's need evenly over the suppliers; arguments as in `sell_offers`."""
    offers: dict[str, Offer | None] = {}
    for index, thread in enumerate(threads):
        lead = next((k for k, units in enumerate(room) if units > 0), None)
        if lead is None:
            offers[thread.partner] = None
            continue
        quantity = ceil(room[lead] / (len(threads) - index))
        time = progress(thread, proposing=True)
        price = floor(buy_reservation(goals, agenda, lead, time, parameters))
        offers[thread.partner] = Offer(min(quantity, agenda.quantity_max), thread.day + lead, price)
        room[lead] -= quantity
    return offers
