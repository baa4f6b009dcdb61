"""Worlds as sequences of environment steps: by day with several seats, or by round with one.

`DayStage` steps all our seats of a world together from one day's decisions to the next. `RoundStage` steps one seat
from round to round, with a fixed number of slots for threads and a mask of those that need a decision. `DayStages` and
`RoundStages` step many worlds in lockstep; all environments are thin wrappers of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

import numpy as np

from litaagent_std.hrl_xf.online.envs.layers import (
    RAW_SIZES,
    ROUND_ACTION_SIZE,
    SLOTS_PER_SIDE,
    THREAD_SLOTS,
    ActionKind,
    SlotLayers,
    slot_layers,
    slots,
)
from litaagent_std.hrl_xf.online.envs.steering import DAY_ACTIONS, LIMIT, SteeredLayers
from litaagent_std.hrl_xf.online.envs.views import STATE_VIEW, THREAD_VIEW, day_views, round_views
from litaagent_std.hrl_xf.online.episodes import EpisodeLog, outcome_terms
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.lockstep import Lockstep, LockstepWorld
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
from litaagent_std.policy.arrays import Array, Bools, Floats32
from litaagent_std.policy.columns import ObservationBatch
from litaagent_std.policy.layers import LayerSet
from litaagent_std.policy.observation import Observation

__all__ = [
    "DAY_ACTION_SIZE",
    "RAW_SIZES",
    "ROUND_ACTION_SIZE",
    "SLOTS_PER_SIDE",
    "THREAD_SLOTS",
    "DayStage",
    "DayStages",
    "RoundStage",
    "RoundStages",
    "RoundStep",
]

DAY_ACTION_SIZE: Final = len(DAY_ACTIONS)
"""Components of an action per seat and day."""


class DayStage:
    """A world by days, all our seats at once; made by `DayStages.start`.

    Attributes:
        views: L2's inputs at the latest day start [seats, len(DAY_VIEW)].
    """

    def __init__(self, world: LockstepWorld) -> None:
        self.world = world
        self.observations: dict[int, Observation] = {}
        self.views = np.zeros((0, 0), np.float32)

    @property
    def over(self) -> bool:
        """Whether there is nothing left to decide."""
        return self.world.over

    @property
    def scores(self) -> list[float]:
        """Balance over initial balance of each of our seats."""
        return [self.world.score(seat.seat) for seat in self.world.ours]


class DayStages:
    """Worlds by days, in lockstep.

    Args:
        weights: Weights of the reward terms.
    """

    def __init__(self, weights: DayWeights | None = None) -> None:
        self._weights = weights or DayWeights()
        self._lockstep = Lockstep(lambda seats: LayerSet(SteeredLayers(len(seats))))

    def start(self, plans: Sequence[WorldPlan | TrainingWorld]) -> list[DayStage]:
        """Start worlds, each up to its first decision."""
        stages = [DayStage(world) for world in self._lockstep.add(_drawn(plans))]
        _observe(stages)
        return stages

    def step(self, stages: Sequence[DayStage], actions: Sequence[Floats32]) -> list[dict[str, list[float]]]:
        """Play worlds until the next day on which a seat has a decision.

        Args:
            stages: Worlds that are not over.
            actions: Of each world, the action of each seat [seats, len(DAY_ACTIONS)]; ignored for a seat without a
                decision.

        Returns:
            Of each world, reward terms and their weighted sum ``reward`` by name, one value per seat.
        """
        days = []
        for stage, rows in zip(stages, actions, strict=True):
            assert stage.world.waiting is not None
            days.append(stage.world.waiting.obs.day)
            for seat, row in zip(stage.world.ours, rows, strict=True):
                if seat.batch is not None:  # else it could not start its day
                    cast("SteeredLayers", seat.plugged.goal).days[seat.row] = np.clip(row, -LIMIT, LIMIT)
        before = [dict(stage.observations) for stage in stages]
        while asked := [
            waiting
            for stage, day in zip(stages, days, strict=True)
            if (waiting := stage.world.waiting) is not None and waiting.obs.day == day
        ]:
            self._lockstep.decide(asked)
        _observe(stages)
        return [self._rewards(stage, seen) for stage, seen in zip(stages, before, strict=True)]

    def _rewards(self, stage: DayStage, before: dict[int, Observation]) -> dict[str, list[float]]:
        rewards: dict[str, list[float]] = {name: [] for name in (*DAY_TERMS, "reward")}
        for seat in stage.world.ours:
            obs = before[seat.seat]
            after = None if stage.over else stage.observations[seat.seat]
            end_calendar = seat.episode.entry(obs.day).end_calendar or obs.calendar
            terms = day_terms(obs, end_calendar, after, stage.world.cash(seat.seat), self._weights)
            for name, value in terms.items():
                rewards[name].append(value)
            rewards["reward"].append(day_reward(terms, self._weights))
        return rewards

    def stop(self, stage: DayStage) -> None:
        """Stop a world and forget it."""
        self._lockstep.remove(stage.world)


def _drawn(plans: Sequence[WorldPlan | TrainingWorld]) -> list[TrainingWorld]:
    return [draw_world(plan) if isinstance(plan, WorldPlan) else plan for plan in plans]


def _observe(stages: Sequence[DayStage]) -> None:
    """Take the observations of the worlds that wait, and the views of all their seats at once."""
    seats = [seat for stage in stages if not stage.over for seat in stage.world.ours]
    if not seats:
        return
    views, row = day_views(ObservationBatch.of([seat.obs for seat in seats])), 0
    for stage in stages:
        if not stage.over:
            ours = stage.world.ours
            stage.observations = {seat.seat: seat.obs for seat in ours}
            stage.views, row = views[row : row + len(ours)].copy(), row + len(ours)


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
    """A world by rounds, for the first of our seats; made by `RoundStages.start`.

    Attributes:
        seat: The seat.
        views: [THREAD_SLOTS, len(THREAD_VIEW)]; zeros in empty slots.
        state: [len(STATE_VIEW)].
        mask: Slots of the threads that need a decision [THREAD_SLOTS].
        partners: The partner in each of these slots.
    """

    def __init__(self, world: LockstepWorld) -> None:
        self.world, self.seat = world, world.ours[0]
        self.state = np.zeros(len(STATE_VIEW), np.float32)
        self.clear()

    def clear(self) -> None:
        """Empty all slots."""
        self.views = np.zeros((THREAD_SLOTS, len(THREAD_VIEW)), np.float32)
        self.mask = np.zeros(THREAD_SLOTS, np.bool_)
        self.partners: dict[int, str] = {}

    @property
    def over(self) -> bool:
        """Whether there is nothing left to decide."""
        return self.world.over

    @property
    def score(self) -> float:
        """Balance over initial balance of our seat."""
        return self.world.score(self.seat.seat)


class RoundStages:
    """Worlds by rounds, in lockstep, with one seat of each.

    Args:
        day_weights: Weights of the day's terms, which the threads of a day's last round share.
        thread_weights: Weights of the threads' own terms.
        policies: Networks whose L2 decides the days; if None, the heuristic does.
        actions: What an action is, see `layers.RAW_SIZES` for raw ones.
    """

    def __init__(
        self,
        day_weights: DayWeights | None = None,
        thread_weights: ThreadWeights | None = None,
        policies: Hierarchy | None = None,
        actions: ActionKind = "residual",
    ) -> None:
        self._days, self._threads = day_weights or DayWeights(), thread_weights or ThreadWeights()
        self._policies, self._actions = policies or Hierarchy(), actions
        self._lockstep = Lockstep(lambda seats: slot_layers(actions, self._policies, len(seats)))

    def start(self, plans: Sequence[WorldPlan | TrainingWorld]) -> list[RoundStage]:
        """Start worlds, each up to the first round of its seat."""
        stages = [RoundStage(world) for world in self._lockstep.add(_drawn(plans))]
        self._advance(stages)
        return stages

    def _advance(self, stages: Sequence[RoundStage]) -> None:
        """Play until the next rounds of the stages' seats; other seats are the heuristic agent."""
        while asked := [
            seat for stage in stages if (seat := stage.world.waiting) is not None and seat is not stage.seat
        ]:
            self._lockstep.decide(asked)
        by_seat = {id(stage.seat): stage for stage in stages}
        for stage in stages:
            stage.clear()
        waiting = [stage.seat for stage in stages if not stage.over]
        for columns in self._lockstep.columns(waiting) if waiting else ():
            threads = columns.threads
            views, states = round_views(
                threads, columns.histories, columns.obs, day_views(columns.obs), columns.calendar
            )  # fmt: skip
            for place, slot, view, thread in zip(
                threads.seat.tolist(), slots(threads).tolist(), views, columns.live, strict=True
            ):
                stage = by_seat[id(columns.asked[place])]
                stage.views[slot], stage.mask[slot], stage.partners[slot] = view, True, thread.partner
            for seat, state in zip(columns.asked, states, strict=True):
                by_seat[id(seat)].state = state

    def step(self, stages: Sequence[RoundStage], actions: Sequence[Array]) -> list[RoundStep]:
        """Play worlds until their next rounds.

        Args:
            stages: Worlds that are not over.
            actions: Of each world [THREAD_SLOTS, 4]; rows of empty slots are ignored.
        """
        before = []
        for stage, rows in zip(stages, actions, strict=True):
            seat = stage.seat
            given = cast("SlotLayers", seat.plugged.goal).given
            given[seat.row] = rows if self._actions == "raw" else np.clip(rows, -LIMIT, LIMIT)
            before.append((seat.obs, dict(stage.partners)))
        self._lockstep.decide([stage.seat for stage in stages])
        self._advance(stages)
        return [self._result(stage, *seen) for stage, seen in zip(stages, before, strict=True)]

    def _result(self, stage: RoundStage, obs: Observation, partners: dict[int, str]) -> RoundStep:
        rewards, ended = np.zeros(THREAD_SLOTS, np.float32), np.zeros(THREAD_SLOTS, np.bool_)
        terms = {name: np.zeros(THREAD_SLOTS, np.float32) for name in THREAD_TERMS}
        episode = stage.seat.episode
        day_is_over = stage.over or stage.seat.obs.day != obs.day
        # the threads of a day's last round share its reward
        shared = self._threads.shared * self._day_reward(stage, obs, episode) if day_is_over else 0.0
        for slot, partner in partners.items():
            outcome = episode.threads.get((obs.day, partner))
            ended[slot] = outcome is not None or day_is_over
            if outcome is not None:
                own_terms = outcome_terms(obs, outcome)
                rewards[slot] = thread_reward(own_terms, self._threads)
                for name, value in own_terms.items():
                    terms[name][slot] = value
            rewards[slot] += shared
        return RoundStep(rewards, ended, terms)

    def _day_reward(self, stage: RoundStage, obs: Observation, episode: EpisodeLog) -> float:
        """Return the reward of the day that started with an observation."""
        after = None if stage.over else stage.seat.obs
        end_calendar = episode.entry(obs.day).end_calendar or obs.calendar
        terms = day_terms(obs, end_calendar, after, stage.world.cash(stage.seat.seat), self._days)
        return day_reward(terms, self._days)

    def stop(self, stage: RoundStage) -> None:
        """Stop a world and forget it."""
        self._lockstep.remove(stage.world)
