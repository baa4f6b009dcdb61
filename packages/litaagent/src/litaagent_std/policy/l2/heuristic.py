"""L2, heuristic: the day's goals from rules, a quantity and a reservation price for every delivery day.

`expand` spreads goals by delivery bucket, as a learned L2 gives them, over the leads.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, Floats, Ints
from ..buckets import buckets
from ..columns import BUY, SELL, CalendarBatch, ObservationBatch
from ..l1.risk import sellable
from ..memory import MemoryBatch, MemoryRow, drift
from ..observation import Calendar, Observation
from ..parameters import ParameterColumns, Parameters, level_name
from ..plan import Bounds, BoundsBatch, Goals, GoalsBatch, band_price

__all__ = ["HeuristicGoals", "expand", "heuristic_goals"]


def heuristic_goals(
    obs: ObservationBatch,
    calendar: CalendarBatch,
    limits: BoundsBatch,
    memory: MemoryBatch,
    parameters: ParameterColumns,
) -> GoalsBatch:
    """Set goals by rules: sell all that is covered, hold enough stock, prices by lead, fill and drift.

    Args:
        obs: B observations.
        calendar: Commitments of this moment.
        limits: L1's bounds of this moment.
        memory: Statistics across days.
        parameters: B rows.
    """
    q_sell, p_sell, hold = _selling(obs, calendar, limits, memory, parameters)
    q_buy, p_buy, value = _buying(obs, calendar, limits, memory, parameters)
    return GoalsBatch(
        q_buy, p_buy, q_sell, p_sell, hold, value, np.zeros(p_buy.shape), _urgency(obs, memory, parameters)
    )


class HeuristicGoals:
    """The heuristic L2 for one factory (`layers.GoalLayer`), to build another L2 on.

    Args:
        parameters: The parameters; the level's overrides are applied.
    """

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self._obs: Observation | None = None

    def goals(self, obs: Observation, calendar: Calendar, limits: Bounds, memory: MemoryRow) -> Goals:
        """Set the goals; see `layers.GoalLayer`."""
        if self._obs is not obs:
            level = self.parameters.at(level_name(obs.level, obs.n_levels))
            self._obs, self._batch, self._columns = obs, ObservationBatch.of([obs]), ParameterColumns.of([level])
        facts = (CalendarBatch.of([calendar]), BoundsBatch.of(limits), MemoryBatch.of(memory))
        return heuristic_goals(self._batch, *facts, self._columns).row(0, obs.horizon + 1)


def _selling(
    obs: ObservationBatch,
    calendar: CalendarBatch,
    limits: BoundsBatch,
    memory: MemoryBatch,
    p: ParameterColumns,
) -> tuple[Ints, Floats, Floats]:
    """Return units, prices and the value of capacity by lead, ``[B, H + 1]`` each."""
    agenda, trades, shape = obs.agenda[:, SELL], obs.trades[:, SELL], calendar.sold.shape
    if not np.count_nonzero(trades):
        return np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape)
    floor = _unit_cost(obs, memory)
    shift = p.drift_weight * drift(obs) if np.count_nonzero(p.drift_weight) else np.zeros(len(obs))
    # The fuller a delivery day is beyond its usual fill, the higher the final price and the value of capacity.
    unusual = calendar.sold / obs.n_lines[:, None] - memory.usual_fill
    full = np.minimum(1.0, np.maximum(0.0, memory.full_rate[:, None] + p.fill_weight[:, None] * unusual))
    slack = p.sell_end_slack[:, None]
    position = slack + (p.sell_end_full[:, None] - slack) * full
    price = np.rint(band_price(agenda[:, None], position + shift[:, None]))
    price = np.maximum(np.ceil(floor)[:, None], price)
    hold = np.maximum(floor[:, None], p.hold[:, None] * full * agenda[:, 5, None])
    sells = (trades & (floor < agenda[:, 5]))[:, None]
    units = sellable(obs, calendar, limits, memory, p) * sells
    return units, np.where(trades[:, None], price, 0.0), np.where(trades[:, None], hold, 0.0)


def _urgency(obs: ObservationBatch, memory: MemoryBatch, p: ParameterColumns) -> Floats:
    """Return the urgency of sales by lead: 1 while the next days are empty, 0 when they are full, ``[B, H + 1]``.

    It is ``u = clip((high - F) / (high - low), 0, 1)`` of the smoothed fill F, the same for every lead. Nothing is
    urgent where production consumes stock (input that is not sold today is not lost), nor before that is known.
    """
    shape = memory.usual_fill.shape
    urgent = obs.trades[:, SELL] & memory.persistent & memory.regime_known
    if not (np.count_nonzero(urgent) and np.count_nonzero(p.urgency_high)):
        return np.zeros(shape)
    urgent &= (p.urgency_high > 0.0) & ~np.isnan(memory.forward_fill)
    slack = (p.urgency_high - memory.forward_fill) / np.maximum(1e-6, p.urgency_high - p.urgency_low)
    urgency = np.where(urgent, np.minimum(1.0, np.maximum(0.0, slack)), 0.0)
    return np.repeat(urgency[:, None], shape[1], axis=1)


def _unit_cost(obs: ObservationBatch, memory: MemoryBatch) -> Floats:
    """Return the cost of a sold unit: production and used input, less the storage it saves, ``[B]``."""
    price_in = obs.price[:, BUY]
    used = np.where(memory.persistent | obs.first_level, 0.0, price_in)
    return np.asarray(obs.production_cost + used - obs.storage_cost * price_in)


def _buying(
    obs: ObservationBatch,
    calendar: CalendarBatch,
    limits: BoundsBatch,
    memory: MemoryBatch,
    p: ParameterColumns,
) -> tuple[Ints, Floats, Floats]:
    """Return units and prices by lead, ``[B, H + 1]`` each, and the value of a unit of input, ``[B]``."""
    trades = obs.trades[:, BUY]
    units: Ints = np.zeros(calendar.sold.shape, np.int64)
    if not np.count_nonzero(trades):
        return units, np.zeros(units.shape), np.zeros(len(obs))
    units[:, 0] = _need(obs, calendar, memory, p)
    if units.shape[1] > 1:
        units[:, 1] = _need_tomorrow(obs, calendar, memory)
    units = np.where(trades[:, None], np.maximum(0, np.minimum(units, limits.buy[:, None])), 0)
    value = obs.price[:, SELL] - obs.production_cost
    # where stock persists, a unit serves on every day that is left
    serves = np.maximum(1.0, obs.days_left / np.maximum(1.0, p.stock_days))
    value = np.where(trades, np.where(memory.persistent, value * serves, value), 0.0)
    most = np.minimum(value, band_price(obs.agenda[:, BUY], p.buy_end))
    prices = np.broadcast_to(np.where(trades, most, 0.0)[:, None], units.shape)
    return units, prices, value


def _need(obs: ObservationBatch, calendar: CalendarBatch, memory: MemoryBatch, p: ParameterColumns) -> Ints:
    """Return the units of input to buy today, ``[B]``."""
    received = obs.exogenous_in + calendar.bought[:, 0]
    usable = obs.stock_in + received
    committed = np.minimum(obs.n_lines, calendar.sold[:, 0] + obs.exogenous_out)
    shortage = committed - usable
    # Stock grows only by what a day receives beyond what it produces, so today's output is bought too.
    missing = np.rint(p.stock_target * obs.n_lines).astype(np.int64) - obs.stock_in
    wanted = np.where(missing > 0, missing + committed - received, shortage)
    if np.count_nonzero(memory.persistent) < len(memory.persistent):
        cover = np.minimum(p.cover_days, obs.days_left) * memory.output_rate(obs.n_lines)
        flow = calendar.sold.sum(1) + obs.exogenous_out - calendar.bought[:, 1:].sum(1)
        wanted = np.where(memory.persistent, wanted, np.ceil(cover).astype(np.int64) + flow - usable)
    return np.asarray(np.where(obs.days_left <= p.stock_days, shortage, np.maximum(shortage, wanted)), np.int64)


def _need_tomorrow(obs: ObservationBatch, calendar: CalendarBatch, memory: MemoryBatch) -> Ints:
    """Return the units that tomorrow's output lacks if nothing more is bought today, ``[B]``."""
    grown = calendar.bought[:, 0] + obs.exogenous_in
    grown = grown - np.minimum(calendar.sold[:, 0] + obs.exogenous_out, obs.n_lines)
    grown = np.where(memory.persistent, np.maximum(0, grown), grown)
    due = calendar.sold[:, 1] + np.where(obs.last_level, memory.mean_exogenous_out, 0.0)
    lacking = np.ceil(np.minimum(obs.n_lines, due) - obs.stock_in - grown - calendar.bought[:, 1])
    return np.where((obs.days_left <= 1) | (obs.horizon < 1), 0, lacking).astype(np.int64)


def expand(units: Array, price: Array, horizon: int, width: int) -> tuple[Ints, Floats]:
    """Spread quantities and prices by bucket over the leads, quantities in equal whole parts.

    Args:
        units: Units by bucket, ``[B, buckets]``.
        price: Prices by bucket, likewise.
        horizon: The horizon that the buckets divide.
        width: Leads of the result.

    Returns:
        Units and prices, ``[B, width]`` each.
    """
    quantities, prices = np.zeros((len(units), width), np.int64), np.zeros((len(units), width))
    whole = np.rint(units).astype(np.int64)
    for index, bucket in enumerate(buckets(horizon)):
        # a bucket's first leads get the remainder of its units
        more = len(bucket) - 1 - np.arange(len(bucket))
        quantities[:, bucket.start : bucket.stop] = (whole[:, index, None] + more) // len(bucket)
        prices[:, bucket.start : bucket.stop] = price[:, index, None]
    return quantities, prices
