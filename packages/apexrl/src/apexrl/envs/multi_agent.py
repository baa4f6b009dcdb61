"""The contract of multi-agent environments: local actors, a central critic, agents that come and go."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Required, TypedDict

import torch
from gymnasium.spaces import Space
from torch import Tensor

from apexrl.envs.vec_env import EnvBatch


class MultiAgentExtras(TypedDict, total=False):
    """What `MultiAgentVecEnv` returns beside the observations. N = num_envs, A = num_agents."""

    state: Required[Tensor]
    """``[N, *state]``: the global state that belongs to the returned observations, for the critic."""
    agent_mask: Required[Tensor]
    """bool ``[N, A]``: agents that are present in the returned observations and act next."""
    action_mask: Tensor
    """bool ``[N, A, n]``: legal discrete actions; all True for absent agents."""
    terminated: Tensor
    """bool ``[N]``: the episode ended by itself."""
    truncated: Tensor
    """bool ``[N]``: the episode was cut off."""
    time_outs: Tensor
    """The same as ``truncated``."""
    agent_terminated: Tensor
    """bool ``[N, A]``: the agent acted in this step and left for good: its own value after it is 0."""
    agent_truncated: Tensor
    """bool ``[N, A]``: the agent acted in this step and was cut off: bootstrap from its final observation."""
    final_observation: Tensor
    """``[N, A, *obs]``: last observations; rows with ``agent_terminated | agent_truncated`` are meaningful."""
    final_state: Tensor
    """``[N, *state]``: last global state; rows of envs with ``dones`` are meaningful."""
    final_agent_mask: Tensor
    """bool ``[N, A]``: who was present in the final observation; rows with ``dones`` are meaningful."""
    ignore: Tensor
    """bool ``[N]``: this step was only a reset: leave the transition out."""
    reward_components: dict[str, Tensor]
    """Named parts of the reward, each ``[N, A]``."""
    log: Mapping[str, float | Tensor]
    """Scalars that go to the metrics; a tensor or an array counts by its mean."""


class MultiAgentVecEnv(EnvBatch, ABC):
    """A batch of independent multi-agent environments with one padded agent axis.

    The rules of `apexrl.envs.vec_env.VecEnv` hold: same-step autoreset, copy safety, termination is not
    truncation. Rows of absent agents hold zeros: observation, reward; their actions are ignored.

    Attributes:
        num_envs: Number of environments in the batch.
        num_agents: Largest number of agents at one time: the length of the agent axis.
        agent_names: Names along the agent axis.
        device: Where returned tensors live and where actions are expected.
        observation_space: Space of one agent's observation (padded to the same shape for all agents).
        action_space: Space of one agent's action (the same for all agents).
        state_space: Space of the global state.
    """

    num_envs: int
    num_agents: int
    agent_names: list[str]
    device: torch.device
    observation_space: Space[Any]
    action_space: Space[Any]
    state_space: Space[Any]

    @abstractmethod
    def reset(self, seed: int | None = None) -> tuple[Tensor, MultiAgentExtras]:
        """Start a new episode everywhere.

        Args:
            seed: Seed of the whole batch, or None to continue the random streams as they are.

        Returns:
            Observations ``[num_envs, num_agents, *obs]`` and extras with ``state`` and ``agent_mask``.
        """

    @abstractmethod
    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, MultiAgentExtras]:
        """Apply one action per agent; finished environments are reset within the same call.

        Args:
            actions: ``[num_envs, num_agents, *action]``; rows of absent agents are ignored.

        Returns:
            Observations ``[num_envs, num_agents, *obs]``, rewards float32 ``[num_envs, num_agents]``, dones
            bool ``[num_envs]`` (the episode of all agents is over), extras.
        """
