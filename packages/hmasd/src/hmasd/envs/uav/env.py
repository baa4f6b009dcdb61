"""The UAV scenarios as a natively batched multi-agent environment."""

import json

import numpy as np
import torch
from gymnasium.spaces import Box
from torch import Tensor

from apexrl.arrays import Array, Ints
from apexrl.envs import MultiAgentExtras, MultiAgentVecEnv, StateDict
from hmasd.envs.extras import step_extras
from hmasd.envs.uav.observations import observation_sizes, observe
from hmasd.envs.uav.world import UAVConfig, UAVWorlds


class UAVEnv(MultiAgentVecEnv):
    """A batch of UAV worlds; actions are velocities in [−1, 1]³ and all UAVs share the reward.

    Args:
        num_envs: Number of worlds.
        config: Size and rules.
        seed: Seed of users and starting positions until :meth:`reset` gives another.
    """

    def __init__(self, num_envs: int, *, config: UAVConfig | None = None, seed: int = 0) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs={num_envs} must be at least 1")
        self.config = config or UAVConfig()
        self.num_envs = num_envs
        self.num_agents = self.config.n_uavs
        self.agent_names = [f"uav_{index}" for index in range(self.num_agents)]
        self.device = torch.device("cpu")
        n_observation, n_state = observation_sizes(self.config)
        self.observation_space = Box(-1.0, 1.0, (n_observation,), np.float32)
        self.state_space = Box(-1.0, 1.0, (n_state,), np.float32)
        self.action_space = Box(-1.0, 1.0, (3,), np.float32)
        self.worlds = UAVWorlds.empty(num_envs, self.config)
        self._rng = np.random.default_rng(seed)
        self._steps = np.zeros(num_envs, dtype=np.int64)
        self._present = torch.ones(num_envs, self.num_agents, dtype=torch.bool)

    def reset(self, seed: int | None = None) -> tuple[Tensor, MultiAgentExtras]:
        """Draw new users and starting positions in all worlds."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._reset_envs(np.arange(self.num_envs))
        observation, state = observe(self.worlds, self.worlds.links(), self._steps)
        return torch.from_numpy(observation), {"state": torch.from_numpy(state), "agent_mask": self._present.clone()}

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, MultiAgentExtras]:
        """Move the UAVs, compute links and reward; see :class:`apexrl.envs.MultiAgentVecEnv`."""
        self.worlds.move(actions.numpy().astype(np.float64))
        self._steps += 1
        links = self.worlds.links()
        parts = self.worlds.reward_parts(links)
        reward = self.worlds.reward(parts).astype(np.float32)  # (E,)
        dones = self._steps >= self.config.max_steps
        observation, state = observe(self.worlds, links, self._steps)
        extras = step_extras(observation, state, np.zeros_like(dones), dones, self._present)
        extras["reward_components"] = {name: self._for_all_agents(part) for name, part in parts.items()}
        if dones.any():
            self._reset_envs(np.flatnonzero(dones))
            observation, state = observe(self.worlds, self.worlds.links(), self._steps)
            extras["state"] = torch.from_numpy(state)
        return torch.from_numpy(observation), self._for_all_agents(reward), torch.from_numpy(dones), extras

    @property
    def supports_state(self) -> bool:
        """Positions, counters and the random stream are captured in full."""
        return True

    def state_dict(self) -> StateDict:
        """Return positions, counters and the random stream."""
        return {
            "uavs": torch.from_numpy(self.worlds.uavs.copy()),
            "users": torch.from_numpy(self.worlds.users.copy()),
            "steps": torch.from_numpy(self._steps.copy()),
            "rng": json.dumps(self._rng.bit_generator.state, sort_keys=True),  # plain text, so no pickled code
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Restore what :meth:`state_dict` returned.

        Raises:
            ValueError: The state is of a batch of another shape.
        """
        uavs = state["uavs"].numpy().copy()
        if uavs.shape != self.worlds.uavs.shape:
            raise ValueError(
                f"the state holds UAVs of shape {uavs.shape} and this batch has {self.worlds.uavs.shape}; "
                "build the batch with the same num_envs and n_uavs"
            )
        self.worlds.uavs = uavs
        self.worlds.users = state["users"].numpy().copy()
        self._steps = state["steps"].numpy().copy()
        self._rng.bit_generator.state = json.loads(state["rng"])

    def _reset_envs(self, envs: Ints) -> None:
        self.worlds.reset(envs, self._rng)
        self._steps[envs] = 0

    def _for_all_agents(self, values: Array) -> Tensor:
        """Repeat ``(E,)`` values for every agent, ``[E, U]``."""
        return torch.from_numpy(values.astype(np.float32)).unsqueeze(1).repeat(1, self.num_agents)
