"""The league as Gymnasium environments: one seat, by day or by round.

Residual actions are in [−1, 1]; 1 is `steering.LIMIT`. Importing this module registers two ids; ``gymnasium.make`` can
also import it, and `apexrl.GymVecEnv.make` finds the ids by itself:

    gymnasium.make("litaagent_std.hrl_xf.online.envs.gym_env:litaagent/LeagueDay-v0")
    GymVecEnv.make("litaagent/LeagueDay-v0", num_envs=2)
"""

from __future__ import annotations

from typing import Any, Final

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from litaagent_std.hrl_xf.online.envs.ids import DAY_ID, ROUND_ID, register_ids
from litaagent_std.hrl_xf.online.envs.layers import ActionKind
from litaagent_std.hrl_xf.online.envs.stages import (
    DAY_ACTION_SIZE,
    RAW_SIZES,
    ROUND_ACTION_SIZE,
    THREAD_SLOTS,
    DayStage,
    DayStages,
    RoundStage,
    RoundStages,
)
from litaagent_std.hrl_xf.online.envs.steering import LIMIT as ACTION_LIMIT
from litaagent_std.hrl_xf.online.envs.views import DAY_VIEW, STATE_VIEW, THREAD_VIEW
from litaagent_std.hrl_xf.online.worlds import PlanSampler
from litaagent_std.hrl_xf.rewards import DayWeights, ThreadWeights
from litaagent_std.policy.arrays import Array, Floats32
from litaagent_std.policy.features import LIMIT

__all__ = ["DAY_ID", "ROUND_ID", "LeagueDayEnv", "LeagueRoundEnv"]

Info = dict[str, Any]
_RUN_SEED: Final = (1 << 20) - 1
"""Run seed of these environments' worlds, apart from those of training runs."""


class LeagueDayEnv(gym.Env[Floats32, Floats32]):
    """A world by days: an action shifts the day's goals; zeros are the heuristic agent.

    Args:
        days: Lengths of worlds to draw from.
        levels: Number of production levels; if None, drawn from the official range.
        opponents: Class paths of other competitors.
        weights: Weights of the reward terms; ``info`` holds the terms by name.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium's name and form

    def __init__(
        self,
        days: tuple[int, ...] = (50,),
        levels: int | None = None,
        opponents: tuple[str, ...] = (),
        weights: DayWeights | None = None,
    ) -> None:
        self.observation_space = spaces.Box(-LIMIT, LIMIT, (len(DAY_VIEW),), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (DAY_ACTION_SIZE,), np.float32)
        self._plans, self._stages = PlanSampler(_RUN_SEED, days, levels, opponents), DayStages(weights)
        self._stage: DayStage | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats32, Info]:
        """Start a new world."""
        super().reset(seed=seed)
        self.close()
        while self._stage is None or self._stage.over:
            self.close()
            [self._stage] = self._stages.start([self._plans.sample(self.np_random)])
        return self._stage.views[0].copy(), {}

    def step(self, action: Floats32) -> tuple[Floats32, float, bool, bool, Info]:
        """Play until the next day with a decision; ``info["score"]`` is set when the world is over."""
        if self._stage is None:
            raise RuntimeError("step() before reset(): there is no world yet; call reset() first")
        [terms] = self._stages.step([self._stage], [ACTION_LIMIT * np.asarray(action, np.float32)[None]])
        info: Info = {name: values[0] for name, values in terms.items() if name != "reward"}
        if self._stage.over:
            info["score"] = self._stage.scores[0]
        return self._stage.views[0].copy(), float(terms["reward"][0]), self._stage.over, False, info

    def close(self) -> None:
        """Stop the world."""
        if self._stage is not None:
            self._stages.stop(self._stage)
            self._stage = None


class LeagueRoundEnv(gym.Env[dict[str, Any], Array]):
    """A world by rounds: observations hold all slots for threads, a mask of those with a thread, and the state.

    Args:
        days: Lengths of worlds to draw from.
        levels: Number of production levels; if None, drawn from the official range.
        opponents: Class paths of other competitors.
        day_weights: Weights of the day's reward terms.
        thread_weights: Weights of the threads' own terms.
        actions: ``residual`` changes the heuristic's decisions, zeros are the heuristic agent. ``raw`` is the decisions
            themselves, four numbers for each slot: 0 accept, 1 counter or 2 end; the units less one; the days until
            delivery; the unit price above the lowest legal one. L1 clips them to what is legal and affordable.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium's name and form

    def __init__(
        self,
        days: tuple[int, ...] = (50,),
        levels: int | None = None,
        opponents: tuple[str, ...] = (),
        day_weights: DayWeights | None = None,
        thread_weights: ThreadWeights | None = None,
        actions: ActionKind = "residual",
    ) -> None:
        self.observation_space = spaces.Dict(
            {
                "threads": spaces.Box(-LIMIT, LIMIT, (THREAD_SLOTS, len(THREAD_VIEW)), np.float32),
                "mask": spaces.MultiBinary(THREAD_SLOTS),
                "state": spaces.Box(-LIMIT, LIMIT, (len(STATE_VIEW),), np.float32),
            }
        )
        self.action_space: spaces.Space[Array] = (
            spaces.MultiDiscrete(list(RAW_SIZES) * THREAD_SLOTS)
            if actions == "raw"
            else spaces.Box(-1.0, 1.0, (THREAD_SLOTS * ROUND_ACTION_SIZE,), np.float32)
        )
        self._plans = PlanSampler(_RUN_SEED, days, levels, opponents)
        self._scale = 1 if actions == "raw" else ACTION_LIMIT
        self._stages = RoundStages(day_weights, thread_weights, actions=actions)
        self._stage: RoundStage | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], Info]:
        """Start a new world."""
        super().reset(seed=seed)
        self.close()
        while self._stage is None or self._stage.over:
            self.close()
            [self._stage] = self._stages.start([self._plans.sample(self.np_random)])
        return self._observation(self._stage), {}

    @staticmethod
    def _observation(stage: RoundStage) -> dict[str, Any]:
        return {"threads": stage.views.copy(), "mask": stage.mask.astype(np.int8), "state": stage.state.copy()}

    def step(self, action: Array) -> tuple[dict[str, Any], float, bool, bool, Info]:
        """Play until the next round; the reward is the sum over threads, ``info["rewards"]`` holds them by slot."""
        if self._stage is None:
            raise RuntimeError("step() before reset(): there is no world yet; call reset() first")
        rows = np.asarray(action).reshape(THREAD_SLOTS, -1)
        [result] = self._stages.step([self._stage], [self._scale * rows])
        info: Info = {"rewards": result.rewards, "ended": result.ended}
        if self._stage.over:
            info["score"] = self._stage.score
        return self._observation(self._stage), float(result.rewards.sum()), self._stage.over, False, info

    def close(self) -> None:
        """Stop the world."""
        if self._stage is not None:
            self._stages.stop(self._stage)
            self._stage = None


register_ids()
