"""Rewards divided by the deviation of the return."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from apexrl.models.normalizers import RunningMoments


class RewardScale:
    """Divides rewards by the running deviation of the discounted return, so that returns have unit size.

    It moves only at the barrier: a whole rollout is scaled by what is known after it.

    Args:
        gamma: Discount of the return.
        clip: Scaled rewards are limited to ±clip.
    """

    def __init__(self, gamma: float, clip: float = 10.0) -> None:
        self._gamma, self._clip = gamma, clip
        self._moments = RunningMoments(())
        self._returns: Tensor | None = None

    def __call__(self, rewards: Tensor, dones: Tensor, valid: Tensor | None) -> Tensor:
        """Take in a rollout's rewards ``[T, N, ...]`` and return them scaled."""
        running = torch.zeros_like(rewards[0]) if self._returns is None else self._returns.to(rewards.device)
        returns = torch.empty_like(rewards)  # G_t = γ·G_{t−1} + r_t, from the start of each episode
        for t in range(len(rewards)):
            running = self._gamma * running + rewards[t]
            returns[t] = running
            running = running.masked_fill(dones[t], 0.0)
        self._returns = running
        self._moments.to(rewards.device).update(returns, valid)
        scale = torch.rsqrt(self._moments.var + 1e-8).to(rewards.dtype)
        return (rewards * scale).clamp(-self._clip, self._clip)

    def state_dict(self) -> dict[str, Any]:
        """Return statistics and the returns under way."""
        return {"moments": self._moments.state_dict(), "returns": self._returns}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self._moments.load_state_dict(state["moments"])
        self._returns = None if state["returns"] is None else state["returns"].clone()
