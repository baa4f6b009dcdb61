"""Gymnasium environments as `VecEnv`, whatever their action and observation spaces.

`GymVecEnv` takes an id, a list of functions that make one environment each, or any `gymnasium.vector.VectorEnv`::

    env = GymVecEnv.make("CartPole-v1", num_envs=8)
    env = GymVecEnv([lambda: gym.make("CartPole-v1")] * 8, device="cpu")
    env = GymVecEnv([lambda: gym.make("CartPole-v1")] * 8, backend="async")  # one process per env
    env = GymVecEnv.from_vector_env(gym.make_vec("CartPole-v1", num_envs=8))  # natively batched

An environment speaks to the learner through its info dictionary: ``action_mask``, ``privileged_observation``
and ``reward_components`` (a dict of floats) become the extras of the same name, ``log`` (a dict of floats) is averaged
over the environments that gave it, and ``is_success`` in an episode's last step becomes ``success``.
"""

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, Self, cast

import gymnasium as gym
import numpy as np
import torch
from gymnasium.spaces import Box, Discrete, Space
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from torch import Tensor

from apexrl.arrays import Array, Bools, Floats
from apexrl.envs.gymnasium.conversion import (
    ActionMode,
    InfoReader,
    Infos,
    ObservationConverter,
    make_actions,
    overlay,
    to_tensor,
)
from apexrl.envs.gymnasium.ids import make_env
from apexrl.envs.snapshot import capture, restore
from apexrl.envs.vec_env import (
    Extras,
    Opaque,
    StateDict,
    StateNotSupportedError,
    StepFormatError,
    VecEnv,
    refuse_shared,
)

EnvFn = Callable[[], gym.Env[Any, Any]]
Backend = Literal["sync", "async"]
_VectorEnv = VectorEnv[Any, Any, Any]


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
            obs, reward, terminated, truncated, info = env.step(action)
            terminations[i], truncations[i] = terminated, truncated
            if terminated or truncated:
                self._keep_final(infos, obs, info, i)
                obs, info = env.reset()
            try:
                rewards[i], observations[i] = reward, obs
            except (TypeError, ValueError) as error:
                raise self._refused(i, reward, obs) from error
            if info:
                infos = self._add_info(infos, info, i)
        self._terminations, self._truncations = terminations, truncations
        return observations, rewards, terminations, truncations, infos

    def _refused(self, i: int, reward: Opaque, obs: Opaque) -> StepFormatError:
        """Say what environment i returned, which fits neither a number nor its space."""
        return StepFormatError(
            f"environment {i} ({type(self.envs[i].unwrapped).__name__}) returned the reward {reward!r} and an "
            f"observation of shape {list(np.shape(obs))}",
            f"a reward is one number, an observation of {self.single_observation_space}",
            "correct what its step and reset return",
        )

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


class _RemoteSnapshot(gym.Wrapper[Any, Any, Any, Any]):
    """Captures and restores an environment inside a worker process."""

    def __init__(self, env: gym.Env[Any, Any], index: int) -> None:
        super().__init__(env)
        self._index = index

    def capture_state(self) -> dict[str, Any]:
        """Return the snapshot, or the reason why there is none: an exception would end the worker."""
        try:
            return capture(self.env)
        except StateNotSupportedError as error:
            return {"error": str(error)}

    def restore_state(self, snapshots: list[dict[str, Any]]) -> str | None:
        """Take the snapshot of this worker; returns what went wrong, if anything."""
        try:
            restore(self.env, snapshots[self._index])
        except StateNotSupportedError as error:
            return str(error)
        return None


def _make_remote(env_fn: EnvFn, index: int) -> gym.Env[Any, Any]:
    return _RemoteSnapshot(env_fn(), index)


def _make_vector_env(env_fns: Sequence[EnvFn], backend: Backend) -> _VectorEnv:
    if isinstance(env_fns, str | gym.Env) or callable(env_fns) or not isinstance(env_fns, Sequence):
        raise TypeError(
            f"GymVecEnv takes a list of functions that make one environment each, got {env_fns!r}. Write "
            "GymVecEnv([lambda: gym.make(...)] * 8) or GymVecEnv.make(id, num_envs=8)."
        )
    if len(env_fns) == 0:
        raise ValueError("env_fns is empty: give at least one function that makes an environment.")
    if backend not in ("sync", "async"):
        raise ValueError(f"backend must be 'sync' or 'async', got {backend!r}.")
    functions = [_function(env) for env in env_fns]
    if backend == "async":
        remote = [partial(_make_remote, env_fn, index) for index, env_fn in enumerate(functions)]
        return AsyncVectorEnv(remote, autoreset_mode=AutoresetMode.SAME_STEP)
    vector_env = LeanSyncVectorEnv(functions)
    refuse_shared(vector_env.envs, "write [lambda: gym.make(...)] * n, with gym.make inside the lambda")
    return vector_env


def _function(env: EnvFn | gym.Env[Any, Any]) -> EnvFn:
    """Return a function that gives an environment, also for an environment itself."""
    return (lambda: env) if isinstance(env, gym.Env) else env


class GymVecEnv(VecEnv):
    """Gymnasium environments with actions and observations of any fixed size.

    * **Actions.** Discrete, MultiDiscrete, MultiBinary and integer Boxes count from 0 here; spaces that start elsewhere
      are shifted. Box actions always reach the environment inside its bounds: with ``action_mode="clip"`` they are in
      its own units and clipped; with ``"scale"`` the learner acts in [−1, 1], which is mapped linearly to the bounds:
      better when these are far from ±1, because a fresh policy explores with σ = 1.
    * **Observations.** A Box keeps its shape. A Dict or a Tuple becomes one vector that remembers its parts
      (`apexrl.spaces.PackedBox`). Everything else is flattened by Gymnasium's rules.

    Args:
        env_fns: One function per environment that makes it.
        device: Device of the returned tensors.
        backend: ``"sync"`` steps in this process, ``"async"`` in one process per environment.
        action_mode: ``"clip"`` or ``"scale"``; for Box actions.
        privileged_observation_space: Space of ``info["privileged_observation"]``, if the envs give one.

    Raises:
        UnsupportedSpacesError: Actions or observations have a space that no network can use.
        SharedEnvError: Two functions returned one and the same environment.
    """

    def __init__(
        self,
        env_fns: Sequence[EnvFn],
        device: torch.device | str = "cpu",
        *,
        backend: Backend = "sync",
        action_mode: ActionMode = "clip",
        privileged_observation_space: Space[Any] | None = None,
    ) -> None:
        self._setup(_make_vector_env(env_fns, backend), device, action_mode, privileged_observation_space)

    @classmethod
    def make(
        cls,
        env_id: str,
        num_envs: int = 8,
        device: torch.device | str = "cpu",
        *,
        backend: Backend = "sync",
        action_mode: ActionMode = "clip",
        **options: Any,  # noqa: ANN401 - whatever the environment takes
    ) -> Self:
        """Make a batch from an id (see `apexrl.envs.gymnasium.ids`); ``options`` go to `gymnasium.make`."""
        env_fns = [partial(make_env, env_id, **options)] * num_envs
        return cls(env_fns, device, backend=backend, action_mode=action_mode)

    @classmethod
    def from_vector_env(
        cls,
        vector_env: _VectorEnv,
        device: torch.device | str = "cpu",
        *,
        action_mode: ActionMode = "clip",
        privileged_observation_space: Space[Any] | None = None,
    ) -> Self:
        """Wrap a vector env that exists already, such as a natively batched one, in any autoreset mode."""
        self = cls.__new__(cls)
        self._setup(vector_env, device, action_mode, privileged_observation_space)
        return self

    def _setup(
        self,
        vector_env: _VectorEnv,
        device: torch.device | str,
        action_mode: ActionMode,
        privileged_space: Space[Any] | None,
    ) -> None:
        self.vector_env = vector_env
        self._to_actions = make_actions(vector_env.single_action_space, action_mode)
        self.num_envs = vector_env.num_envs
        self.device = torch.device(device)
        self._target = None if self.device.type == "cpu" else self.device
        self.privileged_observation_space = privileged_space
        self._observations = ObservationConverter(vector_env.single_observation_space, vector_env.observation_space)
        self.observation_space = self._observations.space
        self.action_space = self._to_actions.space
        self._infos = InfoReader(self.num_envs, self._target, privileged_space)
        self._mode = autoreset_mode_of(vector_env)
        self._reads_every_step = privileged_space is not None or self._mode is not AutoresetMode.SAME_STEP
        # Only the lean env is known to give arrays that nobody else holds.
        self._must_copy = not isinstance(vector_env, LeanSyncVectorEnv)
        self._was_done = np.zeros(self.num_envs, np.bool_)

    def _observe(self, observations: Opaque) -> Tensor:
        return to_tensor(self._observations.batch(observations, copy=self._must_copy), self._target)

    def reset(self, seed: int | None = None) -> tuple[Tensor, Extras]:
        """Start a new episode everywhere; environment i is seeded with ``seed + i``, as Gymnasium does."""
        observations, infos = self.vector_env.reset(seed=seed)
        self._was_done = np.zeros(self.num_envs, np.bool_)
        extras: Extras = {}
        self._infos.read_current(infos, extras)
        return self._observe(observations), extras

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, Extras]:
        """Step every environment; see `VecEnv.step`.

        With a vector env that resets in the *next* step only, the step after a done has no effect but the
        reset: its row is True in ``extras["ignore"]``, and the observation it returns is the first of the
        episode.
        """
        env_actions = self._to_actions(actions)
        if len(env_actions) != self.num_envs:
            raise ValueError(f"Expected actions for {self.num_envs} envs, got shape {list(actions.shape)}.")
        observations, rewards, terminated, truncated, infos = self.vector_env.step(env_actions)
        if self._must_copy:
            terminated, truncated = np.array(terminated, np.bool_), np.array(truncated, np.bool_)
        dones = terminated | truncated
        time_outs = to_tensor(truncated, self._target)
        extras: Extras = {
            "terminated": to_tensor(terminated, self._target),
            "truncated": time_outs,
            "time_outs": time_outs,
        }
        if self._mode is AutoresetMode.NEXT_STEP:
            extras["ignore"] = to_tensor(self._was_done, self._target)
            self._was_done = dones.copy()
        # With same-step resets a done always comes with infos, so dones need no search.
        if infos or self._reads_every_step:
            observations = self._finish(observations, infos, dones, extras)
        return (
            self._observe(observations),
            to_tensor(np.asarray(rewards).astype(np.float32), self._target),
            to_tensor(dones, self._target),
            extras,
        )

    def _finish(self, observations: Opaque, infos: Infos, dones: Bools, extras: Extras) -> Opaque:
        """Read infos, keep final observations, and reset finished rows of an env that does not do it itself."""
        final_infos = infos
        if dones.any():
            if self._mode is AutoresetMode.SAME_STEP:
                final_infos = infos.get("final_info", {})
                extras["final_observation"] = self._final_rows(infos["final_obs"], dones)
            else:
                final = self._observations.batch(observations, copy=True)
                extras["final_observation"] = to_tensor(final, self._target)
            if self._mode is AutoresetMode.DISABLED:
                observations, reset_infos = self.vector_env.reset(options={"reset_mask": dones.copy()})
                infos = overlay(infos, reset_infos, dones)
        self._infos.read_current(infos, extras)
        going_infos = infos if self._mode is AutoresetMode.SAME_STEP else final_infos
        self._infos.read_step(going_infos, final_infos, dones, extras)
        return observations

    def _final_rows(self, final_obs: Array, dones: Bools) -> Tensor:
        rows = np.zeros((self.num_envs, *self._observations.space.shape), self._observations.dtype)
        for i in np.nonzero(dones)[0]:
            rows[i] = self._observations.single(final_obs[i])
        return to_tensor(rows, self._target)

    def state_dict(self) -> StateDict:
        """Return snapshots of all environments; see `apexrl.envs.snapshot`."""
        env = self.vector_env
        if isinstance(env, SyncVectorEnv):
            snapshots = [capture(single) for single in env.envs]
        elif isinstance(env, AsyncVectorEnv):
            snapshots = self._call_workers("capture_state")
            errors = [snapshot["error"] for snapshot in snapshots if "error" in snapshot]
            if errors:
                raise StateNotSupportedError(errors[0])
        else:
            snapshots = [capture(env)]
        return {"snapshots": snapshots, "was_done": torch.from_numpy(self._was_done.copy())}

    def load_state_dict(self, state: StateDict) -> None:
        """Continue from snapshots of environments that were built in the same way."""
        env, snapshots = self.vector_env, state["snapshots"]
        expected = self.num_envs if isinstance(env, SyncVectorEnv | AsyncVectorEnv) else 1
        if len(snapshots) != expected:
            raise ValueError(f"The state holds {len(snapshots)} environments, this batch has {expected}.")
        env.reset()  # so that everything that a running env holds exists
        if isinstance(env, SyncVectorEnv):
            for single, snapshot in zip(env.envs, snapshots, strict=True):
                restore(single, snapshot)
        elif isinstance(env, AsyncVectorEnv):
            errors = [error for error in self._call_workers("restore_state", snapshots) if error]
            if errors:
                raise StateNotSupportedError(errors[0])
        else:
            restore(env, snapshots[0])
        self._was_done = state["was_done"].cpu().numpy().copy()

    def _call_workers(self, name: str, *args: object) -> list[Any]:
        env = cast("AsyncVectorEnv", self.vector_env)
        try:
            return list(env.call(name, *args))
        except AttributeError as error:
            raise StateNotSupportedError(
                "This AsyncVectorEnv was made elsewhere, so its workers cannot give their state. Pass the "
                "env_fns with backend='async' instead of from_vector_env."
            ) from error

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if isinstance(self.vector_env, AsyncVectorEnv):
            # A half-made copy would close the original's pipes.
            raise TypeError("environments in worker processes cannot be copied; make a second one")
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        for name, value in vars(self).items():
            setattr(twin, name, copy.deepcopy(value, memo))
        return twin

    def close(self) -> None:
        """Close all environments and worker processes."""
        self.vector_env.close()


GymVecEnvContinuous = GymVecEnv
"""The name that `GymVecEnv` had for Box actions."""
