"""L1, safety: what may be bought and sold, and the clip that everything leaving the agent passes.

Hard bounds hold at every setting: an offer consists of integers inside the agenda; what is accepted for a day
never exceeds the lines left free by that day's commitments; purchases never exceed free cash. Soft bounds are
bought with a risk budget: outstanding proposals, and sales beyond input that is already there or contracted.
With a budget of 0 the soft bounds are hard too.

scml (0.7 and 0.8) never takes used input out of the stock, so that a stock of ``n_lines`` feeds the factory
for ever. That may change, so the regime is measured, not believed: `RegimeDetector` compares each morning's
stock with what either rule predicts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..observation import Agenda, Calendar, Observation, Offer


class Regime(Enum):
    """Whether production takes input out of the stock."""

    PERSISTENT = "persistent"
    DEPLETING = "depleting"


class RegimeDetector:
    """Finds out from the factory's own books whether stock depletes.

    Args:
        prior: The regime to assume until a day tells.
    """

    def __init__(self, prior: Regime) -> None:
        self.regime = prior
        self.known = False

    def update(self, stock_before: int, bought: int, produced: int, stock_after: int) -> None:
        """Learns from one settled day; only a day that used more input than it received can tell."""
        if produced <= bought:
            return
        if stock_after == stock_before:
            self.regime, self.known = Regime.PERSISTENT, True
        elif stock_after == stock_before + bought - produced:
            self.regime, self.known = Regime.DEPLETING, True


@dataclass(frozen=True, slots=True)
class Bounds:
    """What may still be agreed, by lead (days until delivery).

    Attributes:
        lines: Units that the lines leave free: the hard bound of sales.
        covered: Units that existing or contracted input covers as well: the bound of sales at risk 0.
        spare: Input that is there or contracted and not promised to a sale; negative where sales are uncovered.
        buy: Units worth of free cash at the highest legal price: the hard bound of all purchases together.
    """

    lines: tuple[int, ...]
    covered: tuple[int, ...]
    spare: tuple[int, ...]
    buy: int


def bounds(obs: Observation, calendar: Calendar, regime: Regime) -> Bounds:
    """Compute the bounds from the morning's observation and the commitments of this moment.

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
    """Return, by lead, the input that is there or contracted and not yet promised to a sale."""
    incoming = [q + (obs.exogenous_in if lead == 0 else 0) for lead, q in enumerate(calendar.bought)]
    outgoing = [q + (obs.exogenous_out if lead == 0 else 0) for lead, q in enumerate(calendar.sold)]
    if regime is Regime.PERSISTENT:
        return [obs.stock_in + incoming[lead] - outgoing[lead] for lead in range(len(incoming))]
    spare, total = [], obs.stock_in
    for lead in range(len(incoming)):
        total += incoming[lead] - outgoing[lead]
        spare.append(total)
    # A sale on one day takes input from every later day: the scarcest day from there on decides.
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
    """Brings an offer inside the agenda and under a quantity bound; None when nothing legal is left."""
    quantity = min(int(offer.quantity), most, agenda.quantity_max)
    if quantity < agenda.quantity_min:
        return None
    return Offer(
        quantity,
        min(max(int(offer.time), agenda.time_min), agenda.time_max),
        min(max(int(offer.price), agenda.price_min), agenda.price_max),
    )
