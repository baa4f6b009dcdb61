"""L1, soft bounds: how much may be sold before its input has arrived, and what a risk budget allows beyond it.

Input that is in stock or contracted covers a sale; with a risk budget, input that is expected to come counts too. At a
budget of 0 only covered units are sold, and the soft bounds are as hard as the hard ones.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, Bools, Floats, Ints
from ..columns import BUY, SELL, CalendarBatch, ObservationBatch
from ..memory import MemoryBatch
from ..parameters import ParameterColumns
from ..plan import BoundsBatch, GoalsBatch
from .safety import flows

__all__ = ["bounded_goals", "purchase_cap", "sale_caps", "sellable"]


def sellable(
    obs: ObservationBatch,
    calendar: CalendarBatch,
    limits: BoundsBatch,
    memory: MemoryBatch,
    parameters: ParameterColumns,
) -> Ints:
    """Return the units to sell by lead: what is covered, and with a risk budget what is expected to come, ``[B, H+1]``.

    While the stock of a factory whose stock persists is below its target, what comes in is kept: a unit
    kept now can be sold on every later day.
    """
    trusting = (parameters.risk_budget > 0.0) & memory.persistent
    number = np.count_nonzero(trusting)
    if not number:
        return _covered(limits, memory.persistent)
    expected = _expected(obs, calendar, limits, memory, parameters)
    if number == len(trusting):
        return expected
    return np.where(trusting[:, None], expected, _covered(limits, memory.persistent))


def _expected(
    obs: ObservationBatch,
    calendar: CalendarBatch,
    limits: BoundsBatch,
    memory: MemoryBatch,
    p: ParameterColumns,
) -> Ints:
    """Return what stock, contracts and input that is expected to come leave to sell, where stock persists."""
    first = obs.first_level
    build = obs.days_left > p.stock_days
    target = np.rint(p.stock_target * obs.n_lines)
    units, outgoing = flows(obs, calendar)
    incoming = units.astype(np.float64)
    incoming[:, 1:] += np.where(first, p.input_trust * memory.mean_exogenous_in, 0.0)[:, None]
    # [B, H + 1] stock at the start of each day: it grows by what a day receives beyond what it uses
    steps = np.empty_like(incoming)
    steps[:, 0] = obs.stock_in
    np.maximum(0.0, incoming[:, :-1] - outgoing[:, :-1], out=steps[:, 1:])
    stock = np.cumsum(steps, axis=1)
    if stock.shape[1] > 2:  # from the third day on the target is trusted to be in stock
        trusted = np.where(build & ~first, np.maximum(stock[:, 2], p.input_trust * target), stock[:, 2])
        steps[:, 2] = trusted
        stock[:, 2:] = np.cumsum(steps[:, 2:], axis=1)
    usable = stock + incoming
    keep = (build & first)[:, None] & (usable < np.minimum(target, obs.n_lines)[:, None])
    room = np.where(keep, 0, usable.astype(np.int64) - outgoing)
    return np.maximum(0, np.minimum(limits.lines, room))


def _covered(limits: BoundsBatch, persistent: Bools) -> Ints:
    """Return what input covers by lead; where stock depletes, no unit is counted for two days."""
    if np.count_nonzero(persistent) == len(persistent):
        return limits.covered
    rooms, taken = np.empty_like(limits.lines), np.zeros(len(limits.lines), np.int64)
    for lead in range(rooms.shape[1]):
        rooms[:, lead] = np.maximum(0, np.minimum(limits.lines[:, lead], limits.spare[:, lead] - taken))
        taken = taken + rooms[:, lead]
    return np.where(persistent[:, None], limits.covered, rooms)


def sale_caps(
    obs: ObservationBatch,
    calendar: CalendarBatch,
    limits: BoundsBatch,
    memory: MemoryBatch,
    parameters: ParameterColumns,
) -> Ints:
    """Return the most that may be promised by lead, ``[B, H + 1]``.

    It is what is sellable or covered, and a budget's worth of penalty.
    """
    trusted = sellable(obs, calendar, limits, memory, parameters)
    penalty = np.maximum(obs.shortfall_penalty_mean, 1e-3)  # both in shares of the output's trading price
    extra = (parameters.risk_budget * obs.n_lines / penalty).astype(np.int64)
    safe = np.maximum(trusted, _covered(limits, memory.persistent)) + extra[:, None]
    return np.where(parameters.risk_budget[:, None] > 0.0, np.minimum(limits.lines, safe), trusted)


def purchase_cap(
    obs: ObservationBatch,
    calendar: CalendarBatch,
    limits: BoundsBatch,
    memory: MemoryBatch,
    parameters: ParameterColumns,
) -> Ints:
    """Return the most units to buy over all delivery days, ``[B]``: free cash, and what could ever be used of it."""
    here = obs.stock_in + obs.exogenous_in + calendar.bought.sum(1)
    target = np.rint(np.maximum(1.0, parameters.stock_target) * obs.n_lines).astype(np.int64)
    kept = target + calendar.sold.sum(1) + obs.exogenous_out
    used = obs.n_lines * np.minimum(obs.days_left, obs.horizon + 1)
    return np.asarray(np.maximum(0, np.minimum(limits.buy, np.where(memory.persistent, kept, used) - here)), np.int64)


def bounded_goals(goals: GoalsBatch, obs: ObservationBatch, caps: Ints, most: Ints) -> GoalsBatch:
    """Clip any goals to L1's bounds: sales and purchases under their caps, prices finite, urgency from 0 to 1.

    Args:
        goals: Goals of a learned layer; quantities may be of any number type.
        obs: The days' observations.
        caps: `sale_caps` of this moment, ``[B, H + 1]``.
        most: `purchase_cap` of this moment, ``[B]``.

    Raises:
        ValueError: If the goals are not for every lead.
    """
    names = ("q_buy", "p_buy", "q_sell", "p_sell", "hold", "u_buy", "u_sell")
    wrong = {name: getattr(goals, name).shape for name in names if getattr(goals, name).shape != caps.shape}
    if wrong:
        raise ValueError(f"goals need the shape {caps.shape}, a column for each day of the horizon, but have {wrong}")
    top = np.where(obs.trades[:, SELL], obs.agenda[:, SELL, 5], 0.0)[:, None]
    bottom = np.where(obs.trades[:, BUY], obs.agenda[:, BUY, 4], 0.0)
    return GoalsBatch(
        q_buy=np.maximum(0, np.minimum(_whole(goals.q_buy), most[:, None])),
        p_buy=_finite(goals.p_buy, bottom[:, None]),
        q_sell=np.maximum(0, np.minimum(_whole(goals.q_sell), caps)),
        p_sell=_finite(goals.p_sell, top),
        hold=_finite(goals.hold, top),
        unit_value=_finite(goals.unit_value, bottom),
        u_buy=np.minimum(1.0, np.maximum(0.0, _finite(goals.u_buy, 0.0))),
        u_sell=np.minimum(1.0, np.maximum(0.0, _finite(goals.u_sell, 0.0))),
    )


def _finite(values: Array, otherwise: Array | float) -> Floats:
    return np.where(np.isfinite(values), values, otherwise)


def _whole(units: Array) -> Ints:
    return np.rint(_finite(units, 0.0)).astype(np.int64)
