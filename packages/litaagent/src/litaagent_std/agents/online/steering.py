"""Residual actions: how a policy's outputs change what the heuristic layers decide.

Actions have no units and zero changes nothing, so a policy whose outputs are zero is the heuristic agent:

* L2, once a day: shifts of the goals' quantities and reservation prices by side and group of delivery days, of the
  value of unsold capacity, and of the value of a unit of input.
* L3, per thread and round: shifts of the counter-offer's price and quantity, and of the lowest price at which the
  partner's offer is accepted. A positive price shift favours us on both sides.
* L4, per thread and round: log α, the thread's weight; α scales L3's residual and orders joint acceptance.

The result passes through L1's bounds like every decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import exp
from typing import Final, Literal

import numpy as np

from litaagent_std.policy.arrays import Floats32
from litaagent_std.policy.l2.heuristic import HeuristicGoals
from litaagent_std.policy.layers import NEUTRAL_ALPHA, Action, Situation
from litaagent_std.policy.memory import MemoryRow
from litaagent_std.policy.observation import Agenda, Calendar, Observation, Offer, ThreadObservation
from litaagent_std.policy.parameters import Parameters, level_name
from litaagent_std.policy.plan import Bounds, Goals, best_subsets

__all__ = [
    "DAY_ACTIONS",
    "LIMIT",
    "THREAD_ACTIONS",
    "WEIGHT_ACTIONS",
    "Layer",
    "Residuals",
    "SteeredCoordination",
    "SteeredDecisions",
    "SteeredGoals",
]

Layer = Literal["l2", "l3", "l4"]
"""A layer that takes residual actions."""

LIMIT: Final = 3.0
"""Actions are clipped to ±LIMIT."""

SELL_GROUPS: Final = (range(0, 1), range(1, 3), range(3, 1 << 10))
"""Lead times that share a shift of sales: today, the next two days, and later."""
BUY_GROUPS: Final = (range(0, 1), range(1, 1 << 10))
"""The same of purchases: today, and later."""

DAY_ACTIONS: Final = (
    *(f"sell_quantity_{name}" for name in ("today", "near", "far")),
    *(f"sell_price_{name}" for name in ("today", "near", "far")),
    *(f"buy_quantity_{name}" for name in ("today", "later")),
    *(f"buy_price_{name}" for name in ("today", "later")),
    "hold",
    "unit_value",
)
"""Components of L2's action, in order."""
THREAD_ACTIONS: Final = ("price", "quantity", "acceptance")
"""Components of L3's action, in order."""
WEIGHT_ACTIONS: Final = ("log_alpha",)
"""Components of L4's action, in order."""

QUANTITY_STEP: Final = 0.3
"""Change of L2's sales quantities per unit of action, in lines. Quantities change by whole units; with a smaller step
the small actions of a policy without exploration would be rounded to no change."""
PRICE_STEP: Final = 0.5
"""Change of prices per unit of action, in widths of the legal price band. L2's price limits change by whole prices: the
heuristic's limits are whole, and a limit slightly beyond a whole price would exclude that price."""
VALUE_STEP: Final = 0.5
"""Change of the logarithm of a value, or of the quantity bought for stock, per unit of action."""
OFFER_STEP: Final = 0.2
"""Change of L3's quantities per unit of action, in lines."""
ACCEPT_STEP: Final = 0.3
"""Change of L3's acceptance price per unit of action, in widths of the legal price band."""


@dataclass(slots=True)
class Residuals:
    """The actions that apply now: one vector for the day, one per thread of the current round.

    Attributes:
        day: L2's action, [len(DAY_ACTIONS)].
        threads: L3's actions by partner, [len(THREAD_ACTIONS)] each.
        weights: L4's log α by partner.
    """

    day: Floats32 = field(default_factory=lambda: np.zeros(len(DAY_ACTIONS), np.float32))
    threads: Mapping[str, Floats32] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)


def clipped(values: Floats32) -> list[float]:
    """Return an action as plain floats, clipped to ±`LIMIT`.

    Raises:
        ValueError: If a component is not finite.
    """
    if not np.isfinite(values).all():
        raise ValueError(f"the action {values.tolist()} is not finite; check the policy that returned it")
    return [min(LIMIT, max(-LIMIT, float(value))) for value in values]


class SteeredGoals:
    """L2: the heuristic goals plus the day's residual.

    Args:
        residuals: The actions that apply now.
        parameters: Of the heuristic; the level's overrides are applied on the first day.

    Attributes:
        latest: The most recent goals; None before the first day.
    """

    def __init__(self, residuals: Residuals, parameters: Parameters | None = None) -> None:
        self.latest: Goals | None = None
        self._residuals = residuals
        self._parameters = parameters or Parameters()
        self._heuristic: HeuristicGoals | None = None

    def goals(self, obs: Observation, calendar: Calendar, limits: Bounds, memory: MemoryRow) -> Goals:
        """Set the goals; see `litaagent_std.policy.layers.GoalLayer`."""
        if self._heuristic is None:
            self._heuristic = HeuristicGoals(self._parameters.at(level_name(obs.level, obs.n_levels)))
        heuristic = self._heuristic.goals(obs, calendar, limits, memory)
        self.latest = shift_goals(heuristic, obs, calendar, limits, self._residuals.day)
        return self.latest


def shift_goals(goals: Goals, obs: Observation, calendar: Calendar, limits: Bounds, action: Floats32) -> Goals:
    """Return goals shifted by L2's action; zeros return the goals themselves."""
    if not action.any():
        return goals
    by_name = dict(zip(DAY_ACTIONS, clipped(action), strict=True))
    sell = [[by_name[f"sell_{what}_{name}"] for name in ("today", "near", "far")] for what in ("quantity", "price")]
    buy = [[by_name[f"buy_{what}_{name}"] for name in ("today", "later")] for what in ("quantity", "price")]
    shifted = replace(
        goals,
        hold=tuple(value * exp(VALUE_STEP * by_name["hold"]) for value in goals.hold),
        unit_value=goals.unit_value * exp(VALUE_STEP * by_name["unit_value"]),
    )
    if obs.sell_agenda is not None:
        q_sell = _quantities(goals.q_sell, sell[0], SELL_GROUPS, QUANTITY_STEP * obs.n_lines, limits.lines)
        p_sell = _prices(goals.p_sell, sell[1], SELL_GROUPS, obs.sell_agenda, better_up=True)
        shifted = replace(shifted, q_sell=q_sell, p_sell=p_sell)
    if obs.buy_agenda is not None:
        q_buy = _purchases(goals.q_buy, buy[0], _lacking(obs, calendar), limits.buy)
        p_buy = _prices(goals.p_buy, buy[1], BUY_GROUPS, obs.buy_agenda, better_up=False)
        shifted = replace(shifted, q_buy=q_buy, p_buy=p_buy)
    return shifted


def _group(groups: tuple[range, ...], lead: int) -> int:
    return next(index for index, group in enumerate(groups) if lead in group)


def _quantities(
    values: tuple[int, ...], shifts: list[float], groups: tuple[range, ...], step: float, most: tuple[int, ...]
) -> tuple[int, ...]:
    """Shift quantities by lead time by whole units, within 0 and ``most``."""
    shifted = []
    for lead, value in enumerate(values):
        change = round(step * shifts[_group(groups, lead)])
        shifted.append(value if change == 0 else max(0, min(value + change, most[lead])))
    return tuple(shifted)


def _lacking(obs: Observation, calendar: Calendar) -> int:
    """Return the units of input that today's output needs and that neither stock nor contracts cover."""
    due = min(obs.n_lines, calendar.sold[0] + obs.exogenous_out)
    return max(0, due - obs.stock_in - obs.exogenous_in - calendar.bought[0])


def _purchases(values: tuple[int, ...], shifts: list[float], lacking: int, most: int) -> tuple[int, ...]:
    """Scale purchases beyond today's need; no action adds units where none are wanted, or drops units that are due."""
    scaled = []
    for lead, value in enumerate(values):
        due = min(value, lacking) if lead == 0 else 0
        extra = round((value - due) * exp(VALUE_STEP * shifts[_group(BUY_GROUPS, lead)]))
        scaled.append(min(due + extra, max(value, most)))
    return tuple(scaled)


def _prices(
    values: tuple[float, ...], shifts: list[float], groups: tuple[range, ...], agenda: Agenda, *, better_up: bool
) -> tuple[float, ...]:
    """Shift price limits by lead time by whole prices; ``better_up`` says that a higher price favours us."""
    width = PRICE_STEP * (agenda.price_max - agenda.price_min)
    shifted = []
    for lead, value in enumerate(values):
        change = round(width * shifts[_group(groups, lead)])
        if better_up:  # a limit beyond the legal band would end all trade
            shifted.append(min(value + change, max(value, agenda.price_max)))
        else:
            shifted.append(max(value - change, min(value, agenda.price_min)))
    return tuple(shifted)


class SteeredDecisions:
    """L3: counter-offers and acceptances of the heuristic plan, shifted per thread.

    Args:
        residuals: The actions that apply now.
    """

    def __init__(self, residuals: Residuals) -> None:
        self._residuals = residuals

    def decide(self, situation: Situation, alpha: Mapping[str, float]) -> Mapping[str, Action]:
        """Decide the threads of a round; see `litaagent_std.policy.layers.DecisionLayer`."""
        actions = {}
        for thread in situation.threads:
            residual = self._residuals.threads.get(thread.partner)
            if residual is None or not residual.any():
                continue
            weight = alpha.get(thread.partner, NEUTRAL_ALPHA)
            actions[thread.partner] = _thread_action(situation, thread, [weight * x for x in clipped(residual)])
        return actions


def _thread_action(situation: Situation, thread: ThreadObservation, residual: list[float]) -> Action:
    """Return L3's action for a thread: the heuristic plan's, changed by the residual (already scaled by α)."""
    price, quantity, acceptance = residual
    plan, agenda = situation.plan, situation.agenda
    width = max(1, agenda.price_max - agenda.price_min)
    slack = ACCEPT_STEP * acceptance * width  # how much worse than our price an offer may be and still be accepted
    counter = plan.offers.get(thread.partner)
    offered = thread.offer
    if thread.partner in plan.accept and offered is not None:
        # the plan accepts; a negative slack turns this into a counter-offer with a better price
        if slack >= 0.0 or _margin(situation, offered, _floor(situation, offered)) >= -slack:
            return Action("keep")
        counter = offered._replace(price=round(offered.price - (slack if situation.selling else -slack)))
    elif counter is None:
        return Action("keep")
    elif (
        slack > 0.0
        and offered is not None
        and _margin(situation, offered, counter.price) >= -slack
        and _fits(situation, offered)
    ):
        return Action("accept")
    # shift the counter-offer
    up = PRICE_STEP * price * width * (1.0 if situation.selling else -1.0)
    more = OFFER_STEP * quantity * situation.obs.n_lines
    shifted = Offer(max(1, round(counter.quantity + more)), counter.time, round(counter.price + up))
    if thread.partner not in plan.accept and shifted == counter:
        return Action("keep")
    return Action("counter", shifted)


def _margin(situation: Situation, offer: Offer, price: float) -> float:
    """Return by how much an offer's price is better for us than another price."""
    return offer.price - price if situation.selling else price - offer.price


def _lead(situation: Situation, offer: Offer) -> int:
    return offer.time - situation.obs.day


def _floor(situation: Situation, offer: Offer) -> float:
    goals, lead = situation.goals, _lead(situation, offer)
    prices = goals.p_sell if situation.selling else goals.p_buy
    return prices[lead] if 0 <= lead < len(prices) else float(offer.price)


def _fits(situation: Situation, offer: Offer) -> bool:
    goals, lead = situation.goals, _lead(situation, offer)
    room = goals.q_sell if situation.selling else goals.q_buy
    return 0 <= lead < len(room) and offer.quantity <= room[lead]


class SteeredCoordination:
    """L4: a weight per thread, and a joint choice of acceptances where L3 differs from the heuristic plan.

    Args:
        residuals: The actions that apply now.
    """

    def __init__(self, residuals: Residuals) -> None:
        self._residuals = residuals

    def weigh(self, situation: Situation) -> Mapping[str, float]:
        """Return α of each thread; see `litaagent_std.policy.layers.CoordinationLayer`."""
        weights = self._residuals.weights
        return {
            thread.partner: exp(min(LIMIT, max(-LIMIT, weights[thread.partner])))
            for thread in situation.threads
            if thread.partner in weights
        }

    def accept(self, situation: Situation, wanted: frozenset[str]) -> frozenset[str]:
        """Return the offers to accept: the plan's if L3 agrees, else the most valuable set that fits the goals."""
        if wanted == situation.plan.accept:
            return wanted
        weights, room = self.weigh(situation), situation.goals.q_sell if situation.selling else situation.goals.q_buy
        by_lead: dict[int, list[tuple[ThreadObservation, Offer]]] = {}
        for thread in situation.threads:
            if thread.partner in wanted and thread.offer is not None:
                by_lead.setdefault(_lead(situation, thread.offer), []).append((thread, thread.offer))
        # a knapsack per delivery day: quantities against what the goals leave free
        chosen: set[str] = set()
        for lead, offered in sorted(by_lead.items()):
            values = [
                weights.get(thread.partner, NEUTRAL_ALPHA) * offer.quantity * (1.0 + _advantage(situation, offer))
                for thread, offer in offered
            ]
            free = max(0, room[lead]) if 0 <= lead < len(room) else 0
            quantities = np.array([offer.quantity for _, offer in offered])
            kept = best_subsets(np.zeros(len(offered), np.int64), quantities, np.array(values), np.array([free]))
            chosen |= {offered[index][0].partner for index in np.flatnonzero(kept)}
        return frozenset(chosen)


def _advantage(situation: Situation, offer: Offer) -> float:
    """Return the relative position of an offer's price in the legal band; 1 is the best for us."""
    agenda = situation.agenda
    gain = offer.price - agenda.price_min if situation.selling else agenda.price_max - offer.price
    return gain / max(1, agenda.price_max - agenda.price_min)
