"""Collection of one batch, with statistics of the episodes in it."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from apexrl.envs import MultiAgentVecEnv
from hmasd.learning.protocols import Agent
from hmasd.learning.rollout import team_reward


@dataclass
class BatchReport:
    """Episodes that ended while a batch was collected."""

    returns: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    terminated: int = 0
    components: dict[str, float] = field(default_factory=dict)
    """Mean of each named part of the reward over the batch."""

    def metrics(self) -> dict[str, float]:
        """Return means over the episodes that ended, if any, and over the reward components."""
        components = {f"Rewards/Components/{name}": value for name, value in self.components.items()}
        if not self.returns:
            return components
        return components | {
            "Rewards/Episode/Return_Mean": float(np.mean(self.returns)),
            "Rewards/Episode/Length_Mean": float(np.mean(self.lengths)),
            "Rewards/Episode/TerminatedShare": self.terminated / len(self.returns),
        }


class Collector:
    """The training environments and their current episodes.

    Args:
        env: The batch of environments.
        seed: Seed of their first reset.
    """

    def __init__(self, env: MultiAgentVecEnv, seed: int) -> None:
        self.env = env
        self._observations: Tensor
        self._state: Tensor
        self._present: Tensor
        self._starts: Tensor
        self._action_mask: Tensor | None
        self.restart(seed)
        self.episodes = 0

    def collect(self, agent: Agent, n_steps: int) -> BatchReport:
        """Make ``n_steps`` steps in every environment with one policy version."""
        report = BatchReport()
        sums: dict[str, float] = {}
        for _ in range(n_steps):
            present = self._present
            actions = agent.act(self._observations, self._state, present, self._starts, self._action_mask)
            observations, rewards, dones, extras = self.env.step(actions.to(self.env.device))
            team = team_reward(rewards, present)
            agent.observe(observations, team, dones, extras)
            self._count(team, dones, extras["terminated"], report)
            for name, part in extras.get("reward_components", {}).items():
                sums[name] = sums.get(name, 0.0) + part.mean().item()
            self._observations, self._state = observations, extras["state"]
            self._present, self._starts = extras["agent_mask"], dones
            self._action_mask = extras.get("action_mask")
        report.components = {name: total / n_steps for name, total in sums.items()}
        return report

    def _count(self, rewards: Tensor, dones: Tensor, terminated: Tensor, report: BatchReport) -> None:
        self._returns += rewards
        self._lengths += 1
        if not bool(dones.any()):
            return
        report.returns += self._returns[dones].tolist()
        report.lengths += self._lengths[dones].tolist()
        report.terminated += int(terminated.sum())
        self.episodes += int(dones.sum())
        self._returns[dones] = 0.0
        self._lengths[dones] = 0

    def restart(self, seed: int) -> None:
        """Discard the current episodes and reset all environments."""
        self._observations, extras = self.env.reset(seed=seed)
        self._action_mask = extras.get("action_mask")
        self._state, self._present = extras["state"], extras["agent_mask"]
        self._starts = torch.ones(self.env.num_envs, dtype=torch.bool)
        self._returns = torch.zeros(self.env.num_envs)
        self._lengths = torch.zeros(self.env.num_envs, dtype=torch.int64)

    def state_dict(self) -> dict[str, Any]:
        """Return environments and their current episodes; ``env`` is None if environments cannot be captured."""
        return {
            "env": self.env.state_dict() if self.env.supports_state else None,
            "observations": self._observations.clone(),
            "state": self._state.clone(),
            "present": self._present.clone(),
            "starts": self._starts.clone(),
            "returns": self._returns.clone(),
            "lengths": self._lengths.clone(),
            "episodes": self.episodes,
            "action_mask": None if self._action_mask is None else self._action_mask.clone(),
        }

    def load_state_dict(self, state: dict[str, Any], fresh_seed: int) -> bool:
        """Restore what :meth:`state_dict` returned.

        Args:
            state: The captured state.
            fresh_seed: Seed of new episodes if the environments could not be captured.

        Returns:
            Whether the environments continue exactly where they were; not if there were more or fewer of them.
        """
        self.episodes = state["episodes"]
        if state["env"] is None or len(state["starts"]) != self.env.num_envs:
            self.restart(fresh_seed)
            return False
        self.env.load_state_dict(state["env"])
        self._observations, self._state = state["observations"].clone(), state["state"].clone()
        self._present, self._starts = state["present"].clone(), state["starts"].clone()
        self._returns, self._lengths = state["returns"].clone(), state["lengths"].clone()
        mask = state.get("action_mask")
        self._action_mask = None if mask is None else mask.clone()
        return True
