"""Frame stacking: the last few observations as one, so that a policy without memory sees motion."""

from math import prod
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box
from torch import Tensor

from apexrl.arrays import Array, Ints
from apexrl.envs.vec_env import Extras, StateDict, UnsupportedSpacesError, VecEnv
from apexrl.spaces import PackedBox


class FrameStack(VecEnv):
    """A batch whose observation holds the last `num_frames` observations of the episode, the oldest first.

    Pictures are stacked along their channels, vectors one after the other, and of a Dict each part by itself. At the
    start of an episode the first observation stands for those before it. The privileged observation is not stacked.

    Args:
        env: The environments.
        num_frames: k, how many observations are seen at once.

    Raises:
        ValueError: If `num_frames` is not positive.
        UnsupportedSpacesError: If observations are no Box.
    """

    def __init__(self, env: VecEnv, num_frames: int = 4) -> None:
        if num_frames < 1:
            raise ValueError(f"num_frames={num_frames} must be at least 1.")
        if not isinstance(env.observation_space, Box):
            raise UnsupportedSpacesError(
                f"{type(env).__name__} observes {env.observation_space}", "frames of a Box are stacked", "give it a Box"
            )
        self.env, self.num_frames = env, num_frames
        self.num_envs, self.device, self.action_space = env.num_envs, env.device, env.action_space
        self.privileged_observation_space = env.privileged_observation_space
        self.observation_space: Box
        self.observation_space, order = _stacked(env.observation_space, num_frames)
        self._order = torch.from_numpy(order).to(env.device)  # [k·D] where each entry stands in [k, D]
        self._frames = torch.zeros(0)  # [N, k, D], never changed in place

    def _show(self, frames: Tensor) -> Tensor:
        """Arrange frames ``[N, k, D]`` as observations ``[N, *obs]`` with memory of their own."""
        return frames.flatten(1).index_select(1, self._order).reshape(-1, *self.observation_space.shape)

    def _repeat(self, obs: Tensor) -> Tensor:
        return obs.flatten(1).unsqueeze(1).expand(-1, self.num_frames, -1)

    def _append(self, obs: Tensor) -> Tensor:
        return torch.cat((self._frames[:, 1:], obs.flatten(1).unsqueeze(1)), dim=1)

    def reset(self, seed: int | None = None) -> tuple[Tensor, Extras]:
        """Start a new episode everywhere; see `VecEnv.reset`."""
        obs, extras = self.env.reset(seed=seed)
        self._frames = self._repeat(obs).clone()
        return self._show(self._frames), extras

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, Extras]:
        """Step every environment; see `VecEnv.step`."""
        obs, rewards, dones, extras = self.env.step(actions)
        if "final_observation" in extras:
            extras = extras | {"final_observation": self._show(self._append(extras["final_observation"]))}
        # [N] rows whose observation is the first of an episode
        starts = extras.get("ignore", dones).bool().view(-1, 1, 1)
        self._frames = torch.where(starts, self._repeat(obs), self._append(obs))
        return self._show(self._frames), rewards, dones, extras

    def state_dict(self) -> StateDict:
        """Return the environments' state and the frames seen so far."""
        return {"env": self.env.state_dict(), "frames": self._frames.clone()}

    def load_state_dict(self, state: StateDict) -> None:
        """Continue from a state of `state_dict`."""
        self.env.load_state_dict(state["env"])
        self._frames = state["frames"].to(self.device)

    def close(self) -> None:
        """Close the environments underneath."""
        self.env.close()


def _stacked(space: Box, k: int) -> tuple[Box, Ints]:
    """Return the space of k frames, and for each of its entries the index in the frames ``[k, D]``."""
    parts = space.parts if isinstance(space, PackedBox) else {"": space}
    size = sum(prod(part.shape) for part in parts.values())  # D
    order, spaces, offset = [], {}, 0
    for name, part in parts.items():
        axis = _stacking_axis(part)

        def stack(values: Array, axis: int = axis) -> Array:
            return np.concatenate(list(values), axis)

        indices = offset + np.arange(prod(part.shape)).reshape(part.shape)
        order.append(stack(np.stack([indices + frame * size for frame in range(k)])).ravel())
        spaces[name] = Box(stack(np.stack([part.low] * k)), stack(np.stack([part.high] * k)), dtype=_dtype(part))
        offset += prod(part.shape)
    stacked = PackedBox(spaces) if isinstance(space, PackedBox) else spaces[""]
    return stacked, np.concatenate(order).astype(np.int64)


def _dtype(space: Box) -> Any:  # noqa: ANN401 - numpy's scalar types
    return space.dtype.type if isinstance(space.dtype, np.dtype) else space.dtype


def _stacking_axis(part: Box) -> int:
    """Return the axis of the channels of a picture, otherwise the last one."""
    return 0 if len(part.shape) == 3 and part.shape[0] <= part.shape[2] else -1
