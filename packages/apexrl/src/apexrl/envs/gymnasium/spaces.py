"""Between Gymnasium's spaces and the tensors of a `VecEnv`: observations in, actions out."""

import math
from typing import Any, Literal

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector.utils import iterate
from torch import Tensor

from apexrl.arrays import Array, Floats32, Ints
from apexrl.envs.vec_env import Opaque, UnsupportedSpacesError
from apexrl.spaces import pack_space

ActionMode = Literal["clip", "scale"]


_MOST_INTEGERS = 1024
"""An integer Box of more values than this per entry is no list of choices."""


class ObservationConverter:
    """Batched Gymnasium observations to arrays of one shape.

    Box observations keep their shape, as float32, or as uint8 if they are (images). A Dict or a Tuple becomes one
    float32 vector that remembers its parts (`apexrl.spaces.PackedBox`). Every other space is flattened by Gymnasium's
    rules (one-hot for Discrete).

    Args:
        single_space: Space of one environment's observation.
        batch_space: The vector env's batched space.

    Attributes:
        space: The space of one converted observation.

    Raises:
        UnsupportedSpacesError: Observations have no fixed number of entries.
    """

    space: spaces.Box

    def __init__(self, single_space: spaces.Space[Any], batch_space: spaces.Space[Any]) -> None:
        if not single_space.is_np_flattenable:
            raise UnsupportedSpacesError(
                f"the environment observes {single_space}",
                "observations need a fixed number of entries",
                "wrap the environment so that it gives a Box, or a Dict of them",
            )
        self._single, self._batch = single_space, batch_space
        self._scale: Floats32 | None = None
        self.is_box = isinstance(single_space, spaces.Box)
        self.dtype: type[np.generic] = np.float32
        if isinstance(single_space, spaces.Dict | spaces.Tuple):
            self.space, self._scale = pack_space(single_space)
            return
        flat = spaces.flatten_space(single_space) if not isinstance(single_space, spaces.Box) else single_space
        assert isinstance(flat, spaces.Box)  # np-flattenable spaces become one
        self.space = flat
        if self.is_box and flat.dtype == np.uint8:
            self.dtype = np.uint8
        elif flat.dtype != np.float32:
            low, high = flat.low.astype(np.float32), flat.high.astype(np.float32)
            self.space = spaces.Box(low, high, flat.shape, np.float32)

    def batch(self, observations: Opaque, *, copy: bool) -> Array:
        """Convert a batch to ``[num_envs, *obs]``; `copy` forces memory of its own."""
        if self.is_box:
            return np.array(observations, dtype=self.dtype, copy=True if copy else None)
        return np.stack([self.single(row) for row in iterate(self._batch, observations)])

    def single(self, observation: Opaque) -> Array:
        """Convert one environment's observation to ``[*obs]``."""
        if self.is_box:
            return np.asarray(observation, self.dtype)
        flat = np.asarray(spaces.flatten(self._single, observation), self.dtype)
        return flat if self._scale is None else flat * self._scale


def make_actions(space: spaces.Space[Any], mode: ActionMode) -> "DiscreteActions | ContinuousActions":
    """Return what converts a learner's actions to those of a space.

    Raises:
        UnsupportedSpacesError: There is nothing that acts in such a space.
        ValueError: The mode is unknown or does not fit the space.
    """
    if mode not in ("clip", "scale"):
        raise ValueError(f"action_mode must be 'clip' or 'scale', got {mode!r}.")
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return ContinuousActions(space, mode)
    if mode == "scale":
        raise ValueError(f"action_mode='scale' is for Box actions of floats, got {space}. Leave action_mode out.")
    return DiscreteActions(space)


class DiscreteActions:
    """int64 tensors, counted from 0, to Discrete, MultiDiscrete, MultiBinary or integer Box actions.

    Raises:
        UnsupportedSpacesError: The space is no list of choices.
    """

    space: spaces.Space[Any]

    def __init__(self, space: spaces.Space[Any]) -> None:
        self._start: Any = None
        if isinstance(space, spaces.Discrete):
            self.space, self._start = spaces.Discrete(int(space.n)), space.start
        elif isinstance(space, spaces.MultiDiscrete):
            self.space, self._start = spaces.MultiDiscrete(space.nvec.ravel()), space.start
        elif isinstance(space, spaces.MultiBinary):
            self.space = spaces.MultiBinary(int(np.prod(space.shape)))
        elif isinstance(space, spaces.Box):
            self.space, self._start = spaces.MultiDiscrete(_counts(space)), space.low.astype(np.int64)
        else:
            raise UnsupportedSpacesError(
                f"the environment acts in {space}",
                "actions must be Discrete, MultiDiscrete, MultiBinary or a Box",
                "wrap the environment with gymnasium.wrappers.TransformAction so that it takes one of them",
            )
        if self._start is not None and not np.any(self._start):
            self._start = None
        self._shape: tuple[int, ...] = space.shape or ()
        self._dtype = space.dtype
        self._row: tuple[int, ...] = self.space.shape or ()

    def __call__(self, actions: Tensor) -> Array:
        """Convert actions ``[num_envs]`` or ``[num_envs, n]`` to those of the vector env."""
        array: Array = actions.numpy(force=True)
        if array.dtype.kind not in "iub" or array.shape[1:] != self._row:
            raise ValueError(
                f"Discrete actions must be integers of shape [num_envs, *{list(self._row)}], got "
                f"{actions.dtype} of shape {list(actions.shape)}. Use an actor such as MLPDiscreteActor."
            )
        if self._row:
            # Bools of their own: an env may keep its action, and the policy's tensor must not follow.
            array = array.reshape(len(array), *self._shape).copy()
        if self._start is not None:
            array = array + self._start
        return array if array.dtype == self._dtype else array.astype(self._dtype)


def _counts(space: spaces.Box) -> Ints:
    """Return how many integers each entry of an integer Box may take."""
    bounded = space.is_bounded("both")
    counts: Ints = space.high.astype(np.int64).ravel() - space.low.astype(np.int64).ravel() + 1
    if not bounded or not ((counts > 0) & (counts <= _MOST_INTEGERS)).all():
        raise UnsupportedSpacesError(
            f"the environment acts in {space}, integers from {space.low.min()} to {space.high.max()}",
            f"each entry of an integer Box is a choice among at most {_MOST_INTEGERS} values",
            "declare a Box of floats and round inside the environment",
        )
    return counts


class ContinuousActions:
    """Float tensors to Box actions, always inside the bounds.

    * ``"clip"``: actions are in the environment's own units and are clipped to its bounds.
    * ``"scale"``: actions are clipped to [−1, 1] and mapped linearly to the (finite) bounds. Better when
      bounds are far from ±1, because a fresh policy explores with σ = 1.

    In both modes an n-dimensional Box is offered as a vector.

    Raises:
        ValueError: If "scale" meets infinite bounds.
    """

    def __init__(self, space: spaces.Box, mode: ActionMode) -> None:
        self._mode = mode
        self._shape, self._dtype = space.shape, space.dtype
        self._low, self._high = space.low.ravel(), space.high.ravel()
        self._is_bounded = bool(np.isfinite(self._low).any() or np.isfinite(self._high).any())
        if mode == "scale" and not (np.isfinite(self._low).all() and np.isfinite(self._high).all()):
            raise ValueError(f"action_mode='scale' needs finite bounds, got {space}. Use action_mode='clip'.")
        low, high = self._low.astype(np.float32), self._high.astype(np.float32)
        if mode == "scale":
            low, high = -np.ones_like(low), np.ones_like(high)
        self.space: spaces.Space[Any] = spaces.Box(low, high, dtype=np.float32)

    def __call__(self, actions: Tensor) -> Array:
        """Convert actions ``[num_envs, n]`` to those of the vector env."""
        array: Array = actions.numpy(force=True)
        if array.ndim != 2 or array.shape[1] != self._low.size or array.dtype.kind != "f":
            raise ValueError(
                f"Continuous actions must be floats of shape [num_envs, {self._low.size}], got "
                f"{actions.dtype} of shape {list(actions.shape)}."
            )
        # The product is finite for finite actions of sane size, and cheaper than looking at each.
        if not math.isfinite(np.vdot(array, array)) and not np.isfinite(array).all():
            rows = np.nonzero(~np.isfinite(array).all(axis=1))[0].tolist()
            raise ValueError(f"Actions of envs {rows} are NaN or infinite: the policy has diverged.")
        if self._mode == "scale":
            array = self._low + (array.clip(-1.0, 1.0) + 1.0) * (0.5 * (self._high - self._low))
        # Always a new array, since an env may keep the action, and always within bounds: scaling may round over.
        array = array.clip(self._low, self._high) if self._is_bounded else array.copy()
        return array.astype(self._dtype, copy=False).reshape(len(array), *self._shape)


def to_tensor(array: Array, device: torch.device | None) -> Tensor:
    """Return a tensor over the array's memory (`device` None: CPU) or a copy of it on the device."""
    tensor = torch.from_numpy(array)
    return tensor if device is None else tensor.to(device)
