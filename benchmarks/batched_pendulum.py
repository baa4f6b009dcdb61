"""Pendulum swing-up for many pendulums at once: one physics, and a face for each engine that is measured on it."""

import math
from typing import Any

import torch
from gymnasium.spaces import Box
from torch import Tensor

from apexrl.envs.vec_env import Extras, VecEnv


class PendulumBatch:
    """The equations of Gymnasium's ``Pendulum-v1``, for ``num_envs`` pendulums.

    Attributes:
        angle: Angle from upright ``[n]``.
        speed: Angular velocity ``[n]``.
        age: Steps since the last reset ``[n]``.
    """

    limit = 200

    def __init__(self, num_envs: int, seed: int = 0) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.angle = torch.zeros(num_envs)
        self.speed = torch.zeros(num_envs)
        self.age = torch.zeros(num_envs, dtype=torch.long)
        self.restart(torch.ones(num_envs, dtype=torch.bool))

    def restart(self, rows: Tensor) -> None:
        """Give the pendulums in ``rows`` a random angle in ±π and speed in ±1."""
        count = int(rows.sum())
        draws = torch.rand((2, count), generator=self.generator) * 2 - 1
        self.angle[rows] = draws[0] * math.pi
        self.speed[rows] = draws[1]
        self.age[rows] = 0

    def observe(self) -> Tensor:
        """Cosine, sine and speed, ``[n, 3]``."""
        return torch.stack((torch.cos(self.angle), torch.sin(self.angle), self.speed), dim=1)

    def advance(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Apply torques ``[n, 1]`` in ±1 (scaled to ±2); returns rewards and who reached the time limit."""
        torque = actions[:, 0].clamp(-1.0, 1.0) * 2.0
        angle = torch.remainder(self.angle + math.pi, 2 * math.pi) - math.pi
        rewards = -(angle**2 + 0.1 * self.speed**2 + 0.001 * torque**2)
        self.speed = (self.speed + (15.0 * torch.sin(self.angle) + 3.0 * torque) * 0.05).clamp(-8.0, 8.0)
        self.angle = self.angle + self.speed * 0.05
        self.age = self.age + 1
        return rewards, self.age >= self.limit


class ApexPendulum(VecEnv):
    """The batch behind :class:`apexrl.envs.vec_env.VecEnv`."""

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.device = torch.device("cpu")
        self.observation_space = Box(-8.0, 8.0, (3,))
        self.action_space = Box(-1.0, 1.0, (1,))
        self.batch = PendulumBatch(num_envs)

    def reset(self, seed: int | None = None) -> tuple[Tensor, Extras]:
        """Restart every pendulum."""
        if seed is not None:
            self.batch.generator.manual_seed(seed)
        self.batch.restart(torch.ones(self.num_envs, dtype=torch.bool))
        return self.batch.observe(), {}

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, Extras]:
        """Advance every pendulum; the expired ones restart at once."""
        rewards, expired = self.batch.advance(actions)
        extras: Extras = {"terminated": torch.zeros_like(expired), "truncated": expired, "time_outs": expired}
        observations = self.batch.observe()
        if expired.any():
            extras["final_observation"] = observations
            self.batch.restart(expired)
            observations = self.batch.observe()
        return observations, rewards, expired, extras


def rsl_pendulum(num_envs: int) -> Any:  # noqa: ANN401 - rsl_rl is installed only for the benchmark
    """Return the batch behind rsl_rl's ``VecEnv``."""
    from rsl_rl.env import VecEnv as RslVecEnv
    from tensordict import TensorDict

    class RslPendulum(RslVecEnv):
        def __init__(self) -> None:
            self.num_envs, self.num_actions, self.max_episode_length = num_envs, 1, PendulumBatch.limit
            self.device, self.cfg = torch.device("cpu"), {}
            self.batch = PendulumBatch(num_envs)

        @property
        def episode_length_buf(self) -> Tensor:
            return self.batch.age

        def get_observations(self) -> TensorDict:
            return TensorDict({"policy": self.batch.observe()}, batch_size=[num_envs])

        def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict[str, Any]]:
            rewards, expired = self.batch.advance(actions)
            if expired.any():
                self.batch.restart(expired)
            return self.get_observations(), rewards, expired, {"time_outs": expired}

    return RslPendulum()
