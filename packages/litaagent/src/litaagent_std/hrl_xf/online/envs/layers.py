"""Layers whose actions come from an environment's user: residuals, or raw offers.

A thread has a slot: suppliers first, then consumers, in the order of the factory's partners.
"""

from __future__ import annotations

from typing import Final, Literal, cast

import numpy as np

from litaagent_std.hrl_xf.online.envs.steering import THREAD_ACTIONS, WEIGHT_ACTIONS, SteeredLayers
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.policy.arrays import Array, Bools, Floats, Ints
from litaagent_std.policy.columns import ThreadBatch
from litaagent_std.policy.layers import (
    ACCEPT,
    COUNTER,
    END,
    ActionBatch,
    BatchGoals,
    DayBatch,
    LayerSet,
    RoundBatch,
    SituationBatch,
)
from litaagent_std.policy.plan import GoalsBatch
from litaagent_std.world.setup import HORIZON

__all__ = [
    "RAW_SIZES",
    "ROUND_ACTION_SIZE",
    "SLOTS_PER_SIDE",
    "THREAD_SLOTS",
    "ActionKind",
    "SlotLayers",
    "slot_layers",
    "slots",
]

ActionKind = Literal["residual", "raw"]
"""What an action of a round is: changes of the heuristic's decision, or the decision itself."""
SLOTS_PER_SIDE: Final = 6
"""Partners of one side at most: the official generator makes no larger levels."""
THREAD_SLOTS: Final = 2 * SLOTS_PER_SIDE
"""Slots for threads: suppliers first, then consumers."""
ROUND_ACTION_SIZE: Final = len(THREAD_ACTIONS) + len(WEIGHT_ACTIONS)
"""Components of a residual action per thread and round."""
RAW_SIZES: Final = (3, 30, HORIZON + 1, 32)
"""Values of each component of a raw action: accept, counter or end; the units less one; the days until delivery; the
unit price above the lowest legal one. L1 clips what is not legal or not affordable."""
_RAW_KINDS: Final = np.array([ACCEPT, COUNTER, END])


def slots(threads: ThreadBatch) -> Ints:
    """Return the slot of each thread, ``[M]``.

    Raises:
        ValueError: If there are more partners than slots.
    """
    if len(threads) and int(threads.partner.max()) >= SLOTS_PER_SIDE:
        raise ValueError(
            f"a factory has more than {int(threads.partner.max())} partners on one side, but there are "
            f"{SLOTS_PER_SIDE} slots; use worlds of the official generator"
        )
    return np.asarray(threads.selling * SLOTS_PER_SIDE + threads.partner, np.int64)


class SlotLayers(SteeredLayers):
    """Layers with one residual per slot, given by the user before a decision; days are decided by networks.

    Args:
        days: Networks whose L2 decides the days; the heuristic if there is none.
        seats: Number of factories, n.

    Attributes:
        given: The user's actions, ``[n, THREAD_SLOTS, 4]``; zeros are the heuristic agent.
    """

    def __init__(self, days: Hierarchy, seats: int) -> None:
        super().__init__(seats)
        self._goals = cast("BatchGoals | None", days.layers().goal)
        self.given: Array = np.zeros((seats, THREAD_SLOTS, ROUND_ACTION_SIZE), np.float32)

    def goals_of(self, day: DayBatch) -> GoalsBatch:
        """Set the goals; see `litaagent_std.policy.layers.BatchGoals`."""
        return super().goals_of(day) if self._goals is None else self._goals.goals_of(day)

    def start_round(self, round_batch: RoundBatch) -> None:
        """Take the actions of the round's threads; see `litaagent_std.policy.layers.RoundLayer`."""
        threads = round_batch.threads
        self.threads = self.given[round_batch.day.seats[threads.seat], slots(threads)]


class RawLayers(SlotLayers):
    """Layers with one decision per slot, given by the user: accept, counter with an offer, or end.

    The goals are those of L2; L1's guard clips the decisions to what is legal, and to what lines, input and cash allow.
    """

    def __init__(self, days: Hierarchy, seats: int) -> None:
        super().__init__(days, seats)
        self.given = np.zeros((seats, THREAD_SLOTS, len(RAW_SIZES)), np.int64)

    def decide_all(self, situation: SituationBatch, alpha: Floats) -> ActionBatch:
        """Return the decisions; see `litaagent_std.policy.layers.BatchDecisions`."""
        raw, seat = self.threads[situation.index], situation.threads.seat
        lowest = situation.agenda[seat, 4]
        offer = np.stack((raw[:, 1] + 1, situation.day.obs.day[seat] + raw[:, 2], lowest + raw[:, 3]), axis=1)
        return ActionBatch(_RAW_KINDS[raw[:, 0]], offer.astype(np.int64))

    def weigh_all(self, situation: SituationBatch) -> Floats:
        """Weigh all threads alike: a decision of the user is not scaled."""
        return np.ones(len(situation.threads))

    def accept_all(self, situation: SituationBatch, wanted: Bools) -> Bools:
        """Accept what the user accepts; L1's guard decides which of it fits."""
        return wanted


def slot_layers(actions: ActionKind, days: Hierarchy, seats: int) -> LayerSet:
    """Return the layers of a kind of actions, for the brain of some seats."""
    made = RawLayers(days, seats) if actions == "raw" else SlotLayers(days, seats)
    return LayerSet(made, made, made)
