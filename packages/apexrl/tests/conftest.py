"""Environments whose every number is known beforehand, shared by the tests of collection, algorithms and runners."""

import hashlib

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from apexrl.envs.gymnasium.wrapper import GymVecEnv
from apexrl.envs.multi_agent import MultiAgentVecEnv
from apexrl.envs.vec_env import VecEnv


class ScriptedEnv(VecEnv):
    """Observation (env number, episode step, total step); reward = total step; episodes end by a plan.

    ``ends[i]`` is the episode length of environment i; ``cut`` says whether the end is a time-out.
    """

    def __init__(self, ends=(3, 5), cut=True, aliased=False, privileged=False, continuous=False):
        self.num_envs, self.device = len(ends), torch.device("cpu")
        self.observation_space = Box(-np.inf, np.inf, (3,))
        self.action_space = Box(-1.0, 1.0, (2,)) if continuous else Discrete(2)
        self.privileged_observation_space = Box(-np.inf, np.inf, (4,)) if privileged else None
        self.ends, self.cut, self.aliased = torch.tensor(ends), cut, aliased
        self.step_in_episode = torch.zeros(self.num_envs, dtype=torch.int64)
        self.total = 0
        self.resets, self.seeds = 0, []
        self._buffer = torch.zeros(self.num_envs, 3)

    def _observe(self):
        fresh = torch.stack(
            [
                torch.arange(self.num_envs).float(),
                self.step_in_episode.float(),
                torch.full((self.num_envs,), float(self.total)),
            ],
            1,
        )
        if not self.aliased:
            return fresh
        self._buffer.copy_(fresh)
        return self._buffer

    def _extras(self, obs):
        return (
            {"privileged_observation": torch.cat((obs, obs[:, :1] * 10), 1)}
            if self.privileged_observation_space
            else {}
        )

    def reset(self, seed=None):
        self.resets += 1
        self.seeds.append(seed)
        self.step_in_episode.zero_()
        self.total = 0
        obs = self._observe()
        return obs, self._extras(obs)

    def step(self, actions):
        assert actions.shape[0] == self.num_envs
        self.total += 1
        self.step_in_episode += 1
        dones = self.step_in_episode >= self.ends
        final = self._observe().clone()
        self.step_in_episode[dones] = 0
        obs = self._observe()
        cut = dones & self.cut
        extras = {"terminated": dones & ~cut, "truncated": cut, "time_outs": cut} | self._extras(obs)
        extras["reward_components"] = {
            "even": torch.full((self.num_envs,), float(self.total % 2 == 0)),
            "one": torch.ones(self.num_envs),
        }
        extras["log"] = {"/robot/height": float(self.total), "plain": 1.0}
        if dones.any():
            extras["final_observation"] = final
            if self.privileged_observation_space:
                extras["final_privileged_observation"] = torch.cat((final, final[:, :1] * 10), 1)
        return obs, torch.full((self.num_envs,), float(self.total)), dones, extras

    def state_dict(self):
        return {"step": self.step_in_episode.clone(), "total": self.total}

    def load_state_dict(self, state):
        self.step_in_episode, self.total = state["step"].clone(), state["total"]


class BareEnv(ScriptedEnv):
    """The same with nothing but time-outs, reward components and log beside the observation."""

    def step(self, actions):
        obs, rewards, dones, extras = super().step(actions)
        return obs, rewards, dones, {key: extras[key] for key in ("time_outs", "reward_components", "log")}


class ScriptedTeam(MultiAgentVecEnv):
    """Three agents, of which the last leaves after two steps; rewards 1, 2, 3 by agent; episodes are cut at 4 steps."""

    def __init__(self, num_envs=2):
        self.num_envs, self.num_agents, self.device = num_envs, 3, torch.device("cpu")
        self.agent_names = ["a", "b", "c"]
        self.observation_space, self.state_space = Box(-np.inf, np.inf, (2,)), Box(-np.inf, np.inf, (3,))
        self.action_space = Discrete(3)
        self.t = 0
        self.absent_noise = 0.0

    def _now(self):
        obs = torch.zeros(self.num_envs, 3, 2)
        obs[..., 0] = torch.arange(3.0)
        obs[..., 1] = self.t
        mask = torch.ones(self.num_envs, 3, dtype=torch.bool)
        mask[:, 2] = self.t < 2
        obs[~mask] = self.absent_noise
        state = torch.full((self.num_envs, 3), float(self.t))
        return obs, state, mask

    def reset(self, seed=None):
        self.t = 0
        obs, state, mask = self._now()
        return obs, {"state": state, "agent_mask": mask}

    def step(self, actions):
        assert actions.shape == (self.num_envs, 3)
        _, _, acted = self._now()
        self.t += 1
        final_obs, final_state, final_mask = self._now()
        done = self.t >= 4
        leaves = torch.zeros(self.num_envs, 3, dtype=torch.bool)
        leaves[:, 2] = self.t == 2
        if done:
            self.t = 0
        obs, state, mask = self._now()
        dones = torch.full((self.num_envs,), done)
        extras = {
            "state": state,
            "agent_mask": mask,
            "terminated": torch.zeros_like(dones),
            "truncated": dones,
            "time_outs": dones,
        }
        extras |= {"agent_terminated": leaves, "agent_truncated": torch.zeros_like(leaves)}
        if done:
            extras |= {"final_observation": final_obs, "final_state": final_state, "final_agent_mask": final_mask}
        rewards = torch.tensor([1.0, 2.0, 3.0]).expand(self.num_envs, 3) * acted
        return obs, rewards, dones, extras

    def state_dict(self):
        return {"t": self.t}

    def load_state_dict(self, state):
        self.t = state["t"]


@pytest.fixture
def scripted_env():
    return ScriptedEnv


@pytest.fixture
def bare_env():
    return BareEnv


@pytest.fixture
def scripted_team():
    return ScriptedTeam


@pytest.fixture
def make_env():
    """Small Gymnasium batches by name."""

    def make(name="CartPole-v1", num_envs=4):
        return GymVecEnv([lambda: gym.make(name)] * num_envs)

    return make


@pytest.fixture
def fingerprint():
    """A hash of all parameters and buffers of a module."""

    def digest(module):
        content = hashlib.sha256()
        for name, values in sorted(module.state_dict().items()):
            content.update(name.encode() + values.detach().cpu().contiguous().numpy().tobytes())
        return content.hexdigest()

    return digest
