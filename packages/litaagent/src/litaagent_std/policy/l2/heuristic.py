"""L2, heuristic: the day's goals from rules, a quantity and a reservation price for every delivery day.

`expand` spreads goals by delivery bucket, as a learned L2 gives them, over the leads.
"""

from __future__ import annotations

from math import ceil

from ..buckets import buckets
from ..l1.risk import sellable
from ..memory import Memory, Regime
from ..observation import Calendar, Observation
from ..parameters import Parameters
from ..plan import Bounds, Goals, band_price

__all__ = ["HeuristicGoals", "expand"]


class HeuristicGoals:
    """Set goals by rules: sell all that is covered, hold enough stock, prices by lead, fill and drift.

    Args:
        parameters: The level's parameters.
    """

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    def goals(self, obs: Observation, calendar: Calendar, limits: Bounds, memory: Memory) -> Goals:
        """Set the goals; see `GoalLayer`."""
        q_sell, p_sell, hold = self._selling(obs, calendar, limits, memory)
        q_buy, p_buy, value = self._buying(obs, calendar, limits, memory)
        return Goals(q_buy, p_buy, q_sell, p_sell, hold, value, u_sell=self._urgency(obs, memory))

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
            # The fuller a delivery day is beyond its usual fill, the higher the final price and the value of capacity.
            unusual = calendar.sold[lead] / obs.n_lines - memory.usual_fill[lead]
            full = min(1.0, max(0.0, memory.full_rate + p.fill_weight * unusual))
            position = p.sell_end_slack + (p.sell_end_full - p.sell_end_slack) * full
            prices.append(max(ceil(floor), round(band_price(agenda, position + shift))))
            hold.append(max(floor, p.hold * full * agenda.price_max))
        if floor >= agenda.price_max:
            quantities = (0,) * len(leads)
        return quantities, tuple(prices), tuple(hold)

    def _urgency(self, obs: Observation, memory: Memory) -> tuple[float, ...]:
        """Return the urgency of sales by lead: 1 while the next days are empty, 0 when they are full.

        It is ``u = clip((high - F) / (high - low), 0, 1)`` of the smoothed fill F, the same for every lead. Nothing is
        urgent where production consumes stock (input that is not sold today is not lost), nor before that is known.
        """
        p = self.parameters
        if p.urgency_high <= 0.0 or memory.forward_fill is None or obs.sell_agenda is None:
            return ()
        if memory.regime is not Regime.PERSISTENT or not memory.regime_known:
            return ()
        slack = (p.urgency_high - memory.forward_fill) / max(1e-6, p.urgency_high - p.urgency_low)
        return (min(1.0, max(0.0, slack)),) * (obs.horizon + 1)

    @staticmethod
    def _unit_cost(obs: Observation, memory: Memory) -> float:
        """Return the cost of a sold unit: production and used input, less the storage it saves."""
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
    """Spread one (Q_buy, P_buy, Q_sell, P_sell) per bucket over the leads, quantities in equal whole parts."""
    leads = obs.horizon + 1
    # [4][H + 1] quantities and prices by lead; a bucket's first leads get the remainder of its units
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
