"""L2: the day's goals, a quantity and a reservation price for every delivery day.

The heuristic version is a function of the observation; a learned version gives one quantity and one price per
delivery bucket and side, which `expand` spreads over the leads. Buckets come from the league's horizon.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Protocol

from ..l1.risk import sellable
from ..l1.safety import Bounds, Regime
from ..memory import Memory
from ..observation import Agenda, Calendar, Observation
from ..parameters import Parameters


@dataclass(frozen=True, slots=True)
class Goals:
    """What the day is for, by lead (days until delivery).

    Attributes:
        q_buy: Units to buy.
        p_buy: The most to pay per unit.
        q_sell: Units to sell.
        p_sell: The least to ask per unit.
        hold: What a unit of unsold capacity is worth.
        unit_value: What one more unit of input is worth today, beyond which no price is paid.
    """

    q_buy: tuple[int, ...]
    p_buy: tuple[float, ...]
    q_sell: tuple[int, ...]
    p_sell: tuple[float, ...]
    hold: tuple[float, ...]
    unit_value: float


class GoalLayer(Protocol):
    """Any version of L2."""

    def goals(self, obs: Observation, calendar: Calendar, limits: Bounds, memory: Memory) -> Goals:
        """Set the goals from the morning's observation and the commitments of this moment."""


def buckets(horizon: int) -> tuple[range, ...]:
    """Return the leads of each delivery bucket: today, then three parts of the horizon that grow."""
    cuts = sorted({0, 1, 1 + ceil(horizon * 0.2), 1 + ceil(horizon * 0.5), horizon + 1})
    return tuple(range(low, high) for low, high in pairwise(cuts))


def band_price(agenda: Agenda, position: float) -> float:
    """Return the price at a position of the legal band, 0 for the lowest and 1 for the highest."""
    return agenda.price_min + min(1.0, max(0.0, position)) * (agenda.price_max - agenda.price_min)


class HeuristicGoals:
    """Goals from rules: sell all that is covered, hold enough stock, keep to prices by lead, fill and drift.

    Args:
        parameters: The level's parameters.
    """

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    def goals(self, obs: Observation, calendar: Calendar, limits: Bounds, memory: Memory) -> Goals:
        """Set the goals; see `GoalLayer`."""
        q_sell, p_sell, hold = self._selling(obs, calendar, limits, memory)
        q_buy, p_buy, value = self._buying(obs, calendar, limits, memory)
        return Goals(q_buy, p_buy, q_sell, p_sell, hold, value)

    def _selling(
        self, obs: Observation, calendar: Calendar, limits: Bounds, memory: Memory
    ) -> tuple[tuple[int, ...], tuple[float, ...], tuple[float, ...]]:
        leads = range(len(calendar.sold))
        if obs.sell_agenda is None:
            return (0,) * len(leads), (0.0,) * len(leads), (0.0,) * len(leads)
        p = self.parameters
        quantities = sellable(obs, calendar, limits, memory, p)
        agenda, shift = obs.sell_agenda, p.drift_weight * memory.drift(obs)
        floor = self._unit_cost(obs, memory)
        prices, hold = [], []
        for lead in leads:
            unusual = calendar.sold[lead] / obs.n_lines - memory.usual_fill[lead]
            full = min(1.0, max(0.0, memory.full_rate + p.fill_weight * unusual))
            position = p.sell_end_slack + (p.sell_end_full - p.sell_end_slack) * full
            prices.append(max(ceil(floor), round(band_price(agenda, position + shift))))
            hold.append(max(floor, p.hold * full * agenda.price_max))
        if floor >= agenda.price_max:
            quantities = (0,) * len(leads)
        return quantities, tuple(prices), tuple(hold)

    @staticmethod
    def _unit_cost(obs: Observation, memory: Memory) -> float:
        """Return what a unit sold costs: production and used input, less the storage it saves."""
        used = obs.price_in if memory.regime is Regime.DEPLETING and not obs.first_level else 0.0
        return obs.production_cost + used - obs.storage_cost * obs.price_in

    def _buying(
        self, obs: Observation, calendar: Calendar, limits: Bounds, memory: Memory
    ) -> tuple[tuple[int, ...], tuple[float, ...], float]:
        leads = len(calendar.sold)
        if obs.buy_agenda is None:
            return (0,) * leads, (0.0,) * leads, 0.0
        p = self.parameters
        need = self._need(obs, calendar, memory)
        quantities = tuple(max(0, min(q, limits.buy)) for q in (need, self._need_tomorrow(obs, calendar, memory)))
        quantities = (*quantities, *(0,) * leads)[:leads]
        value = obs.price_out - obs.production_cost
        if memory.regime is Regime.PERSISTENT:  # a unit of stock serves on every day that is left
            value *= max(1.0, obs.days_left / max(1.0, p.stock_days))
        return quantities, (min(value, band_price(obs.buy_agenda, p.buy_end)),) * leads, value

    def _need(self, obs: Observation, calendar: Calendar, memory: Memory) -> int:
        """Return the units of input to buy today."""
        p = self.parameters
        usable = obs.stock_in + obs.exogenous_in + calendar.bought[0]
        committed = min(obs.n_lines, calendar.sold[0] + obs.exogenous_out)
        shortage = committed - usable
        if obs.days_left <= p.stock_days:
            return shortage
        if memory.regime is Regime.PERSISTENT:
            # Stock grows only by what a day receives beyond what it produces, so today's output is bought too.
            missing = round(p.stock_target * obs.n_lines) - obs.stock_in
            return (
                max(shortage, missing + committed - obs.exogenous_in - calendar.bought[0]) if missing > 0 else shortage
            )
        wanted = ceil(min(p.cover_days, obs.days_left) * memory.output_rate(obs))
        incoming, outgoing = sum(calendar.bought[1:]), sum(calendar.sold) + obs.exogenous_out
        return max(shortage, wanted + outgoing - usable - incoming)

    def _need_tomorrow(self, obs: Observation, calendar: Calendar, memory: Memory) -> int:
        """Return the units that tomorrow's output lacks if nothing more is bought today."""
        if obs.days_left <= 1 or obs.horizon < 1:
            return 0
        bought, out = calendar.bought[0] + obs.exogenous_in, calendar.sold[0] + obs.exogenous_out
        grown = max(0, bought - min(out, obs.n_lines))
        if memory.regime is Regime.DEPLETING:
            grown = bought - min(out, obs.n_lines)
        due = calendar.sold[1] + (memory.mean_exogenous_out if obs.last_level else 0)
        return ceil(min(obs.n_lines, due) - obs.stock_in - grown - calendar.bought[1])


def expand(obs: Observation, values: tuple[tuple[float, float, float, float], ...]) -> Goals:
    """Spreads one (Q_buy, P_buy, Q_sell, P_sell) per bucket over the leads, quantities in equal whole parts."""
    leads = obs.horizon + 1
    columns: list[list[float]] = [[0.0] * leads for _ in range(4)]
    for bucket, (q_buy, p_buy, q_sell, p_sell) in zip(buckets(obs.horizon), values, strict=True):
        for index, lead in enumerate(bucket):
            columns[0][lead] = (round(q_buy) + len(bucket) - 1 - index) // len(bucket)
            columns[1][lead] = p_buy
            columns[2][lead] = (round(q_sell) + len(bucket) - 1 - index) // len(bucket)
            columns[3][lead] = p_sell
    return Goals(
        tuple(int(q) for q in columns[0]),
        tuple(columns[1]),
        tuple(int(q) for q in columns[2]),
        tuple(columns[3]),
        tuple(columns[3]),
        obs.price_out - obs.production_cost,
    )
