"""What the trainer asks of any algorithm: act for a batch of environments, take in steps, update at the barrier."""

from typing import Any, Protocol

import torch
from torch import Tensor

from apexrl.envs import MultiAgentExtras
from hmasd.learning.rollout import Rollout


class EpisodePolicy(Protocol):
    """A frozen policy for evaluation, with memories and skill clocks of its own."""

    skills: Tensor | None
    """Skills in force ``[E, n + 1]`` (Z, z_1 … z_n), or None for an algorithm without skills."""

    def act(self, observations: Tensor, state: Tensor, episode_starts: Tensor) -> Tensor:
        """Actions ``[E, n, ...]`` for observations ``[E, n, do]`` and states ``[E, ds]``.

        Args:
            observations: What the agents see.
            state: What the coordinator sees.
            episode_starts: Where an episode begins with these observations ``[E]``.
        """


class Learner(Protocol):
    """An algorithm under training."""

    version: int
    """Number of updates made, which is the version of the policy that acts."""
    rollout: Rollout
    """The batch under collection."""

    def act(self, observations: Tensor, state: Tensor, present: Tensor, episode_starts: Tensor) -> Tensor:
        """Store what is seen and draw actions ``[E, n, ...]``."""

    def observe(self, observations: Tensor, rewards: Tensor, dones: Tensor, extras: MultiAgentExtras) -> None:
        """Take in what the actions led to; ``rewards`` are the team's, ``[E]``."""

    def update(self, env_steps: int) -> dict[str, float]:
        """Learn from the complete batch; returns metrics by their full names.

        Args:
            env_steps: Environment steps made since these networks began, this batch included.
        """

    def policy(self, num_envs: int, generator: torch.Generator, *, deterministic: bool) -> EpisodePolicy:
        """Return the present policy for ``num_envs`` other environments."""

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides how learning goes on."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what :meth:`state_dict` gave."""
