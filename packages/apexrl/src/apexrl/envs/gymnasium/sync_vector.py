"""Gymnasium's synchronous vector env with a short inner loop."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from apexrl.arrays import Bools, Floats
from apexrl.envs.vec_env import Opaque


class LeanSyncVectorEnv(SyncVectorEnv):
    """`gymnasium.vector.SyncVectorEnv` in same-step mode: the same results with less work per step.

    The parent concatenates through generic space dispatch, deep-copies the observation and merges every info
    dictionary, also empty ones. Here each step writes into fresh arrays and touches infos only where there
    are any. Spaces other than Box observations with Box or Discrete actions go the parent's way.
    """

    def __init__(self, env_fns: list[Any]) -> None:
        super().__init__(env_fns, autoreset_mode=AutoresetMode.SAME_STEP)
        observation, action = self.single_observation_space, self.single_action_space
        self._is_lean = isinstance(observation, Box) and isinstance(action, Box | Discrete)
        self._batch_shape = (self.num_envs, *(observation.shape or ()))

    def step(self, actions: Opaque) -> tuple[Opaque, Floats, Bools, Bools, dict[str, Any]]:
        """Step every env with its action; see `gymnasium.vector.SyncVectorEnv.step`."""
        if not self._is_lean:
            return super().step(actions)
        n = self.num_envs
        observations = np.empty(self._batch_shape, self.single_observation_space.dtype)
        rewards = np.empty(n, np.float64)
        terminations = np.empty(n, np.bool_)
        truncations = np.empty(n, np.bool_)
        infos: dict[str, Any] = {}
        for i, (env, action) in enumerate(zip(self.envs, actions, strict=True)):
            obs, rewards[i], terminated, truncated, info = env.step(action)
            terminations[i], truncations[i] = terminated, truncated
            if terminated or truncated:
                self._keep_final(infos, obs, info, i)
                obs, info = env.reset()
            observations[i] = obs
            if info:
                infos = self._add_info(infos, info, i)
        self._terminations, self._truncations = terminations, truncations
        return observations, rewards, terminations, truncations, infos

    def _keep_final(self, infos: dict[str, Any], obs: Opaque, info: dict[str, Any], i: int) -> None:
        """Record the end of an episode in the form of the parent's `_add_info`."""
        if "final_obs" not in infos:
            infos["final_obs"] = np.full(self.num_envs, None, object)
            infos["final_info"] = {}
            infos["_final_obs"] = np.zeros(self.num_envs, np.bool_)
            infos["_final_info"] = np.zeros(self.num_envs, np.bool_)
        infos["final_obs"][i] = obs
        infos["_final_obs"][i] = infos["_final_info"][i] = True
        if info:
            infos["final_info"] = self._add_info(infos["final_info"], info, i)


def autoreset_mode_of(env: gym.vector.VectorEnv[Any, Any, Any]) -> AutoresetMode:
    """Return how a vector env resets finished rows.

    Raises:
        ValueError: If its metadata does not say so.
    """
    mode = (env.metadata or {}).get("autoreset_mode")
    if mode is None:
        raise ValueError(
            f"{type(env).__name__} does not declare metadata['autoreset_mode'], so it is unknown when "
            "finished rows are reset. Set it to a gymnasium.vector.AutoresetMode before wrapping."
        )
    return AutoresetMode(mode)
