"""A world as a sequence of environment steps: by day with several seats, or by round with one.

`DayStage` steps all our seats together from one day's decisions to the next. `RoundStage` steps one seat from round to
round, with a fixed number of slots for threads and a mask of those that need a decision. All environments are thin
wrappers of these two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from litaagent_std.agents.online.acting import PolicySet
from litaagent_std.agents.online.steering import DAY_ACTIONS, LIMIT, THREAD_ACTIONS, WEIGHT_ACTIONS
from litaagent_std.agents.online.views import STATE_VIEW, THREAD_VIEW, day_view
from litaagent_std.hrl_xf.online.envs.game import Game, outcome_terms
from litaagent_std.hrl_xf.online.worlds import TrainingWorld, WorldPlan, draw_world
from litaagent_std.hrl_xf.rewards import (
    DAY_TERMS,
    THREAD_TERMS,
    DayWeights,
    ThreadWeights,
    day_reward,
    day_terms,
    thread_reward,
)
from litaagent_std.policy.arrays import Bools, Floats32
from litaagent_std.policy.observation import Observation, Partner

__all__ = [
    "DAY_ACTION_SIZE",
    "ROUND_ACTION_SIZE",
    "SLOTS_PER_SIDE",
    "THREAD_SLOTS",
    "DayStage",
    "RoundStage",
    "RoundStep",
]

SLOTS_PER_SIDE: Final = 6
"""Partners of one side at most: the official generator makes no larger levels."""
THREAD_SLOTS: Final = 2 * SLOTS_PER_SIDE
"""Slots for threads: suppliers first, then consumers."""
DAY_ACTION_SIZE: Final = len(DAY_ACTIONS)
"""Components of an action per seat and day."""
ROUND_ACTION_SIZE: Final = len(THREAD_ACTIONS) + len(WEIGHT_ACTIONS)
"""Components of an action per thread and round."""


class DayStage:
    """A world by days, all our seats at once.

    Args:
        plan: The plan of a world, or the world itself.
        weights: Weights of the reward terms.

    Attributes:
        views: L2's inputs at the latest day start [seats, len(DAY_VIEW)].
    """

    def __init__(self, plan: WorldPlan | TrainingWorld, weights: DayWeights | None = None) -> None:
        self.training_world = draw_world(plan) if isinstance(plan, WorldPlan) else plan
        self._weights = weights or DayWeights()
        self._game = Game(self.training_world, rounds=False)
        self._observations: dict[int, Observation] = {}
        self._observe()

    @property
    def over(self) -> bool:
        """Whether there is nothing left to decide."""
        return self._game.pending is None

    @property
    def scores(self) -> list[float]:
        """Balance over initial balance of each of our seats."""
        return [self._game.score(seat) for seat in self.training_world.seats]

    def _observe(self) -> None:
        if self._game.pending is not None:
            self._observations = {seat: self._game.day_observation(seat) for seat in self.training_world.seats}
            # [seats, len(DAY_VIEW)]
            self.views = np.stack([day_view(obs) for obs in self._observations.values()])

    def step(self, actions: Floats32) -> dict[str, list[float]]:
        """Play until the next day on which a seat has a decision.

        Args:
            actions: Action of each seat [seats, len(DAY_ACTIONS)]; ignored for a seat without a decision.

        Returns:
            Reward terms and their weighted sum ``reward`` by name, one value per seat.
        """
        game, before = self._game, dict(self._observations)
        assert game.pending is not None
        day = game.pending.request.day
        by_seat = {
            seat: np.asarray(row, np.float32) for seat, row in zip(self.training_world.seats, actions, strict=True)
        }
        while game.pending is not None and game.pending.request.day == day:
            game.step(np.clip(by_seat[game.pending.seat], -LIMIT, LIMIT))
        self._observe()
        return self._rewards(before)

    def _rewards(self, before: dict[int, Observation]) -> dict[str, list[float]]:
        rewards: dict[str, list[float]] = {name: [] for name in (*DAY_TERMS, "reward")}
        for seat, obs in before.items():
            after = None if self.over else self._observations[seat]
            end_calendar = self._game.episode_log(seat).entry(obs.day).end_calendar or obs.calendar
            terms = day_terms(obs, end_calendar, after, self._game.cash(seat), self._weights)
            for name, value in terms.items():
                rewards[name].append(value)
            rewards["reward"].append(day_reward(terms, self._weights))
        return rewards

    def close(self) -> None:
        """Stop the world."""
        self._game.close()


@dataclass(frozen=True, slots=True, eq=False)
class RoundStep:
    """Result of a step of a `RoundStage`.

    Attributes:
        rewards: [THREAD_SLOTS].
        ended: Which threads that acted have ended [THREAD_SLOTS].
        terms: Own reward terms of the threads that ended, by name [THREAD_SLOTS].
    """

    rewards: Floats32
    ended: Bools
    terms: dict[str, Floats32]


class RoundStage:
    """A world by rounds, for one seat.

    Args:
        plan: The plan of a world, or the world itself; the first of our seats is stepped.
        day_weights: Weights of the day's terms, which the threads of a day's last round share.
        thread_weights: Weights of the threads' own terms.
        policies: Policies for the days; if None, residuals are zero.

    Attributes:
        views: [THREAD_SLOTS, len(THREAD_VIEW)]; zeros in empty slots.
        state: [len(STATE_VIEW)].
        mask: Slots of the threads that need a decision [THREAD_SLOTS].
    """

    def __init__(
        self,
        plan: WorldPlan | TrainingWorld,
        day_weights: DayWeights | None = None,
        thread_weights: ThreadWeights | None = None,
        policies: PolicySet | None = None,
    ) -> None:
        self.training_world = draw_world(plan) if isinstance(plan, WorldPlan) else plan
        self.seat = self.training_world.seats[0]
        self._days, self._threads = day_weights or DayWeights(), thread_weights or ThreadWeights()
        self._policies = policies or PolicySet()
        self._game = Game(self.training_world, rounds=True)
        self.views = np.zeros((THREAD_SLOTS, len(THREAD_VIEW)), np.float32)
        self.state = np.zeros(len(STATE_VIEW), np.float32)
        self.mask = np.zeros(THREAD_SLOTS, np.bool_)
        self._slots: list[int] = []
        self._advance()

    @property
    def over(self) -> bool:
        """Whether there is nothing left to decide."""
        return self._game.pending is None

    @property
    def score(self) -> float:
        """Balance over initial balance of our seat."""
        return self._game.score(self.seat)

    def _advance(self) -> None:
        """Play until the next round of our seat: days are decided by the policies, other seats' residuals are zero."""
        game = self._game
        while game.pending is not None and (game.pending.request.kind == "day" or game.pending.seat != self.seat):
            pending = game.pending
            game.step(
                self._policies.act(pending.request)
                if pending.request.kind == "day"
                else np.zeros(pending.action_shape, np.float32)
            )
        self.views, self.mask = np.zeros_like(self.views), np.zeros_like(self.mask)
        self._slots = []
        if game.pending is None:
            return
        request = game.pending.request
        self._slots = [_slot(game.day_observation(self.seat), partner) for partner in request.partners]
        self.views[self._slots] = request.view  # [threads, len(THREAD_VIEW)] into their slots
        self.mask[self._slots] = True
        self.state = request.state

    def step(self, actions: Floats32) -> RoundStep:
        """Play until the next round.

        Args:
            actions: [THREAD_SLOTS, ROUND_ACTION_SIZE]; rows of empty slots are ignored.
        """
        game = self._game
        assert game.pending is not None
        request, slots = game.pending.request, list(self._slots)
        obs = game.day_observation(self.seat)
        game.step(np.clip(np.asarray(actions, np.float32)[slots], -LIMIT, LIMIT))
        self._advance()
        return self._result(request.day, request.partners, slots, obs)

    def _result(self, day: int, partners: Sequence[str], slots: Sequence[int], obs: Observation) -> RoundStep:
        game, rewards = self._game, np.zeros(THREAD_SLOTS, np.float32)
        ended = np.zeros(THREAD_SLOTS, np.bool_)
        terms = {name: np.zeros(THREAD_SLOTS, np.float32) for name in THREAD_TERMS}
        log = game.episode_log(self.seat)
        day_is_over = game.pending is None or game.pending.request.day != day
        # the threads of a day's last round share its reward
        shared = self._threads.shared * self._day_reward(obs) if day_is_over else 0.0
        for partner, slot in zip(partners, slots, strict=True):
            outcome = log.threads.get((day, partner))
            ended[slot] = outcome is not None or day_is_over
            if outcome is not None:
                own_terms = outcome_terms(obs, outcome)
                rewards[slot] = thread_reward(own_terms, self._threads)
                for name, value in own_terms.items():
                    terms[name][slot] = value
            rewards[slot] += shared
        return RoundStep(rewards, ended, terms)

    def _day_reward(self, obs: Observation) -> float:
        """Return the reward of the day that started with an observation."""
        game = self._game
        after = None if game.pending is None else game.day_observation(self.seat)
        end_calendar = game.episode_log(self.seat).entry(obs.day).end_calendar or obs.calendar
        terms = day_terms(obs, end_calendar, after, game.cash(self.seat), self._days)
        return day_reward(terms, self._days)

    def close(self) -> None:
        """Stop the world."""
        self._game.close()


def _slot(obs: Observation, partner: str) -> int:
    """Return the slot of a partner: suppliers first, then consumers.

    Raises:
        ValueError: If there are more partners than slots.
    """
    sides: tuple[tuple[Partner, ...], ...] = (obs.suppliers, obs.consumers)
    for side, partners in enumerate(sides):
        names = [known.name for known in partners]
        if partner in names:
            index = names.index(partner)
            if index >= SLOTS_PER_SIDE:
                raise ValueError(
                    f"{partner!r} is partner {index + 1} of its side, but there are {SLOTS_PER_SIDE} slots; "
                    "use worlds of the official generator"
                )
            return side * SLOTS_PER_SIDE + index
    raise ValueError(f"{partner!r} is neither a supplier nor a consumer on day {obs.day}")
