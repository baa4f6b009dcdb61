"""Residual actions: how a policy's outputs change what the heuristic layers decide, for a batch of factories.

Actions have no units and zero changes nothing, so a policy whose outputs are zero is the heuristic agent:

* L2, once a day: shifts of the goals' quantities and reservation prices by side and group of delivery days, of the
  value of unsold capacity, and of the value of a unit of input.
* L3, per thread and round: shifts of the counter-offer's price and quantity, and of the lowest price at which the
  partner's offer is accepted. A positive price shift favours us on both sides.
* L4, per thread and round: log α, the thread's weight; α scales L3's residual and orders joint acceptance.

The result passes through L1's bounds like every decision. `SteeredLayers` are the three layers; in play the batch is
one factory, in training all seats that wait.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp
from typing import Final, Literal

import numpy as np

from litaagent_std.policy.arrays import Array, Bools, Floats, Floats32, Ints, true_rows
from litaagent_std.policy.columns import BUY, SELL
from litaagent_std.policy.l2.heuristic import heuristic_goals
from litaagent_std.policy.layers import ACCEPT, COUNTER, KEEP, ActionBatch, DayBatch, SituationBatch
from litaagent_std.policy.plan import GoalsBatch, best_subsets

__all__ = [
    "DAY_ACTIONS",
    "LIMIT",
    "THREAD_ACTIONS",
    "WEIGHT_ACTIONS",
    "Layer",
    "SteeredLayers",
    "clipped",
    "shift_goals",
]

Layer = Literal["l2", "l3", "l4"]
"""A layer that takes residual actions."""

LIMIT: Final = 3.0
"""Actions are clipped to ±LIMIT."""

SELL_GROUPS: Final = (0, 1, 3)
"""First leads of the groups that share a shift of sales: today, the next two days, and later."""
BUY_GROUPS: Final = (0, 1)
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


def clipped(values: Array) -> Floats:
    """Return actions in double precision, clipped to ±`LIMIT`.

    Raises:
        ValueError: If a component is not finite.
    """
    if not np.isfinite(values).all():
        raise ValueError(f"the action {values.tolist()} is not finite; check the policy that returned it")
    return np.clip(values.astype(np.float64), -LIMIT, LIMIT)


def _exp(values: Floats) -> Floats:
    """Return e^x, rounded alike on every machine; numpy's own depends on the CPU."""
    return np.array([exp(value) for value in values.ravel().tolist()]).reshape(values.shape)


def shift_goals(goals: GoalsBatch, day: DayBatch, actions: Floats32) -> GoalsBatch:
    """Return goals shifted by L2's actions ``[B, len(DAY_ACTIONS)]``; zeros return the goals themselves."""
    if not actions.any():
        return goals
    action = clipped(actions)
    sell_quantity, sell_price, buy_quantity, buy_price = np.split(action[:, :10], (3, 6, 8), axis=1)
    values = _exp(VALUE_STEP * action[:, 10:])  # [B, 2] factors of capacity and of input
    obs = day.obs
    lead = np.arange(goals.q_sell.shape[1])
    there = lead <= obs.horizon[:, None]  # [B, H + 1]
    sells, buys = obs.trades[:, SELL, None] & there, obs.trades[:, BUY, None] & there
    # sales: whole units, within the lines
    step = (QUANTITY_STEP * obs.n_lines)[:, None]
    change = np.rint(step * _by_lead(sell_quantity, SELL_GROUPS, lead)).astype(np.int64)
    moved = np.maximum(0, np.minimum(goals.q_sell + change, day.bounds.lines))
    q_sell = np.where(sells & (change != 0), moved, goals.q_sell)
    # purchases: those beyond today's need are scaled; none is added where none is wanted
    due = np.where(lead == 0, np.minimum(goals.q_buy, _lacking(day)[:, None]), 0)
    extra = (goals.q_buy - due) * _exp(VALUE_STEP * _by_lead(buy_quantity, BUY_GROUPS, lead))
    most = np.maximum(goals.q_buy, day.bounds.buy[:, None])
    scaled = np.minimum(due + np.rint(extra).astype(np.int64), most)
    return replace(
        goals,
        q_sell=q_sell,
        p_sell=np.where(sells, _prices(goals.p_sell, sell_price, obs.agenda[:, SELL], selling=True), goals.p_sell),
        q_buy=np.where(buys, scaled, goals.q_buy),
        p_buy=np.where(buys, _prices(goals.p_buy, buy_price, obs.agenda[:, BUY], selling=False), goals.p_buy),
        hold=goals.hold * values[:, :1],
        unit_value=goals.unit_value * values[:, 1],
    )


def _by_lead(shifts: Floats, groups: tuple[int, ...], lead: Ints) -> Floats:
    """Return the shift of each lead ``[B, H + 1]``, given those of the groups ``[B, groups]``."""
    return shifts[:, np.searchsorted(groups, lead, side="right") - 1]


def _lacking(day: DayBatch) -> Ints:
    """Return the units of input that today's output needs and that neither stock nor contracts cover, ``[B]``."""
    obs, calendar = day.obs, day.calendar
    due = np.minimum(obs.n_lines, calendar.sold[:, 0] + obs.exogenous_out)
    return np.asarray(np.maximum(0, due - obs.stock_in - obs.exogenous_in - calendar.bought[:, 0]))


def _prices(values: Floats, shifts: Floats, agenda: Ints, *, selling: bool) -> Floats:
    """Shift price limits ``[B, H + 1]`` by whole prices; a positive shift favours us."""
    low, high = agenda[:, 4, None], agenda[:, 5, None]
    groups = SELL_GROUPS if selling else BUY_GROUPS
    change = np.rint(PRICE_STEP * (high - low) * _by_lead(shifts, groups, np.arange(values.shape[1])))
    # a limit beyond the legal band would end all trade
    if selling:
        return np.minimum(values + change, np.maximum(values, high))
    return np.maximum(values - change, np.minimum(values, low))


class SteeredLayers:
    """L2, L3 and L4 with residual actions: a `BatchGoals`, a `BatchDecisions` and a `BatchCoordination` in one.

    Args:
        seats: Number of factories, n.

    Attributes:
        days: L2's action of each factory that applies now, ``[n, len(DAY_ACTIONS)]``.
        threads: L3's actions and L4's log α of the present round, ``[M, len(THREAD_ACTIONS) + 1]``; its threads are
            those of the `RoundBatch`.
    """

    def __init__(self, seats: int) -> None:
        self.days = np.zeros((seats, len(DAY_ACTIONS)), np.float32)
        self.threads = np.zeros((0, len(THREAD_ACTIONS) + len(WEIGHT_ACTIONS)), np.float32)

    def goals_of(self, day: DayBatch) -> GoalsBatch:
        """Set the goals; see `litaagent_std.policy.layers.BatchGoals`."""
        heuristic = heuristic_goals(day.obs, day.calendar, day.bounds, day.memory, day.parameters)
        return shift_goals(heuristic, day, self.days[day.seats])

    def weigh_all(self, situation: SituationBatch) -> Floats:
        """Return α of each thread; see `litaagent_std.policy.layers.BatchCoordination`."""
        return _exp(clipped(self.threads[situation.index, -1]))

    def decide_all(self, situation: SituationBatch, alpha: Floats) -> ActionBatch:
        """Decide the threads of a round; see `litaagent_std.policy.layers.BatchDecisions`."""
        residuals = self.threads[situation.index, :-1]
        return _thread_actions(situation, np.asarray(residuals.any(1)), alpha[:, None] * clipped(residuals))

    def accept_all(self, situation: SituationBatch, wanted: Bools) -> Bools:
        """Return the offers to accept: the plan's if L3 agrees, else the most valuable set that fits the goals."""
        plan, threads, seats = situation.plan, situation.threads, len(situation.seats)
        assert plan is not None  # the brain makes it before it asks the layers
        other = np.bincount(threads.seat, wanted != plan.accept, seats) > 0  # [S]
        if not other.any():
            return wanted
        rows = true_rows(wanted & threads.answers & other[threads.seat])
        accept = wanted & ~other[threads.seat]
        if not len(rows):
            return accept
        seat, offer = threads.seat[rows], threads.offer[rows]
        lead, inside, at = _delivery(situation, rows)
        room = np.where(inside, np.maximum(0, situation.goals.side(selling=situation.selling)[0][at]), 0)
        agenda = situation.agenda[seat]
        gain = offer[:, 2] - agenda[:, 4] if situation.selling else agenda[:, 5] - offer[:, 2]
        advantage = gain / np.maximum(1, agenda[:, 5] - agenda[:, 4])  # 1 is the best price for us
        value = self.weigh_all(situation)[rows] * offer[:, 0] * (1.0 + advantage)
        # a knapsack per factory and delivery day: quantities against what the goals leave free
        order = np.lexsort((rows, lead, seat))
        rows, seat, lead = rows[order], seat[order], lead[order]
        new = np.concatenate(([True], (seat[1:] != seat[:-1]) | (lead[1:] != lead[:-1])))
        group = np.cumsum(new) - 1
        kept = best_subsets(group, offer[order, 0], value[order], room[order][new])
        accept[rows[kept]] = True
        return accept


def _delivery(situation: SituationBatch, rows: Ints) -> tuple[Ints, Bools, tuple[Ints, Ints]]:
    """Return the leads of the offers on the table, which of them the goals have, and where (clipped), ``[R]`` each."""
    threads, obs = situation.threads, situation.day.obs
    seat = threads.seat[rows]
    lead = threads.offer[rows, 1] - obs.day[seat]
    inside = (lead >= 0) & (lead <= obs.horizon[seat])
    return lead, inside, (seat, np.where(inside, lead, 0))


def _thread_actions(situation: SituationBatch, moved: Bools, residuals: Floats) -> ActionBatch:
    """Return L3's actions: those of the heuristic plan, changed by residuals.

    Args:
        situation: The round.
        moved: Threads with a residual, ``[M]``.
        residuals: Of price, quantity and acceptance, already scaled by α, ``[M, 3]``.
    """
    plan, threads, goals = situation.plan, situation.threads, situation.goals
    assert plan is not None  # the brain makes it before it asks the layers
    seat, sign = threads.seat, 1.0 if situation.selling else -1.0
    agenda, offer = situation.agenda[seat], threads.offer
    width = np.maximum(1, agenda[:, 5] - agenda[:, 4])
    # [M] how much worse than our price an offer may be and still be accepted
    slack = ACCEPT_STEP * residuals[:, 2] * width
    _, inside, at = _delivery(situation, np.arange(len(threads)))
    quantity, price, _ = goals.side(selling=situation.selling)
    floor = np.where(inside, price[at], offer[:, 2])
    # the plan accepts; a negative slack turns this into a counter-offer with a better price
    declines = plan.accept & (slack < 0.0) & (sign * (offer[:, 2] - floor) < -slack)
    # the plan proposes; a positive slack accepts an offer that is nearly as good and fits the goals
    fits = inside & (offer[:, 0] <= quantity[at])
    accepts = ~plan.accept & plan.propose & threads.answers & (slack > 0.0) & fits
    accepts &= sign * (offer[:, 2] - plan.offer[:, 2]) >= -slack
    # shift the counter-offer
    counter = np.where(declines[:, None], offer, plan.offer)
    counter[:, 2] = np.where(declines, np.rint(offer[:, 2] - sign * slack), counter[:, 2])
    up = PRICE_STEP * residuals[:, 0] * width * sign
    more = OFFER_STEP * residuals[:, 1] * situation.day.obs.n_lines[seat]
    shifted = counter.copy()
    shifted[:, 0], shifted[:, 2] = np.maximum(1, np.rint(counter[:, 0] + more)), np.rint(counter[:, 2] + up)
    counters = ~accepts & (declines | (~plan.accept & plan.propose & (shifted != counter).any(1)))
    kind = np.where(moved & accepts, ACCEPT, np.where(moved & counters, COUNTER, KEEP))
    return ActionBatch(kind, shifted)
