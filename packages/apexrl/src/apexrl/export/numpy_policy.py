"""Running an exported MLP policy: this module needs numpy only.

`apexrl.export.policy.export_npz` writes the file; `NumpyPolicy` reads it and decides.
"""

from collections.abc import Callable
from os import PathLike
from typing import Self

import numpy as np

from apexrl.arrays import Array, Bools, Floats32
from apexrl.runs.reading import read_npz, reading

FORMAT_VERSION = 1


def _gelu(x: Floats32) -> Floats32:
    """Compute x·Φ(x), with erf by the Abramowitz & Stegun 7.1.26 polynomial (error below 1.5e-7)."""
    z = np.abs(x) / np.sqrt(2.0)
    t = 1.0 / (1.0 + 0.3275911 * z)
    poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = np.sign(x) * (1.0 - poly * np.exp(-z * z))
    return np.asarray(0.5 * x * (1.0 + erf), np.float32)


def _sigmoid(x: Floats32) -> Floats32:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)), np.float32)


ACTIVATIONS: dict[str, Callable[[Floats32], Floats32]] = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0.0),
    "elu": lambda x: np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0))),
    "gelu": _gelu,
    "silu": lambda x: x * _sigmoid(x),
    "leaky_relu": lambda x: np.where(x > 0.0, x, 0.01 * x),
    "softplus": lambda x: np.logaddexp(x, np.zeros_like(x)),
    "sigmoid": _sigmoid,
    "identity": lambda x: x,
}


class NumpyPolicy:
    """A plain MLP policy with its observation normaliser.

    Args:
        arrays: The content of a file that `apexrl.export.policy.export_npz` wrote.

    Raises:
        ValueError: If the content has another format.
    """

    def __init__(self, arrays: dict[str, Array]) -> None:
        version = int(arrays.get("format_version", np.array(-1)))
        if version != FORMAT_VERSION:
            raise ValueError(f"The policy has format {version}, this reader knows {FORMAT_VERSION}. Export it again.")
        self._layers = [str(name) for name in arrays["layers"]]
        self._arrays = arrays
        self._head = str(arrays["head"])
        self._obs_dims = int(arrays["obs_dims"])
        if self._head == "multi_categorical":
            self._splits = np.cumsum(arrays["nvec"])[:-1]

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a file.

        Raises:
            ReadFailedError: If it is damaged, too large, or holds pickled objects.
        """
        arrays = read_npz(path)
        with reading(path, expected="it must be a policy that export_npz wrote", hint="export it again"):
            return cls(arrays)

    def outputs(self, obs: Array) -> Floats32:
        """Compute means or logits ``[*batch, n]`` for observations ``[*batch, *obs]``."""
        x = np.asarray(obs, np.float32)
        a = self._arrays
        if "normalizer_shift" in a:
            x = np.clip(
                (x - a["normalizer_shift"]) * a["normalizer_scale"], -a["normalizer_clip"], a["normalizer_clip"]
            )
        x = x.reshape(*x.shape[: x.ndim - self._obs_dims], -1)
        for i, name in enumerate(self._layers):
            if name == "linear":
                x = x @ a[f"weight_{i}"] + a[f"bias_{i}"]
            elif name == "layer_norm":
                centered = x - x.mean(-1, keepdims=True)
                deviation = np.sqrt(np.square(centered).mean(-1, keepdims=True) + a[f"epsilon_{i}"])
                x = centered / deviation * a[f"weight_{i}"] + a[f"bias_{i}"]
            else:
                x = ACTIVATIONS[name](x)
        return np.asarray(x, np.float32)

    def __call__(self, obs: Array, action_mask: Bools | None = None) -> Array:
        """Choose deterministic actions ``[*batch, *action]``.

        Args:
            obs: ``[*batch, *obs]``.
            action_mask: bool ``[*batch, n]``, True = legal; for discrete actions only.

        Raises:
            ValueError: If a mask comes with continuous actions, or forbids everything.
        """
        out = self.outputs(obs)
        if self._head == "gaussian":
            if action_mask is not None:
                raise ValueError("action_mask was given for a continuous policy; masks exist for discrete actions.")
            if "half_range" in self._arrays:
                out = self._arrays["center"] + self._arrays["half_range"] * np.tanh(out)
            return out
        if action_mask is not None:
            out = np.where(action_mask, out, -np.inf)
        parts = [out] if self._head == "categorical" else np.split(out, self._splits, axis=-1)
        if any((part == -np.inf).all(-1).any() for part in parts):
            raise ValueError("The action mask forbids every action in some row; at least one must be legal.")
        chosen = [part.argmax(-1) for part in parts]
        return chosen[0] if self._head == "categorical" else np.stack(chosen, axis=-1)
