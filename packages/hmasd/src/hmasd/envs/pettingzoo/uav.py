"""UAV base stations as a PettingZoo ``ParallelEnv``: one world, the same physics as the batched form."""

from typing import Any, ClassVar

import numpy as np
from gymnasium.spaces import Box
from pettingzoo import ParallelEnv

from apexrl.arrays import Floats32
from hmasd.envs.uav.observations import observation_sizes, observe
from hmasd.envs.uav.world import UAVConfig, UAVWorlds

Observation = Floats32
Action = Floats32


class UAVParallelEnv(ParallelEnv[str, Observation, Action]):  # type: ignore[misc]  # PettingZoo is untyped
    """One world with named agents.

    Args:
        config: Size and rules.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "uav_v0", "render_modes": [], "is_parallelizable": True}

    def __init__(self, config: UAVConfig | None = None) -> None:
        self.config = config or UAVConfig()
        self.render_mode = None
        self.possible_agents = [f"uav_{index}" for index in range(self.config.n_uavs)]
        self.agents: list[str] = []
        n_observation, n_state = observation_sizes(self.config)
        self.observation_spaces = {
            agent: Box(-1.0, 1.0, (n_observation,), np.float32) for agent in self.possible_agents
        }
        self.action_spaces = {agent: Box(-1.0, 1.0, (3,), np.float32) for agent in self.possible_agents}
        self.state_space = Box(-1.0, 1.0, (n_state,), np.float32)
        self.worlds = UAVWorlds.empty(1, self.config)
        self._rng = np.random.default_rng()
        self._steps = np.zeros(1, dtype=np.int64)
        self._state = np.zeros(n_state, dtype=np.float32)

    def observation_space(self, agent: str) -> Box:
        """Return the space of one UAV's observation, always the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Box:
        """Return the space of velocities [−1, 1]³, always the same object."""
        return self.action_spaces[agent]

    def state(self) -> Observation:
        """Return the global state that belongs to the last observations."""
        return self._state.copy()

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Draw new users and starting positions."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self._steps[:] = 0
        self.worlds.reset(np.zeros(1, dtype=np.int64), self._rng)
        observation, state = observe(self.worlds, self.worlds.links(), self._steps)
        self._state = state[0]
        return self._by_agent(observation[0]), {agent: {} for agent in self.agents}

    def step(
        self, actions: dict[str, Action]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Move for one second; every UAV receives the team's reward.

        Raises:
            ValueError: The episode is over, or a UAV has no action.
        """
        missing = [agent for agent in self.agents if agent not in actions]
        if missing or not self.agents:
            cause = f"there is no action for {', '.join(missing)}" if missing else "the episode is over: call reset()"
            raise ValueError(f"{cause}; step() takes one action for each of env.agents")
        self.worlds.move(np.stack([actions[agent] for agent in self.agents])[None].astype(np.float64))
        self._steps += 1
        links = self.worlds.links()
        parts = self.worlds.reward_parts(links)
        reward = float(self.worlds.reward(parts)[0])
        over = bool(self._steps[0] >= self.config.max_steps)
        observation, state = observe(self.worlds, links, self._steps)
        self._state = state[0]
        info = {name: float(part[0]) for name, part in parts.items()}
        acting = list(self.agents)
        observations = self._by_agent(observation[0])
        if over:
            self.agents = []
        return (
            observations,
            dict.fromkeys(acting, reward),
            dict.fromkeys(acting, False),
            dict.fromkeys(acting, over),
            {agent: dict(info) for agent in acting},
        )

    def render(self) -> None:
        """Draw nothing; :mod:`hmasd.pictures` draws episodes."""

    def close(self) -> None:
        """Close nothing; no resource is held."""

    def _by_agent(self, rows: Floats32) -> dict[str, Observation]:
        return {agent: rows[index].copy() for index, agent in enumerate(self.agents)}


def uav_coverage(**rules: Any) -> UAVParallelEnv:  # noqa: ANN401 - the fields of UAVConfig
    """Return scenario 1, coverage of the users. Keyword arguments are fields of :class:`hmasd.envs.UAVConfig`."""
    return UAVParallelEnv(UAVConfig(scenario="coverage", **rules))


def uav_relay(**rules: Any) -> UAVParallelEnv:  # noqa: ANN401 - the fields of UAVConfig
    """Return scenario 2, coverage through relays. Keyword arguments as in :func:`uav_coverage`."""
    return UAVParallelEnv(UAVConfig(scenario="relay", **rules))
