"""A world as a sequence of steps for learners that know nothing of questions: by day with several seats, or by round.

`DayStage` steps all our seats together from one day's decisions to the next; `RoundStage` steps one seat from round to
round over a fixed number of places for threads, of which a mask says who is there. Environments of every kind are thin
coats around these two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from litaagent_std.agents.online.acting import PolicySet
from litaagent_std.agents.online.steering import DAY_ACTIONS, LIMIT, THREAD_ACTIONS, WEIGHT_ACTIONS
from litaagent_std.agents.online.views import STATE_VIEW, THREAD_VIEW, day_view
from litaagent_std.hrl_xf.online.envs.game import Game
from litaagent_std.hrl_xf.online.worlds import TrainingWorld, WorldPlan, draw_world
from litaagent_std.hrl_xf.rewards import (
    DAY_TERMS,
    THREAD_TERMS,
    DayWeights,
    ThreadWeights,
    day_reward,
    day_terms,
    thread_reward,
    thread_terms,
)
from litaagent_std.policy.arrays import Bools, Floats32
from litaagent_std.policy.observation import Observation, Partner

__all__ = ["PLACES", "ROUND_NUMBERS", "DayStage", "RoundStage", "RoundStep"]

SIDE_PLACES: Final = 6
"""Partners of one side at most: the official generator makes no larger levels."""
PLACES: Final = 2 * SIDE_PLACES
"""Places for threads: suppliers first, then consumers."""
ROUND_NUMBERS: Final = len(THREAD_ACTIONS) + len(WEIGHT_ACTIONS)
"""Numbers per thread and round."""


class DayStage:
    """A world by days, all our seats at once.

    Args:
        plan: The world, or a training_world that is laid already.
        weights: Of the reward's terms.
    """

    def __init__(self, plan: WorldPlan | TrainingWorld, weights: DayWeights | None = None) -> None:
        self.training_world = draw_world(plan) if isinstance(plan, WorldPlan) else plan
        self._weights = weights or DayWeights()
        self._game = Game(self.training_world, rounds=False)
        self._mornings: dict[int, Observation] = {}
        self._look()

    @property
    def over(self) -> bool:
        """Whether there is nothing left to decide."""
        return self._game.pending is None

    @property
    def scores(self) -> list[float]:
        """Our seats' balances over their initial balances."""
        return [self._game.score(seat) for seat in self.training_world.seats]

    def _look(self) -> None:
        if self._game.pending is not None:
            self._mornings = {seat: self._game.today(seat) for seat in self.training_world.seats}
            self.views = np.stack([day_view(obs) for obs in self._mornings.values()])

    def step(self, actions: Floats32) -> dict[str, list[float]]:
        """Plays until the next day on which somebody has to decide.

        Args:
            actions: Numbers of each seat [seats, len(DAY_ACTIONS)]; those of a seat that is not asked are ignored.

        Returns:
            Reward terms and their weighted sum ``reward`` by name, one value per seat.
        """
        game, before = self._game, dict(self._mornings)
        assert game.pending is not None
        day = game.pending.question.day
        by_seat = {
            seat: np.asarray(row, np.float32) for seat, row in zip(self.training_world.seats, actions, strict=True)
        }
        while game.pending is not None and game.pending.question.day == day:
            game.answer(np.clip(by_seat[game.pending.seat], -LIMIT, LIMIT))
        self._look()
        return self._rewards(before)

    def _rewards(self, before: dict[int, Observation]) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {name: [] for name in (*DAY_TERMS, "reward")}
        for seat, obs in before.items():
            after = None if self.over else self._mornings[seat]
            entry = next(entry for entry in reversed(self._game.diary(seat).days) if entry.obs.day == obs.day)
            evening = entry.evening or obs.calendar
            terms = day_terms(obs, evening, after, self._game.cash(seat), self._weights)
            for name, value in terms.items():
                found[name].append(value)
            found["reward"].append(day_reward(terms, self._weights))
        return found

    def close(self) -> None:
        """Leaves the world."""
        self._game.close()


@dataclass(frozen=True, slots=True, eq=False)
class RoundStep:
    """What a step of a `RoundStage` brought.

    Attributes:
        rewards: [PLACES].
        ended: Which threads that acted have ended [PLACES].
        terms: Own terms of the threads that ended, by name [PLACES].
    """

    rewards: Floats32
    ended: Bools
    terms: dict[str, Floats32]


class RoundStage:
    """A world by rounds, for one seat.

    Args:
        plan: The world, or a training_world that is laid already; its first seat of ours plays.
        day_weights: Of the day's terms, which the threads of a day's last round share.
        thread_weights: Of the threads' own terms.
        policies: Decides the days; zeros without.

    Attributes:
        views: [PLACES, len(THREAD_VIEW)]; zeros where nobody is.
        state: [len(STATE_VIEW)].
        mask: Who waits for a decision [PLACES].
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
        self.views = np.zeros((PLACES, len(THREAD_VIEW)), np.float32)
        self.state = np.zeros(len(STATE_VIEW), np.float32)
        self.mask = np.zeros(PLACES, np.bool_)
        self._places: list[int] = []
        self._advance()

    @property
    def over(self) -> bool:
        """Whether there is nothing left to decide."""
        return self._game.pending is None

    @property
    def score(self) -> float:
        """Our balance over our initial balance."""
        return self._game.score(self.seat)

    def _advance(self) -> None:
        """Answers the days' questions, and shows the next round."""
        game = self._game
        while game.pending is not None and (game.pending.question.kind == "day" or game.pending.seat != self.seat):
            asked = game.pending
            game.answer(
                self._policies.answer(asked.question)
                if asked.question.kind == "day"
                else np.zeros(asked.answer_shape, np.float32)
            )
        self.views, self.mask = np.zeros_like(self.views), np.zeros_like(self.mask)
        self._places = []
        if game.pending is None:
            return
        question = game.pending.question
        self._places = [_place(game.today(self.seat), partner) for partner in question.partners]
        self.views[self._places] = question.view
        self.mask[self._places] = True
        self.state = question.state

    def step(self, actions: Floats32) -> RoundStep:
        """Plays until the next round.

        Args:
            actions: [PLACES, ROUND_NUMBERS]; rows of absent threads are ignored.
        """
        game = self._game
        assert game.pending is not None
        question, places = game.pending.question, list(self._places)
        morning = game.today(self.seat)
        game.answer(np.clip(np.asarray(actions, np.float32)[places], -LIMIT, LIMIT))
        self._advance()
        return self._brought(question.day, question.partners, places, morning)

    def _brought(self, day: int, partners: Sequence[str], places: Sequence[int], morning: Observation) -> RoundStep:
        game, found = self._game, np.zeros(PLACES, np.float32)
        ended = np.zeros(PLACES, np.bool_)
        terms = {name: np.zeros(PLACES, np.float32) for name in THREAD_TERMS}
        diary = game.diary(self.seat)
        day_is_over = game.pending is None or game.pending.question.day != day
        shared = self._threads.shared * self._day_reward(morning) if day_is_over else 0.0
        for partner, place in zip(partners, places, strict=True):
            entry = diary.threads.get((day, partner))
            ended[place] = entry is not None or day_is_over
            if entry is not None:
                told = thread_terms(
                    morning,
                    buying=entry.buying,
                    deal=entry.deal,
                    goal_quantity=entry.goal_quantity,
                    goal_price=entry.goal_price,
                )
                found[place] = thread_reward(told, self._threads)
                for name, value in told.items():
                    terms[name][place] = value
            found[place] += shared
        return RoundStep(found, ended, terms)

    def _day_reward(self, morning: Observation) -> float:
        game = self._game
        after = None if game.pending is None else game.today(self.seat)
        entry = next(entry for entry in reversed(game.diary(self.seat).days) if entry.obs.day == morning.day)
        terms = day_terms(morning, entry.evening or morning.calendar, after, game.cash(self.seat), self._days)
        return day_reward(terms, self._days)

    def close(self) -> None:
        """Leaves the world."""
        self._game.close()


def _place(obs: Observation, partner: str) -> int:
    """Return the place of a partner: its number among suppliers, or behind them among consumers.

    Raises:
        ValueError: If there are more partners than places.
    """
    sides: tuple[tuple[Partner, ...], ...] = (obs.suppliers, obs.consumers)
    for side, partners in enumerate(sides):
        names = [one.name for one in partners]
        if partner in names:
            number = names.index(partner)
            if number >= SIDE_PLACES:
                raise ValueError(
                    f"{partner!r} is partner {number + 1} of its side, but there are {SIDE_PLACES} places; "
                    "use worlds of the official generator"
                )
            return side * SIDE_PLACES + number
    raise ValueError(f"{partner!r} is neither a supplier nor a consumer on day {obs.day}")


DAY_NUMBERS: Final = len(DAY_ACTIONS)
"""Numbers per seat and day."""
