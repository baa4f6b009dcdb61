"""L1, hard bounds: what may be bought and sold, and the clip that everything leaving the agent passes.

Hard bounds hold at every setting: an offer consists of integers inside the agenda; what is accepted for a day
never exceeds the lines left free by that day's commitments; purchases never exceed free cash. Soft bounds may be
exceeded within a risk budget: outstanding proposals, and sales beyond input that is in stock or contracted.
With a budget of 0 the soft bounds are hard too.
"""

from __future__ import annotations

from ..memory import Regime
from ..observation import Agenda, Calendar, Observation, Offer
from ..plan import Bounds

__all__ = ["affordable", "bounds", "clip"]


def bounds(obs: Observation, calendar: Calendar, regime: Regime) -> Bounds:
    """Compute the bounds from the day's observation and the commitments of this moment.

    Leads beyond the agenda or the last day get 0.
    """
    leads = range(len(calendar.sold))
    open_leads = _open_leads(obs, len(calendar.sold))
    exogenous_out = [obs.exogenous_out if lead == 0 else 0 for lead in leads]
    lines = [max(0, obs.n_lines - calendar.sold[lead] - exogenous_out[lead]) for lead in leads]
    spare = _spare_input(obs, calendar, regime)
    covered = [max(0, min(lines[lead], spare[lead])) for lead in leads]
    return Bounds(
        lines=tuple(lines[lead] if lead in open_leads else 0 for lead in leads),
        covered=tuple(covered[lead] if lead in open_leads else 0 for lead in leads),
        spare=tuple(spare),
        buy=affordable(obs, calendar),
    )


def _open_leads(obs: Observation, length: int) -> range:
    if obs.sell_agenda is None:
        return range(0)
    return range(min(length, obs.sell_agenda.time_max - obs.day + 1))


def _spare_input(obs: Observation, calendar: Calendar, regime: Regime) -> list[int]:
    """Return, by lead, the input that is in stock or contracted and not yet promised to a sale."""
    incoming = [q + (obs.exogenous_in if lead == 0 else 0) for lead, q in enumerate(calendar.bought)]
    outgoing = [q + (obs.exogenous_out if lead == 0 else 0) for lead, q in enumerate(calendar.sold)]
    if regime is Regime.PERSISTENT:
        return [obs.stock_in + incoming[lead] - outgoing[lead] for lead in range(len(incoming))]
    spare, total = [], obs.stock_in
    for lead in range(len(incoming)):
        total += incoming[lead] - outgoing[lead]
        spare.append(total)
    # A sale on one day takes input from every later day: the minimum over the later days decides.
    for lead in range(len(spare) - 2, -1, -1):
        spare[lead] = min(spare[lead], spare[lead + 1])
    return spare


def affordable(obs: Observation, calendar: Calendar) -> int:
    """Return how many units can be bought at the highest legal price with cash that nothing else claims.

    Claims are the standing purchases of the whole horizon, today's forced purchase, and the production of
    what is sold today.
    """
    if obs.buy_agenda is None:
        return 0
    claimed = sum(calendar.bought_value) + obs.exogenous_in_value
    claimed += obs.production_cost * min(obs.n_lines, calendar.sold[0] + obs.exogenous_out)
    unit = obs.buy_agenda.price_max + obs.production_cost
    return max(0, int((obs.cash - claimed) // unit))


def clip(offer: Offer, agenda: Agenda, most: int) -> Offer | None:
    """Return an offer clipped to the agenda and to a greatest quantity; None when nothing legal is left."""
    quantity = min(int(offer.quantity), most, agenda.quantity_max)
    if quantity < agenda.quantity_min:
        return None
    return Offer(
        quantity,
        min(max(int(offer.time), agenda.time_min), agenda.time_max),
        min(max(int(offer.price), agenda.price_min), agenda.price_max),
    )
