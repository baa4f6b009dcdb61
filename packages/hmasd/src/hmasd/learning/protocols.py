"""The protocols between training and algorithm: act in a batch of environments, store steps, update at the barrier."""

from typing import Any, Protocol

import torch
from torch import Tensor

from apexrl.envs import MultiAgentExtras
from hmasd.learning.rollout import Rollout


class EpisodePolicy(Protocol):
    """The current policy for evaluation, with its own memories and skill clocks."""

    skills: Tensor | None
    """Skills in force ``[E, n + 1]`` (Z, z_1 … z_n), or None for an algorithm without skills."""

    def act(
        self, observations: Tensor, state: Tensor, episode_starts: Tensor, action_mask: Tensor | None = None
    ) -> Tensor:
        """Return actions ``[E, n, ...]``.

        Args:
            observations: ``[E, n, do]``.
            state: ``[E, ds]``.
            episode_starts: Whether an episode begins with these observations ``[E]``.
            action_mask: Legal discrete actions ``[E, n, A]``; if None, all are.
        """


class Agent(Protocol):
    """An algorithm under training: HMASD or a baseline."""

    device: torch.device
    """Where networks and batch are."""
    version: int
    """Version of the policy: the number of updates made."""
    rollout: Rollout
    """The batch that is being collected."""

    def act(
        self,
        observations: Tensor,
        state: Tensor,
        present: Tensor,
        episode_starts: Tensor,
        action_mask: Tensor | None = None,
    ) -> Tensor:
        """Store the inputs of a step and sample actions ``[E, n, ...]``, legal ones where there is a mask."""

    def observe(self, observations: Tensor, rewards: Tensor, dones: Tensor, extras: MultiAgentExtras) -> None:
        """Store the outcome of the step; ``rewards`` are the team's, ``[E]``."""

    def update(self, env_steps: int) -> dict[str, float]:
        """Update from the complete batch; returns metrics by their full names.

        Args:
            env_steps: Environment steps made since these networks were initialised, this batch included.
        """

    def policy(self, num_envs: int, generator: torch.Generator, *, deterministic: bool) -> EpisodePolicy:
        """Return the current policy for ``num_envs`` other environments."""

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
