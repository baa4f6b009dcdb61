"""Reference policies without learning for the UAV tasks: random flight, and flight towards the nearest users."""

import numpy as np
import torch
from torch import Tensor

from hmasd import UAVEnv


class RandomFlight:
    """Velocities drawn uniformly from [−1, 1]³ at every step.

    Args:
        seed: Seed of the velocities.
    """

    def __init__(self, seed: int = 0) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self.skills: Tensor | None = None

    def act(
        self, observations: Tensor, state: Tensor, episode_starts: Tensor, action_mask: Tensor | None = None
    ) -> Tensor:
        """Return velocities ``[E, n, 3]``."""
        return torch.rand(*observations.shape[:2], 3, generator=self._generator) * 2.0 - 1.0


class GreedyFlight:
    """Each UAV flies to the mean of the users that are nearer to it than to any other UAV, and keeps its height.

    Args:
        env: The environments; their positions are read.
    """

    def __init__(self, env: UAVEnv) -> None:
        self._env = env
        self.skills: Tensor | None = None

    def act(
        self, observations: Tensor, state: Tensor, episode_starts: Tensor, action_mask: Tensor | None = None
    ) -> Tensor:
        """Return velocities ``[E, n, 3]``."""
        worlds = self._env.worlds
        ground = worlds.uavs[..., :2]
        distance = np.square(ground[:, :, None] - worlds.users[:, None]).sum(axis=-1)  # (E, U, K)
        nearest = distance.argmin(axis=1)[:, None, :] == np.arange(ground.shape[1])[None, :, None]
        count = nearest.sum(axis=2)  # (E, U)
        mean = (nearest[..., None] * worlds.users[:, None]).sum(axis=2) / np.maximum(count, 1)[..., None]
        velocity = np.where(count[..., None] > 0, mean - ground, 0.0) / worlds.config.max_speed
        climb = np.zeros((*velocity.shape[:2], 1))
        return torch.from_numpy(np.clip(np.concatenate([velocity, climb], axis=-1), -1.0, 1.0).astype(np.float32))
