"""Actions of an environment's user as changes of what the heuristic layers decide, for a batch of factories.

Actions have no units and zero changes nothing, so that zeros are the heuristic agent:

* L2, once a day: the residual of the learned L2 (`policy.l2.residual`), each component in its steps.
* L3, per thread and round: shifts of the counter-offer's price and quantity, and of the lowest price at which the
  partner's offer is accepted. A positive price shift favours us on both sides.
* L4, per thread and round: log α, the thread's weight; α scales L3's residual and orders joint acceptance.

The result passes through L1's bounds like every decision.
"""

from __future__ import annotations

from math import exp
from typing import Final

import numpy as np

from litaagent_std.policy.arrays import Array, Bools, Floats, Ints, true_rows
from litaagent_std.policy.buckets import n_buckets
from litaagent_std.policy.l2.heuristic import heuristic_goals
from litaagent_std.policy.l2.residual import goal_names, shift_goals
from litaagent_std.policy.layers import ACCEPT, COUNTER, KEEP, ActionBatch, DayBatch, SituationBatch
from litaagent_std.policy.networks.inputs import GOAL_STEPS
from litaagent_std.policy.plan import GoalsBatch, best_subsets
from litaagent_std.world.setup import HORIZON

__all__ = [
    "DAY_ACTIONS",
    "LIMIT",
    "THREAD_ACTIONS",
    "WEIGHT_ACTIONS",
    "SteeredLayers",
    "clipped",
]

LIMIT: Final = 3.0
"""Actions are clipped to ±LIMIT."""

DAY_ACTIONS: Final = goal_names(n_buckets(HORIZON))
"""Components of L2's action, in order."""
THREAD_ACTIONS: Final = ("price", "quantity", "acceptance")
"""Components of L3's action, in order."""
WEIGHT_ACTIONS: Final = ("log_alpha",)
"""Components of L4's action, in order."""

_DAY_STEPS: Final = np.repeat(
    [*GOAL_STEPS, GOAL_STEPS[2]], [2 * n_buckets(HORIZON), 2 * n_buckets(HORIZON), 3 * n_buckets(HORIZON), 1]
)
"""Change of each component of L2's residual per unit of action, ``[len(DAY_ACTIONS)]``."""
PRICE_STEP: Final = 0.5
"""Change of L3's prices per unit of action, in widths of the legal price band."""
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
        return shift_goals(heuristic, day.obs, clipped(self.days[day.seats]) * _DAY_STEPS, HORIZON)

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
