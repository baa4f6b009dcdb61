"""L1, soft bounds: how much may be sold before its input has arrived, and what a risk budget allows beyond it.

Input that is in stock or contracted covers a sale; with a risk budget, input that is expected to come counts too. At a
budget of 0 only covered units are sold, and the soft bounds are as hard as the hard ones.
"""

from __future__ import annotations

from math import isfinite

from ..memory import Memory, Regime
from ..observation import Calendar, Observation
from ..parameters import Parameters
from ..plan import Bounds, Goals

__all__ = ["bounded_goals", "purchase_cap", "sale_caps", "sellable"]


def sellable(
    obs: Observation, calendar: Calendar, limits: Bounds, memory: Memory, parameters: Parameters
) -> tuple[int, ...]:
    """Return the units to sell by lead: what is covered, and with a risk budget what is expected to come.

    While the stock of a factory whose stock persists is below its target, what comes in is kept: a unit
    kept now can be sold on every later day.
    """
    p = parameters
    if p.risk_budget <= 0.0 or memory.regime is not Regime.PERSISTENT:
        return _covered(limits, memory)
    build = obs.days_left > p.stock_days
    target = round(p.stock_target * obs.n_lines)
    later = p.input_trust * memory.mean_exogenous_in if obs.first_level else 0.0
    units, stock = [], float(obs.stock_in)
    for lead in range(len(calendar.sold)):
        incoming = calendar.bought[lead] + (obs.exogenous_in if lead == 0 else later)
        if lead > 1 and build and not obs.first_level:
            stock = max(stock, p.input_trust * target)
        outgoing = calendar.sold[lead] + (obs.exogenous_out if lead == 0 else 0)
        usable = stock + incoming
        keep = build and obs.first_level and usable < min(target, obs.n_lines)
        room = 0 if keep else int(usable) - outgoing
        units.append(max(0, min(limits.lines[lead], room)))
        stock += max(0.0, incoming - outgoing)
    return tuple(units)


def _covered(limits: Bounds, memory: Memory) -> tuple[int, ...]:
    """Return what input covers by lead; where stock depletes, no unit is counted for two days."""
    if memory.regime is Regime.PERSISTENT:
        return limits.covered
    rooms, taken = [], 0
    for lead, spare in enumerate(limits.spare):
        rooms.append(max(0, min(limits.lines[lead], spare - taken)))
        taken += rooms[-1]
    return tuple(rooms)


def sale_caps(
    obs: Observation, calendar: Calendar, limits: Bounds, memory: Memory, parameters: Parameters
) -> tuple[int, ...]:
    """Return the most that may be promised by lead: what is sellable or covered, and a budget's worth of penalty."""
    trusted = sellable(obs, calendar, limits, memory, parameters)
    if parameters.risk_budget <= 0.0:
        return trusted
    penalty = max(obs.shortfall_penalty_mean, 1e-3)  # both in shares of the output's trading price
    extra = int(parameters.risk_budget * obs.n_lines / penalty)
    safe = _covered(limits, memory)
    return tuple(
        min(line, max(some, sure) + extra) for line, some, sure in zip(limits.lines, trusted, safe, strict=True)
    )


def purchase_cap(obs: Observation, calendar: Calendar, limits: Bounds, memory: Memory, parameters: Parameters) -> int:
    """Return the most units to buy over all delivery days: free cash, and what the factory could ever use of it."""
    here = obs.stock_in + obs.exogenous_in + sum(calendar.bought)
    if memory.regime is Regime.PERSISTENT:
        target = round(max(1.0, parameters.stock_target) * obs.n_lines)
        useful = target + sum(calendar.sold) + obs.exogenous_out
    else:
        useful = obs.n_lines * min(obs.days_left, len(calendar.sold))
    return max(0, min(limits.buy, useful - here))


def bounded_goals(goals: Goals, obs: Observation, caps: tuple[int, ...], most: int) -> Goals:
    """Clip any goals to L1's bounds: sales and purchases under their caps, prices finite, urgency from 0 to 1.

    Args:
        goals: Goals of a learned layer.
        obs: The day's observation.
        caps: `sale_caps` of this moment.
        most: `purchase_cap` of this moment.

    Raises:
        ValueError: If the goals are not for every lead.
    """
    leads = len(caps)
    columns = {name: getattr(goals, name) for name in ("q_buy", "p_buy", "q_sell", "p_sell", "hold")}
    columns |= {name: column for name in ("u_buy", "u_sell") if (column := getattr(goals, name))}  # may be empty
    wrong = {name: len(column) for name, column in columns.items() if len(column) != leads}
    if wrong:
        raise ValueError(f"goals need {leads} entries, one for each day of the horizon, but have {wrong}")
    top = 0.0 if obs.sell_agenda is None else float(obs.sell_agenda.price_max)
    bottom = 0.0 if obs.buy_agenda is None else float(obs.buy_agenda.price_min)
    return type(goals)(
        q_buy=tuple(max(0, min(_whole(units), most)) for units in goals.q_buy),
        p_buy=tuple(price if isfinite(price) else bottom for price in goals.p_buy),
        q_sell=tuple(max(0, min(_whole(units), cap)) for units, cap in zip(goals.q_sell, caps, strict=True)),
        p_sell=tuple(price if isfinite(price) else top for price in goals.p_sell),
        hold=tuple(value if isfinite(value) else top for value in goals.hold),
        unit_value=goals.unit_value if isfinite(goals.unit_value) else bottom,
        u_buy=tuple(_share(urgency) for urgency in goals.u_buy),
        u_sell=tuple(_share(urgency) for urgency in goals.u_sell),
    )


def _whole(units: float) -> int:
    return round(units) if isfinite(units) else 0


def _share(value: float) -> float:
    return min(1.0, max(0.0, value)) if isfinite(value) else 0.0
