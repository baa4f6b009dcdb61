"""What a policy's numbers mean: small changes of what the heuristic layers would do.

All numbers are free of units and 0 changes nothing, so that a policy that puts out zeros is the heuristic agent:

* L2, once a day: shifts of the goals' quantities and reservation prices by side and group of delivery days, of what
  unsold capacity is worth, and of what a unit of input is worth.
* L3, per thread and round: shifts of the counter-offer's price and quantity, and of the price from which on the
  partner's offer is accepted. Positive prices are good for us, whichever side we are on.
* L4, per thread and round: the thread's weight α, as log α; it scales what L3 changes, and orders joint acceptance.

Whatever comes out passes through L1's bounds, as everything does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import exp
from typing import Final, Literal

import numpy as np

from litaagent_std.policy.arrays import Floats32
from litaagent_std.policy.l1.safety import Bounds
from litaagent_std.policy.l2.heuristic import Goals, HeuristicGoals
from litaagent_std.policy.l4.heuristic import best_subset
from litaagent_std.policy.layers import NEUTRAL_ALPHA, Action, Situation
from litaagent_std.policy.memory import Memory
from litaagent_std.policy.observation import Agenda, Calendar, Observation, Offer, ThreadObservation
from litaagent_std.policy.parameters import Parameters, level_name

__all__ = [
    "DAY_ACTIONS",
    "LIMIT",
    "THREAD_ACTIONS",
    "WEIGHT_ACTIONS",
    "Layer",
    "SteeredCoordination",
    "SteeredDecisions",
    "SteeredGoals",
    "Steering",
]

Layer = Literal["l2", "l3", "l4"]
"""A layer that can be steered."""

LIMIT: Final = 3.0
"""Numbers beyond it count as it."""

SELL_GROUPS: Final = (range(0, 1), range(1, 3), range(3, 1 << 10))
"""Delivery days that share a shift of sales: today, the next two, and later."""
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
"""L2's numbers, in order."""
THREAD_ACTIONS: Final = ("price", "quantity", "acceptance")
"""L3's numbers, in order."""
WEIGHT_ACTIONS: Final = ("log_alpha",)
"""L4's numbers, in order."""

QUANTITY_STEP: Final = 0.3
"""Lines that 1 stands for in L2's quantities of sales. They are moved by whole units, so a step is some units of a
usual factory: with fewer, what a policy puts out without exploration would be rounded away."""
PRICE_STEP: Final = 0.5
"""Widths of the legal price band that 1 stands for. L2's limits are moved by whole prices, as quantities are by whole
units: the heuristic's limits are whole, and a hair more than one would shut out the price that it allows."""
VALUE_STEP: Final = 0.5
"""Change of the logarithm of a value, or of what is bought for stock, that 1 stands for."""
OFFER_STEP: Final = 0.2
"""Lines that 1 stands for in L3's quantities."""
ACCEPT_STEP: Final = 0.3
"""Widths of the band that 1 stands for in L3's acceptance."""


@dataclass(slots=True)
class Steering:
    """The numbers in force: one vector for the day, one per thread of the present round.

    Attributes:
        day: L2's numbers, [len(DAY_ACTIONS)].
        threads: L3's numbers by partner, [len(THREAD_ACTIONS)] each.
        weights: L4's log α by partner.
    """

    day: Floats32 = field(default_factory=lambda: np.zeros(len(DAY_ACTIONS), np.float32))
    threads: Mapping[str, Floats32] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)


def bounded(values: Floats32) -> list[float]:
    """Numbers as plain floats within ±`LIMIT`.

    Raises:
        ValueError: If one is not a number.
    """
    if not np.isfinite(values).all():
        raise ValueError(f"steering {values.tolist()} is not finite; check the policy that gave it")
    return [min(LIMIT, max(-LIMIT, float(value))) for value in values]


class SteeredGoals:
    """L2: the heuristic goals, shifted.

    Args:
        steering: The numbers in force.
        parameters: The heuristic's; the level's overrides are applied on the first day.

    Attributes:
        latest: The goals that were set last; None before the first time.
    """

    def __init__(self, steering: Steering, parameters: Parameters | None = None) -> None:
        self.latest: Goals | None = None
        self._steering = steering
        self._parameters = parameters or Parameters()
        self._heuristic: HeuristicGoals | None = None

    def goals(self, obs: Observation, calendar: Calendar, limits: Bounds, memory: Memory) -> Goals:
        """Set the goals; see `litaagent_std.policy.layers.GoalLayer`."""
        if self._heuristic is None:
            self._heuristic = HeuristicGoals(self._parameters.at(level_name(obs.level, obs.n_levels)))
        heuristic = self._heuristic.goals(obs, calendar, limits, memory)
        self.latest = shifted(heuristic, obs, calendar, limits, self._steering.day)
        return self.latest


def shifted(goals: Goals, obs: Observation, calendar: Calendar, limits: Bounds, numbers: Floats32) -> Goals:
    """Goals moved by L2's numbers; zeros give the goals themselves."""
    if not numbers.any():
        return goals
    by_name = dict(zip(DAY_ACTIONS, bounded(numbers), strict=True))
    sell = [[by_name[f"sell_{what}_{name}"] for name in ("today", "near", "far")] for what in ("quantity", "price")]
    buy = [[by_name[f"buy_{what}_{name}"] for name in ("today", "later")] for what in ("quantity", "price")]
    moved = replace(
        goals,
        hold=tuple(value * exp(VALUE_STEP * by_name["hold"]) for value in goals.hold),
        unit_value=goals.unit_value * exp(VALUE_STEP * by_name["unit_value"]),
    )
    if obs.sell_agenda is not None:
        q_sell = _quantities(goals.q_sell, sell[0], SELL_GROUPS, QUANTITY_STEP * obs.n_lines, limits.lines)
        p_sell = _prices(goals.p_sell, sell[1], SELL_GROUPS, obs.sell_agenda, better_up=True)
        moved = replace(moved, q_sell=q_sell, p_sell=p_sell)
    if obs.buy_agenda is not None:
        q_buy = _purchases(goals.q_buy, buy[0], _lacking(obs, calendar), limits.buy)
        p_buy = _prices(goals.p_buy, buy[1], BUY_GROUPS, obs.buy_agenda, better_up=False)
        moved = replace(moved, q_buy=q_buy, p_buy=p_buy)
    return moved


def _group(groups: tuple[range, ...], lead: int) -> int:
    return next(place for place, group in enumerate(groups) if lead in group)


def _quantities(
    values: tuple[int, ...], shifts: list[float], groups: tuple[range, ...], unit: float, most: tuple[int, ...]
) -> tuple[int, ...]:
    moved = []
    for lead, value in enumerate(values):
        step = round(unit * shifts[_group(groups, lead)])
        moved.append(value if step == 0 else max(0, min(value + step, most[lead])))
    return tuple(moved)


def _lacking(obs: Observation, calendar: Calendar) -> int:
    """Units of input that today's output needs and nobody has promised."""
    due = min(obs.n_lines, calendar.sold[0] + obs.exogenous_out)
    return max(0, due - obs.stock_in - obs.exogenous_in - calendar.bought[0])


def _purchases(values: tuple[int, ...], shifts: list[float], lacking: int, most: int) -> tuple[int, ...]:
    """Purchases with what goes beyond today's need scaled: no number makes an unwanted unit or leaves out a due one."""
    moved = []
    for lead, value in enumerate(values):
        due = min(value, lacking) if lead == 0 else 0
        extra = round((value - due) * exp(VALUE_STEP * shifts[_group(BUY_GROUPS, lead)]))
        moved.append(min(due + extra, max(value, most)))
    return tuple(moved)


def _prices(
    values: tuple[float, ...], shifts: list[float], groups: tuple[range, ...], agenda: Agenda, *, better_up: bool
) -> tuple[float, ...]:
    width = PRICE_STEP * (agenda.price_max - agenda.price_min)
    moved = []
    for lead, value in enumerate(values):
        change = round(width * shifts[_group(groups, lead)])
        if better_up:  # a limit beyond the band would be no limit but the end of trade
            moved.append(min(value + change, max(value, agenda.price_max)))
        else:
            moved.append(max(value - change, min(value, agenda.price_min)))
    return tuple(moved)


class SteeredDecisions:
    """L3: the heuristic plan's counter-offers and acceptances, shifted thread by thread.

    Args:
        steering: The numbers in force.
    """

    def __init__(self, steering: Steering) -> None:
        self._steering = steering

    def decide(self, situation: Situation, alpha: Mapping[str, float]) -> Mapping[str, Action]:
        """Decides the threads of a round; see `litaagent_std.policy.layers.DecisionLayer`."""
        actions = {}
        for thread in situation.threads:
            numbers = self._steering.threads.get(thread.partner)
            if numbers is None or not numbers.any():
                continue
            weight = alpha.get(thread.partner, NEUTRAL_ALPHA)
            actions[thread.partner] = _thread_action(situation, thread, [weight * x for x in bounded(numbers)])
        return actions


def _thread_action(situation: Situation, thread: ThreadObservation, numbers: list[float]) -> Action:
    price, quantity, acceptance = numbers
    plan, agenda = situation.plan, situation.agenda
    width = max(1, agenda.price_max - agenda.price_min)
    slack = ACCEPT_STEP * acceptance * width  # price that we give way by when accepting, in our disfavour
    counter = plan.offers.get(thread.partner)
    offered = thread.offer
    if thread.partner in plan.accept and offered is not None:
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
    up = PRICE_STEP * price * width * (1.0 if situation.selling else -1.0)
    more = OFFER_STEP * quantity * situation.obs.n_lines
    moved = Offer(max(1, round(counter.quantity + more)), counter.time, round(counter.price + up))
    if thread.partner not in plan.accept and moved == counter:
        return Action("keep")
    return Action("counter", moved)


def _margin(situation: Situation, offer: Offer, price: float) -> float:
    """How far an offer's price is on our side of another one."""
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
    """L4: a weight for each thread, and a joint choice of what to accept where L3 wants other offers than the plan.

    Args:
        steering: The numbers in force.
    """

    def __init__(self, steering: Steering) -> None:
        self._steering = steering

    def weigh(self, situation: Situation) -> Mapping[str, float]:
        """Return α of each thread; see `litaagent_std.policy.layers.CoordinationLayer`."""
        weights = self._steering.weights
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
        chosen: set[str] = set()
        for lead, offered in sorted(by_lead.items()):
            values = [
                weights.get(thread.partner, NEUTRAL_ALPHA) * offer.quantity * (1.0 + _advantage(situation, offer))
                for thread, offer in offered
            ]
            free = max(0, room[lead]) if 0 <= lead < len(room) else 0
            kept = best_subset([offer.quantity for _, offer in offered], values, free)
            chosen |= {offered[place][0].partner for place in kept}
        return frozenset(chosen)


def _advantage(situation: Situation, offer: Offer) -> float:
    """Place of an offer's price in the legal band, 1 the best for us."""
    agenda = situation.agenda
    gain = offer.price - agenda.price_min if situation.selling else agenda.price_max - offer.price
    return gain / max(1, agenda.price_max - agenda.price_min)
