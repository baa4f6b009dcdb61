"""Between Gymnasium's spaces and the tensors of a `VecEnv`: observations in, actions out."""

import math
from typing import Any, Literal

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector.utils import iterate
from torch import Tensor

from apexrl.arrays import Array
from apexrl.envs.vec_env import Opaque

ActionMode = Literal["clip", "scale"]


class ObservationConverter:
    """Batched Gymnasium observations to arrays of one shape.

    Box observations keep their shape, as float32, or as uint8 if they are (images). Every other space is
    flattened by Gymnasium's rules (one-hot for Discrete, concatenation for Dict and Tuple) to a float32
    vector.

    Args:
        single_space: Space of one environment's observation.
        batch_space: The vector env's batched space.

    Attributes:
        space: The space of one converted observation.
    """

    space: spaces.Box

    def __init__(self, single_space: spaces.Space[Any], batch_space: spaces.Space[Any]) -> None:
        self._single = single_space
        self._batch = batch_space
        self.is_box = isinstance(single_space, spaces.Box)
        flat = single_space if isinstance(single_space, spaces.Box) else spaces.flatten_space(single_space)
        if not isinstance(flat, spaces.Box):
            raise TypeError(
                f"Observations of {single_space} have no fixed size. Wrap the env so that it gives Box observations."
            )
        is_image = self.is_box and flat.dtype == np.uint8
        self.dtype: type[np.generic] = np.uint8 if is_image else np.float32
        self.space = flat
        if not is_image and flat.dtype != np.float32:
            low, high = flat.low.astype(np.float32), flat.high.astype(np.float32)
            self.space = spaces.Box(low, high, flat.shape, np.float32)

    def batch(self, observations: Opaque, *, copy: bool) -> Array:
        """Convert a batch to ``[num_envs, *obs]``; `copy` forces memory of its own."""
        if self.is_box:
            return np.array(observations, dtype=self.dtype, copy=True if copy else None)
        rows = [spaces.flatten(self._single, row) for row in iterate(self._batch, observations)]
        return np.asarray(rows, dtype=self.dtype)

    def single(self, observation: Opaque) -> Array:
        """Convert one environment's observation to ``[*obs]``."""
        return np.asarray(observation if self.is_box else spaces.flatten(self._single, observation), self.dtype)


class DiscreteActions:
    """int64 tensors, counted from 0, to Discrete, MultiDiscrete or MultiBinary actions.

    Raises:
        TypeError: If the space is continuous or has no such form.
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
        else:
            raise TypeError(
                f"GymVecEnv is for discrete actions, got {space}. Use GymVecEnvContinuous for Box action spaces."
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


class ContinuousActions:
    """Float tensors to Box actions, always inside the bounds.

    * ``"clip"``: actions are in the environment's own units and are clipped to its bounds.
    * ``"scale"``: actions are clipped to [−1, 1] and mapped linearly to the (finite) bounds. Better when
      bounds are far from ±1, because a fresh policy explores with σ = 1.

    In both modes an n-dimensional Box is offered as a vector.

    Raises:
        TypeError: If the space is not a Box of floats.
        ValueError: If the mode is unknown, or "scale" meets infinite bounds.
    """

    def __init__(self, space: spaces.Space[Any], mode: ActionMode) -> None:
        if not isinstance(space, spaces.Box) or not np.issubdtype(space.dtype, np.floating):
            raise TypeError(
                f"GymVecEnvContinuous is for Box actions of floats, got {space}. Use GymVecEnv for discrete actions."
            )
        if mode not in ("clip", "scale"):
            raise ValueError(f"action_mode must be 'clip' or 'scale', got {mode!r}.")
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
