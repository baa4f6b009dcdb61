"""Rewards as pure functions of a factory's observations, one per named term.

A day's reward (L2) is a weighted sum of *cash*, *potential*, *risk* and *liquidity*; a thread's (L3) of *quantity*,
*price*, *advantage* and *liquidity*; L4 shares the day's. Terms have no units, so that worlds of different size can
share a batch, and every term is logged by its name.

`centred` subtracts the reference policy's reward on the same days of the same world. This is a control variate: no
action can change it, so the expected gradient stays the same. `ReturnScales` scales the rest to a common size for each
kind of configuration and seat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from apexrl.configuration import configuration
from litaagent_std.policy.memory import Regime
from litaagent_std.policy.observation import Calendar, Observation, Offer

__all__ = [
    "DAY_TERMS",
    "THREAD_TERMS",
    "DayWeights",
    "ReturnScales",
    "ThreadWeights",
    "calendar_value",
    "centred",
    "day_reward",
    "day_terms",
    "inventory_value",
    "potential",
    "shortfall_risk",
    "thread_reward",
    "thread_terms",
]

DAY_TERMS: Final = ("cash", "potential", "risk", "liquidity")
THREAD_TERMS: Final = ("quantity", "price", "advantage", "liquidity")

Weight = Annotated[float, Field(ge=0.0)]
Potential = Literal["calendar", "inventory", "none"]


@configuration
class DayWeights:
    """Weights of a day's reward terms. The cash terms alone sum to the score less 1."""

    cash: Weight = 1.0
    """Change of cash. Raising it weights the score more against the shaping terms."""
    potential: Weight = 1.0
    """Potential-based shaping: moves reward to the day of the contract without changing the optimal policy."""
    risk: Weight = 0.1
    """Expected penalty of sales that no input covers. Raising it makes the policy more careful."""
    liquidity: Weight = 0.001
    """Agreed units. Raising it makes the policy trade more, profitable or not."""
    form: Potential = "calendar"
    """Potential: value of the committed calendar; stock times price, which rewards hoarding; or none."""
    discount: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Discount of the potential; must be the learner's, or shaping changes the optimal policy."""


@configuration
class ThreadWeights:
    """Weights of a negotiation thread's reward terms."""

    quantity: Weight = 0.02
    """Distance of the agreed quantity from the goal's."""
    price: Weight = 0.02
    """Distance of the agreed price from the goal's."""
    advantage: Weight = 0.1
    """Gain over the market's price."""
    liquidity: Weight = 0.005
    """An agreement at all."""
    shared: Weight = 1.0
    """The day's reward, shared by all threads of the day."""
    weight: Weight = 0.5
    """L4's own term, times log α and the thread's reward: a large α is good where the thread ends well."""


def calendar_value(obs: Observation, calendar: Calendar, regime: Regime = Regime.PERSISTENT) -> float:
    """Return the value of contracts that are not settled yet, over the initial balance.

    A sale is worth its price less production cost, or minus the penalty where no input covers it by its day; a purchase
    is worth minus its price. Stock is worth nothing, as in the score.

    Args:
        obs: The observation at day start.
        calendar: The commitments to value.
        regime: Whether production consumes stock.
    """
    value, stock = 0.0, float(obs.stock_in)
    penalty = obs.shortfall_penalty_mean * obs.price_out
    for lead, (bought, sold) in enumerate(zip(calendar.bought, calendar.sold, strict=True)):
        # units by this delivery day: available input, then covered sales
        usable = stock + bought + (obs.exogenous_in if lead == 0 else 0)
        made = min(float(sold), usable, float(obs.n_lines))
        unit = calendar.sold_value[lead] / sold if sold else 0.0
        value += made * (unit - obs.production_cost) - (sold - made) * penalty - calendar.bought_value[lead]
        stock = usable - made if regime is Regime.DEPLETING else stock + max(0.0, usable - stock - made)
    return value / max(1.0, obs.initial_balance)


def inventory_value(obs: Observation) -> float:
    """Return Φ = I·P over the initial balance: stock times the market price."""
    return obs.stock_in * obs.price_in / max(1.0, obs.initial_balance)


def potential(obs: Observation, form: Potential, regime: Regime = Regime.PERSISTENT) -> float:
    """Return the potential Φ of an observation; 0 with ``form="none"``."""
    if form == "calendar":
        return calendar_value(obs, obs.calendar, regime)
    return inventory_value(obs) if form == "inventory" else 0.0


def shortfall_risk(obs: Observation, calendar: Calendar) -> float:
    """Return the penalty of sales that stock and contracted input do not cover, over the initial balance."""
    missing = sum(
        max(0, sold - obs.stock_in - bought - (obs.exogenous_in if lead == 0 else 0))
        for lead, (bought, sold) in enumerate(zip(calendar.bought, calendar.sold, strict=True))
    )
    return missing * obs.shortfall_penalty_mean * obs.price_out / max(1.0, obs.initial_balance)


def day_terms(
    before: Observation, end_calendar: Calendar, after: Observation | None, final_cash: float, weights: DayWeights
) -> dict[str, float]:
    """Return the reward terms of one decision of L2, up to the next decision.

    Args:
        before: Observation at the start of the decision's day.
        end_calendar: Commitments at the end of that day, before settlement.
        after: Observation at the start of the next decision's day; None if the world has ended.
        final_cash: Cash at the end of the world; used if ``after`` is None.
        weights: Form and discount of the potential.

    Returns:
        The terms by name, unweighted; *risk* is negative or 0.
    """
    start = max(1.0, before.initial_balance)
    cash = (final_cash if after is None else after.cash) - before.cash
    phi = (
        0.0 if after is None else potential(after, weights.form)
    )  # commitments that remain at the end are worth nothing
    agreed = sum(end_calendar.sold) + sum(end_calendar.bought) - sum(before.calendar.sold) - sum(before.calendar.bought)
    return {
        "cash": cash / start,
        "potential": weights.discount * phi - potential(before, weights.form),  # γ·Φ(s') − Φ(s)
        "risk": -shortfall_risk(before, end_calendar),
        "liquidity": agreed / before.n_lines,
    }


def day_reward(terms: Mapping[str, float], weights: DayWeights) -> float:
    """Return the weighted sum of a day's terms."""
    return sum((float(getattr(weights, name)) * terms[name] for name in DAY_TERMS), start=0.0)


def thread_terms(
    obs: Observation, *, buying: bool, deal: Offer | None, goal_quantity: float, goal_price: float
) -> dict[str, float]:
    """Return the reward terms of a negotiation thread that has ended.

    Args:
        obs: The observation at day start.
        buying: Whether we buy.
        deal: The agreement; None if there is none.
        goal_quantity: Q*, the goal for the deal's delivery day (if there is no deal, the largest goal).
        goal_price: P*, the goal's reservation price for that day.

    Returns:
        The terms by name, unweighted; *quantity* and *price* are negative or 0.
    """
    market = obs.price_in if buying else obs.price_out
    if deal is None:
        return {"quantity": -max(0.0, goal_quantity) / obs.n_lines, "price": 0.0, "advantage": 0.0, "liquidity": 0.0}
    gain = (market - deal.price if buying else deal.price - market) / max(market, 1.0)
    return {
        "quantity": -abs(deal.quantity - goal_quantity) / obs.n_lines,
        "price": -abs(deal.price - goal_price) / max(market, 1.0),
        "advantage": gain * deal.quantity / obs.n_lines,
        "liquidity": 1.0,
    }


def thread_reward(terms: Mapping[str, float], weights: ThreadWeights) -> float:
    """Return the weighted sum of a thread's own terms, without its share of the day's reward."""
    return sum((float(getattr(weights, name)) * terms[name] for name in THREAD_TERMS), start=0.0)


def centred(rewards: Sequence[float], days: Sequence[int], reference: Sequence[float]) -> list[float]:
    """Return rewards less the reference policy's rewards over the same days.

    Args:
        rewards: One per decision.
        days: The day of each decision, rising; a decision covers all days until the next one.
        reference: The reference policy's reward on every day of the same world; if empty, nothing is subtracted.
    """
    if not reference:
        return list(rewards)
    ends = [*days[1:], len(reference)]
    return [reward - sum(reference[first:last]) for reward, first, last in zip(rewards, days, ends, strict=True)]


class ReturnScales:
    """Running root mean squares of returns by kind of configuration and seat.

    Args:
        floor: The smallest scale; raising it damps kinds whose returns hardly vary.
        rate: Step of the running mean; raising it weights recent returns more.
    """

    def __init__(self, floor: float = 0.02, rate: float = 0.05) -> None:
        self.floor, self.rate = floor, rate
        self._squares: dict[str, float] = {}

    def update(self, kind: str, returns: Sequence[float]) -> None:
        """Add the returns of whole worlds; call it only at the barrier, so that a batch has one scale."""
        for value in returns:
            before = self._squares.get(kind)
            self._squares[kind] = value**2 if before is None else before + self.rate * (value**2 - before)

    def scale(self, kind: str) -> float:
        """Return the divisor of returns of a kind; 1 for an unknown kind."""
        square = self._squares.get(kind)
        return 1.0 if square is None else max(self.floor, sqrt(square))

    def state_dict(self) -> dict[str, Any]:
        """Return everything that decides later scales."""
        return {"squares": dict(self._squares)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from `state_dict`."""
        self._squares = {str(kind): float(value) for kind, value in state["squares"].items()}
