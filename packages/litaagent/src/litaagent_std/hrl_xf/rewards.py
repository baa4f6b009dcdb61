"""Rewards as pure, named terms of what a factory knows.

A day's reward (L2) is a weighted sum of *cash*, *potential*, *risk* and *liquidity*; a thread's (L3) of *quantity*,
*price*, *advantage* and *liquidity*; L4 shares the day's. Every term is unit-free, so that worlds of different size
can be learned from together, and every term is logged by its name.

`centred` subtracts what the reference policy earned on the same day of the same world: a control variate, which no
action can change and which therefore leaves the gradient's mean as it is. `ReturnScales` brings what is left to a
common size for each kind of configuration and seat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from apexrl.configuration import configuration
from litaagent_std.policy.l1.safety import Regime
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
    """How much each term of a day counts. The cash terms alone sum to the score less 1."""

    cash: Weight = 1.0
    """Change of cash. Raising it makes the score count more beside the shaping terms."""
    potential: Weight = 1.0
    """Shaping by a potential: moves reward to the day of the contract without changing what is best."""
    risk: Weight = 0.1
    """Expected penalty of sales that no input covers. Raising it makes the policy more careful."""
    liquidity: Weight = 0.001
    """Units agreed on. Raising it makes the policy trade more, worth it or not."""
    form: Potential = "calendar"
    """The potential: value of the committed calendar; stock times price (which rewards hoarding); or none."""
    discount: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Discount of the potential; must be the learner's, or shaping changes what is best."""


@configuration
class ThreadWeights:
    """How much each term of a negotiation thread counts."""

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


def calendar_value(obs: Observation, calendar: Calendar, regime: Regime = Regime.PERSISTENT) -> float:
    """Return the value of what is agreed and not yet settled, over the initial balance.

    Sales count with their price less production; what no input covers by its day brings the penalty instead of the
    price; purchases count with what is still to be paid for them. Stock counts nothing, as in the score.

    Args:
        obs: The morning.
        calendar: Commitments at the moment in question.
        regime: Whether production consumes stock.
    """
    value, stock = 0.0, float(obs.stock_in)
    penalty = obs.shortfall_penalty_mean * obs.price_out
    for lead, (bought, sold) in enumerate(zip(calendar.bought, calendar.sold, strict=True)):
        usable = stock + bought + (obs.exogenous_in if lead == 0 else 0)
        made = min(float(sold), usable, float(obs.n_lines))
        unit = calendar.sold_value[lead] / sold if sold else 0.0
        value += made * (unit - obs.production_cost) - (sold - made) * penalty - calendar.bought_value[lead]
        stock = usable - made if regime is Regime.DEPLETING else stock + max(0.0, usable - stock - made)
    return value / max(1.0, obs.initial_balance)


def inventory_value(obs: Observation) -> float:
    """Document 001's Φ = I·P over the initial balance: stock at the market's price."""
    return obs.stock_in * obs.price_in / max(1.0, obs.initial_balance)


def potential(obs: Observation, form: Potential, regime: Regime = Regime.PERSISTENT) -> float:
    """Φ of a morning; 0 with ``form="none"``."""
    if form == "calendar":
        return calendar_value(obs, obs.calendar, regime)
    return inventory_value(obs) if form == "inventory" else 0.0


def shortfall_risk(obs: Observation, calendar: Calendar) -> float:
    """Penalty of the sales that stock and contracted input do not cover, over the initial balance."""
    missing = sum(
        max(0, sold - obs.stock_in - bought - (obs.exogenous_in if lead == 0 else 0))
        for lead, (bought, sold) in enumerate(zip(calendar.bought, calendar.sold, strict=True))
    )
    return missing * obs.shortfall_penalty_mean * obs.price_out / max(1.0, obs.initial_balance)


def day_terms(
    before: Observation, evening: Calendar, after: Observation | None, final_cash: float, weights: DayWeights
) -> dict[str, float]:
    """Return the terms of one decision of L2, from its morning to its next one.

    Args:
        before: The morning of the decision.
        evening: Commitments with which that day went into settlement.
        after: The morning of the next decision; None when the world has ended.
        final_cash: Cash at the end of the world; used when ``after`` is None.
        weights: For the form of the potential and its discount.

    Returns:
        The terms by name, unweighted; *risk* is negative or 0.
    """
    start = max(1.0, before.initial_balance)
    cash = (final_cash if after is None else after.cash) - before.cash
    phi = 0.0 if after is None else potential(after, weights.form)  # what is left at the end is worth nothing
    agreed = sum(evening.sold) + sum(evening.bought) - sum(before.calendar.sold) - sum(before.calendar.bought)
    return {
        "cash": cash / start,
        "potential": weights.discount * phi - potential(before, weights.form),  # γ·Φ(s') − Φ(s)
        "risk": -shortfall_risk(before, evening),
        "liquidity": agreed / before.n_lines,
    }


def day_reward(terms: Mapping[str, float], weights: DayWeights) -> float:
    """Return the weighted sum of a day's terms."""
    return sum((float(getattr(weights, name)) * terms[name] for name in DAY_TERMS), start=0.0)


def thread_terms(
    obs: Observation, *, buying: bool, deal: Offer | None, goal_quantity: float, goal_price: float
) -> dict[str, float]:
    """Return the terms of a negotiation thread that has ended.

    Args:
        obs: The morning.
        buying: Whether we buy.
        deal: What was agreed; None without an agreement.
        goal_quantity: Q*, the goal for the delivery day (of the deal, or the most wanted one without).
        goal_price: P*, the goal's reservation price for it.

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
    """Return the weighted sum of a thread's own terms; the shared part comes beside it."""
    return sum((float(getattr(weights, name)) * terms[name] for name in THREAD_TERMS), start=0.0)


def centred(rewards: Sequence[float], days: Sequence[int], reference: Sequence[float]) -> list[float]:
    """Rewards less what the reference policy earned over the same days.

    Args:
        rewards: One per decision.
        days: The day of each decision, rising; a decision answers for all days until the next one.
        reference: The reference policy's reward of every day of the same world; empty leaves rewards as they are.
    """
    if not reference:
        return list(rewards)
    ends = [*days[1:], len(reference)]
    return [reward - sum(reference[first:last]) for reward, first, last in zip(rewards, days, ends, strict=True)]


class ReturnScales:
    """The usual size of returns by kind of configuration and seat: running root mean squares.

    Args:
        floor: The least size; raising it damps kinds whose returns hardly differ.
        rate: Step of the running mean; raising it forgets faster.
    """

    def __init__(self, floor: float = 0.02, rate: float = 0.05) -> None:
        self.floor, self.rate = floor, rate
        self._squares: dict[str, float] = {}

    def update(self, kind: str, returns: Sequence[float]) -> None:
        """Take the returns of whole worlds in; only at the barrier, so that a batch is scaled by one size."""
        for value in returns:
            before = self._squares.get(kind)
            self._squares[kind] = value**2 if before is None else before + self.rate * (value**2 - before)

    def scale(self, kind: str) -> float:
        """Return what returns of this kind are divided by; 1 for a kind that was never seen."""
        square = self._squares.get(kind)
        return 1.0 if square is None else max(self.floor, sqrt(square))

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides later scales."""
        return {"squares": dict(self._squares)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from `state_dict`."""
        self._squares = {str(kind): float(value) for kind, value in state["squares"].items()}
