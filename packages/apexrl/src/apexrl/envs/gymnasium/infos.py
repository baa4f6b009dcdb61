"""Gymnasium's vector infos to the extras of a `VecEnv`."""

from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Space

from apexrl.arrays import Bools, Floats
from apexrl.envs.gymnasium.spaces import to_tensor
from apexrl.envs.vec_env import Extras, Opaque, StepFormatError

Infos = dict[str, Any]


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

    def __init__(self, num_envs: int, device: torch.device | None, privileged_space: Space[Any] | None) -> None:
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
