"""Between Gymnasium and the tensors of a `VecEnv`: observations and infos in, actions out."""

import math
from typing import Any, Literal

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector.utils import iterate
from torch import Tensor

from apexrl.arrays import Array, Bools, Floats, Floats32, Ints
from apexrl.envs.vec_env import Extras, Opaque, StepFormatError, UnsupportedSpacesError
from apexrl.spaces import pack_space

Infos = dict[str, Any]
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


def _rows_with(infos: Infos, key: str, num_envs: int) -> Bools:
    """Return which rows have a key; natively batched envs may leave the mask out when all have it."""
    mask: Bools | None = infos.get(f"_{key}")
    return np.ones(num_envs, np.bool_) if mask is None else np.asarray(mask, np.bool_)


def _one_per_env(name: str, values: Opaque, rows: Bools) -> Floats:
    """Return one number for each of some rows: the mean where an environment gave several."""
    given = np.asarray(values)[rows]
    try:
        if given.dtype == object:  # values of other types than numbers and arrays, such as tensors
            given = np.stack([np.asarray(value, np.float64) for value in given])
        numbers: Floats = given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise StepFormatError(
            f"info['log' or 'reward_components'][{name!r}] holds {values!r}",
            "it must be a number, or an array of numbers, whose mean is taken",
            "log texts and objects from a callback",
        ) from error
    return numbers if numbers.ndim == 1 else numbers.reshape(len(numbers), -1).mean(axis=1)


class InfoReader:
    """Picks what a learner uses out of vector infos.

    Args:
        num_envs: Number of rows.
        device: Device of the tensors; None is the CPU.
        privileged_space: Space of ``info["privileged_observation"]``, or None if the key is not read.
    """

    def __init__(self, num_envs: int, device: torch.device | None, privileged_space: spaces.Space[Any] | None) -> None:
        self._num_envs = num_envs
        self._device = device
        self._privileged = privileged_space

    def read_current(self, infos: Infos, extras: Extras) -> None:
        """Add what belongs to the returned observation: action mask and privileged observation."""
        if "action_mask" in infos:
            given = np.asarray(infos["action_mask"]).astype(np.bool_)
            given[~_rows_with(infos, "action_mask", self._num_envs)] = True
            extras["action_mask"] = to_tensor(given, self._device)
        if self._privileged is not None:
            every = np.ones(self._num_envs, np.bool_)
            extras["privileged_observation"] = self._privileged_rows(infos, every)

    def read_step(self, infos: Infos, final_infos: Infos, dones: Bools, extras: Extras) -> None:
        """Add what belongs to the step: reward components, log, success, and the final privileged observation.

        Args:
            infos: Infos of the rows whose episode continues.
            final_infos: Infos of the last step of the rows that are done.
            dones: bool ``[num_envs]``.
            extras: Is extended.
        """
        if "reward_components" in infos or "reward_components" in final_infos:
            going, final = infos.get("reward_components", {}), final_infos.get("reward_components", {})
            parts = self._merge(going, final, dones)
            extras["reward_components"] = {
                name: to_tensor(values.astype(np.float32), self._device) for name, (values, _) in parts.items()
            }
        if "log" in infos or "log" in final_infos:
            parts = self._merge(infos.get("log", {}), final_infos.get("log", {}), dones)
            extras["log"] = {name: float(values[rows].mean()) for name, (values, rows) in parts.items() if rows.any()}
        if "is_success" in final_infos and dones.any():
            rows = _rows_with(final_infos, "is_success", self._num_envs) & dones
            success = np.full(self._num_envs, np.nan, np.float32)
            success[rows] = np.asarray(final_infos["is_success"])[rows].astype(np.float32)
            extras["success"] = to_tensor(success, self._device)
        if self._privileged is not None and dones.any():
            extras["final_privileged_observation"] = self._privileged_rows(final_infos, dones)

    def _merge(self, going: Infos, final: Infos, dones: Bools) -> dict[str, tuple[Floats, Bools]]:
        """Return values and the rows that have them: running rows from `going`, finished ones from `final`."""
        merged: dict[str, tuple[Floats, Bools]] = {}
        for source, wanted in ((going, ~dones), (final, dones)):
            for name in source:
                if name.startswith("_"):
                    continue
                values, rows = merged.setdefault(name, (np.zeros(self._num_envs), np.zeros(self._num_envs, np.bool_)))
                here = _rows_with(source, name, self._num_envs) & wanted
                if here.any():
                    values[here] = _one_per_env(name, source[name], here)
                    rows |= here
        return merged

    def _privileged_rows(self, infos: Infos, needed: Bools) -> torch.Tensor:
        key = "privileged_observation"
        given = _rows_with(infos, key, self._num_envs) if key in infos else np.zeros_like(needed)
        missing = needed & ~given
        if missing.any():
            raise ValueError(
                f"privileged_observation_space is set, but envs {np.nonzero(missing)[0].tolist()} gave no "
                "info['privileged_observation']. Every reset and step must give it."
            )
        return to_tensor(np.array(infos[key], dtype=np.float32), self._device)


def overlay(infos: Infos, newer: Infos, rows: Bools) -> Infos:
    """Replace some rows of infos by newer ones (after a partial reset)."""
    result = dict(infos)
    for key, value in newer.items():
        old = infos.get(key)
        if isinstance(value, np.ndarray) and isinstance(old, np.ndarray) and old.shape == value.shape:
            merged = old.copy()
            merged[rows] = value[rows]
            result[key] = merged
        else:
            result[key] = value
    return result
