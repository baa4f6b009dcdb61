"""The league as a PettingZoo environment: several seats of one world, each with one decision per day."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from litaagent_std.hrl_xf.online.envs.stages import DAY_ACTION_SIZE, DayStage, DayStages
from litaagent_std.hrl_xf.online.envs.steering import LIMIT as ACTION_LIMIT
from litaagent_std.hrl_xf.online.envs.views import DAY_VIEW
from litaagent_std.hrl_xf.online.worlds import PlanSampler
from litaagent_std.hrl_xf.rewards import DayWeights
from litaagent_std.policy.arrays import Floats32
from litaagent_std.policy.features import LIMIT

__all__ = ["LeagueParallelEnv", "parallel_env"]

_RUN_SEED: Final = (1 << 20) - 2
"""Run seed of this environment's worlds, apart from those of training runs."""


class LeagueParallelEnv(ParallelEnv):  # type: ignore[misc]  # PettingZoo has no type information
    """Several seats of one world: an agent is a seat, and all terminate when the world is over.

    Args:
        seats: Number of our seats.
        days: Lengths of worlds to draw from.
        levels: Number of production levels; if None, drawn from the official range.
        opponents: Class paths of other competitors.
        weights: Weights of the reward terms; the infos hold the terms by name.
    """

    metadata: dict[str, Any] = {"name": "litaagent_league_v0", "render_modes": []}  # noqa: RUF012 - PettingZoo's

    def __init__(
        self,
        seats: int = 2,
        days: tuple[int, ...] = (50,),
        levels: int | None = None,
        opponents: tuple[str, ...] = (),
        weights: DayWeights | None = None,
    ) -> None:
        self.render_mode = None
        self.possible_agents = [f"seat_{index}" for index in range(seats)]
        self.agents: list[str] = []
        self._plans, self._stages = PlanSampler(_RUN_SEED, days, levels, opponents, seats), DayStages(weights)
        self._rng = np.random.default_rng()
        self._stage: DayStage | None = None

    @cached_property
    def _observation(self) -> spaces.Box:
        return spaces.Box(-LIMIT, LIMIT, (len(DAY_VIEW),), np.float32)

    @cached_property
    def _actions(self) -> dict[str, spaces.Box]:
        return {name: spaces.Box(-1.0, 1.0, (DAY_ACTION_SIZE,), np.float32) for name in self.possible_agents}

    def observation_space(self, agent: str) -> spaces.Box:
        """Return the space of L2's inputs."""
        return self._observation

    def action_space(self, agent: str) -> spaces.Box:
        """Return the space of L2's actions, in [−1, 1]; 1 is `steering.LIMIT`."""
        return self._actions[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Floats32], dict[str, dict[str, Any]]]:
        """Start a new world."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self.close()
        while self._stage is None or self._stage.over:
            self.close()
            [self._stage] = self._stages.start([self._plans.sample(self._rng)])
        self.agents = list(self.possible_agents)
        return self._views(self._stage), {name: {} for name in self.agents}

    def _views(self, stage: DayStage) -> dict[str, Floats32]:
        return {name: view.copy() for name, view in zip(self.possible_agents, stage.views, strict=True)}

    def step(
        self, actions: dict[str, Floats32]
    ) -> tuple[dict[str, Floats32], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play until the next day on which a seat has a decision."""
        if self._stage is None or not self.agents:
            raise RuntimeError("step() without a world under way; call reset() first")
        rows = np.stack([np.asarray(actions[name], np.float32) for name in self.possible_agents])
        [terms] = self._stages.step([self._stage], [ACTION_LIMIT * rows])
        over = self._stage.over
        infos: dict[str, dict[str, Any]] = {
            name: {term: values[index] for term, values in terms.items() if term != "reward"}
            for index, name in enumerate(self.possible_agents)
        }
        if over:
            for name, score in zip(self.possible_agents, self._stage.scores, strict=True):
                infos[name]["score"] = score
            self.agents = []
        rewards = dict(zip(self.possible_agents, terms["reward"], strict=True))
        ends = dict.fromkeys(self.possible_agents, over)
        return self._views(self._stage), rewards, ends, dict.fromkeys(self.possible_agents, False), infos

    def render(self) -> None:
        """Do nothing: the environment has no rendering."""

    def close(self) -> None:
        """Stop the world."""
        if self._stage is not None:
            self._stages.stop(self._stage)
            self._stage = None


def parallel_env(**options: Any) -> LeagueParallelEnv:  # noqa: ANN401 - those of the class
    """Make the environment, under the name that PettingZoo's users expect."""
    return LeagueParallelEnv(**options)
