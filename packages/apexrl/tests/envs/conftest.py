from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from apexrl.envs import VecEnv


class CounterEnv(gym.Env):
    """Counts steps from a random start; tells the learner everything through its info."""

    def __init__(self, limit=4, action_space=None, terminates=True, observation_space=None):
        self.observation_space = observation_space or spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = action_space or spaces.Discrete(3)
        self.limit, self.terminates = limit, terminates
        self.received = []

    def _info(self, reward):
        info = {
            "action_mask": np.array([True, self.steps % 2 == 0, True]),
            "privileged_observation": np.array([self.start, self.steps, 7.0], np.float32),
        }
        return (
            info
            if reward is None
            else info
            | {
                "reward_components": {"step": 1.0, "total": float(self.steps)},
                "log": {"steps": float(self.steps)},
            }
        )

    def _obs(self):
        return np.array([self.start, self.steps], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.start, self.steps = self.np_random.random(), 0
        return self._obs(), self._info(None)

    def step(self, action):
        self.received.append(np.copy(action))
        self.steps += 1
        ended = self.steps >= self.limit
        reward = 0.5 + self.steps
        return self._obs(), reward, ended and self.terminates, ended and not self.terminates, self._info(reward)


@pytest.fixture
def counter() -> Callable[..., Callable[[], gym.Env]]:
    """Makes env functions of `CounterEnv`."""
    return lambda **options: partial(CounterEnv, **options)


@pytest.fixture
def roll() -> Callable[..., list[torch.Tensor]]:
    """Steps an env with actions drawn from a seed and gives all tensors in order."""

    def run(env: Any, steps: int, seed: int) -> list[torch.Tensor]:
        g = torch.Generator().manual_seed(seed)
        out = []
        for _ in range(steps):
            if isinstance(env.action_space, spaces.Discrete):
                actions = torch.randint(int(env.action_space.n), (env.num_envs,), generator=g)
            else:
                actions = torch.randn(env.num_envs, *env.action_space.shape, generator=g)
            obs, rewards, dones, extras = env.step(actions)
            out += [obs, rewards, dones, extras["terminated"], extras["truncated"]]
            out.append(extras["final_observation"][dones] if "final_observation" in extras else torch.zeros(0))
        return out

    return run


class WalkEnv(VecEnv):
    """A correct tensor env: a noisy walk on a line that ends at ±3 and is cut off after 20 steps.

    Tests break one method at a time.
    """

    def __init__(self, num_envs=4):
        self.num_envs = num_envs
        self.device = torch.device("cpu")
        self.observation_space = spaces.Box(-10, 10, (2,), np.float32)
        self.action_space = spaces.Discrete(3)
        self.generator = torch.Generator()
        self.position = torch.zeros(num_envs)
        self.steps = torch.zeros(num_envs)

    def observe(self):
        return torch.stack([self.position, self.steps / 20], dim=1)

    def start(self, rows):
        self.position[rows] = torch.rand(self.num_envs, generator=self.generator)[rows] - 0.5
        self.steps[rows] = 0

    def reset(self, seed=None):
        if seed is not None:
            self.generator.manual_seed(seed)
        self.start(torch.ones(self.num_envs, dtype=torch.bool))
        return self.observe(), {}

    def move(self, actions):
        noise = torch.rand(self.num_envs, generator=self.generator)
        self.position = self.position + (actions - 1) * 0.5 + 0.1 * noise
        self.steps = self.steps + 1

    def step(self, actions):
        self.move(actions)
        terminated = self.position.abs() > 3
        truncated = (self.steps >= 20) & ~terminated
        dones = terminated | truncated
        rewards = -self.position.abs()
        extras = {"terminated": terminated, "truncated": truncated, "time_outs": truncated}
        if dones.any():
            extras["final_observation"] = self.observe()
            self.start(dones)
        return self.observe(), rewards, dones, extras


@pytest.fixture
def walk_env() -> type[WalkEnv]:
    return WalkEnv
