"""Layers whose residual actions come from a policy, and the agent that plays with them.

A policy acts at two time scales: at a factory's first decision of a day it gives one residual for the day (L2), and at
every decision one residual per thread (L3, L4). `PolicyLayers` requests them for all factories of a batch at once: one
in play (`PolicySteeredAgent`), all seats that wait in training.

This module, `acting`, `steering` and `views` are all that trained weights need to play. They import numpy, the policy
and `litaagent_std.agents.hrl` alone, because `lita export` copies them into a submission.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.agents.online.steering import SteeredLayers
from litaagent_std.agents.online.views import DAY_VIEW, day_views, level_index, round_views
from litaagent_std.policy.arrays import Bools, Floats32, Ints, true_rows
from litaagent_std.policy.layers import DayBatch, RoundBatch
from litaagent_std.policy.plan import GoalsBatch

__all__ = ["DayRequests", "PolicyLayers", "PolicySteeredAgent", "RoundRequests", "SteeringPolicy"]


@dataclass(frozen=True, slots=True, eq=False)
class DayRequests:
    """Requests of B factories for the residual action of their day.

    Attributes:
        seats: The factories as the brain numbers them, ``[B]``.
        day: The days, ``[B]``.
        level: Their levels in the chain, indices of `parameters.LEVELS`, ``[B]``.
        views: L2's inputs, ``[B, len(DAY_VIEW)]``.
    """

    seats: Ints
    day: Ints
    level: Ints
    views: Floats32


@dataclass(frozen=True, slots=True, eq=False)
class RoundRequests:
    """Requests of S factories for the residual actions of M threads.

    Attributes:
        seats: The factories as the brain numbers them, ``[S]``.
        day: Their days, ``[S]``.
        level: Their levels in the chain, indices of `parameters.LEVELS`, ``[S]``.
        states: What a central critic sees, ``[S, len(STATE_VIEW)]``.
        seat: Each thread's index in `seats`, rising, ``[M]``.
        selling: Whether we sell in it, ``[M]``.
        partner: Index of its partner among those of its side, ``[M]``.
        views: L3's inputs, ``[M, len(THREAD_VIEW)]``.
    """

    seats: Ints
    day: Ints
    level: Ints
    states: Floats32
    seat: Ints
    selling: Bools
    partner: Ints
    views: Floats32


class SteeringPolicy(Protocol):
    """Anything that maps requests to residual actions."""

    def act_days(self, requests: DayRequests) -> Floats32:
        """Return the residual of each day, ``[B, n_day]``."""

    def act_rounds(self, requests: RoundRequests) -> Floats32:
        """Return the residual of each thread, L3's before L4's, ``[M, n_thread + n_weight]``."""


class PolicyLayers(SteeredLayers):
    """L2, L3 and L4 whose residual actions come from a policy, asked once for all factories of a batch.

    Args:
        policy: The policy that acts.
        seats: Number of factories, n.
    """

    def __init__(self, policy: SteeringPolicy, seats: int = 1) -> None:
        super().__init__(seats)
        self.policy = policy
        self._acted = np.full(seats, -1)  # [n] the day of the latest action
        self._views = np.zeros((seats, len(DAY_VIEW)), np.float32)  # [n, d] its view

    def goals_of(self, day: DayBatch) -> GoalsBatch:
        """Set the goals, with a new action at the first decision of a day."""
        new = true_rows(self._acted[day.seats] != day.obs.day)
        if len(new):
            seats, obs = day.seats[new], day.obs.take(new)
            self._views[seats], self._acted[seats] = day_views(obs), obs.day
            requests = DayRequests(seats, obs.day, level_index(obs), self._views[seats])
            self.days[seats] = self.policy.act_days(requests)
        return super().goals_of(day)

    def start_round(self, round_batch: RoundBatch) -> None:
        """Request the actions of all threads of a round; see `litaagent_std.policy.layers.RoundLayer`."""
        day, threads = round_batch.day, round_batch.threads
        views, states = round_views(threads, round_batch.histories, day.obs, self._views[day.seats], day.calendar)
        where = (threads.seat, threads.selling, threads.partner)
        # the brain changes the days of its factories in place
        requests = RoundRequests(day.seats, day.obs.day.copy(), level_index(day.obs), states, *where, views)
        self.threads = self.policy.act_rounds(requests)

    def restart_day(self) -> None:
        """Forget that there was an action today; the next decision requests another one."""
        self._acted[:] = -1


class PolicySteeredAgent(LitaAgentHRL):
    """The heuristic agent with residual actions from a policy.

    Args:
        *args: Passed to scml.
        policy: The policy that acts.
        rounds: Whether rounds have residuals too (L3, L4); otherwise only days (L2).
        **kwargs: Passed on.

    Attributes:
        layers: The layers that are plugged into the brain.
    """

    def __init__(self, *args: Any, policy: SteeringPolicy, rounds: bool = True, **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        self.layers = PolicyLayers(policy)
        by_round = self.layers if rounds else None
        super().__init__(*args, goal_layer=self.layers, decision_layer=by_round, coordination_layer=by_round, **kwargs)
