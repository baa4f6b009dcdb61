"""Policies as plain numpy arrays: what a snapshot carries to workers, and how it acts.

A net is a tanh network with a Gaussian head: ``mean = W_k tanh(… W_1 x + b_1 …) + b_k``, ``σ = exp(log_std)``. One row
takes some microseconds here, an order of magnitude less than a call into torch. A row is rounded as if it were alone,
so that an action does not depend on the batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any, Final, Self

import numpy as np

from litaagent_std.agents.online.seat import DayRequests, RoundRequests
from litaagent_std.agents.online.steering import DAY_ACTIONS, THREAD_ACTIONS, WEIGHT_ACTIONS, Layer
from litaagent_std.agents.online.views import DAY_VIEW, STATE_VIEW, THREAD_VIEW
from litaagent_std.policy.arrays import Array, Bools, Floats32, Ints, matmul_rows
from litaagent_std.policy.digest import check_l1_digest, l1_digest
from litaagent_std.policy.features import check_digest, features_digest
from litaagent_std.policy.layers import DEFAULT_L3
from litaagent_std.policy.networks.npz import WeightsError, read_npz
from litaagent_std.policy.parameters import LEVELS, Level, Parameters
from litaagent_std.policy.versions import REFERENCE

__all__ = ["INPUTS", "LAYERS", "NAMES", "ActingNet", "PolicySet", "SampledActions"]

LAYERS: Final[tuple[Layer, ...]] = ("l2", "l3", "l4")
INPUTS: Final[Mapping[Layer, int]] = {
    "l2": len(DAY_VIEW),
    "l3": len(THREAD_VIEW),
    "l4": len(THREAD_VIEW) + len(STATE_VIEW),
}
"""Number of inputs of each layer's policy; L4 sees the thread and the state of the whole factory."""
NAMES: Final[Mapping[Layer, tuple[str, ...]]] = {"l2": DAY_ACTIONS, "l3": THREAD_ACTIONS, "l4": WEIGHT_ACTIONS}
"""Names of each layer's outputs, in order."""
FORMAT: Final = 4
"""Version of the file format; rises when arrays or the meaning of an action change."""
_HALF_LOG_2PI: Final = 0.5 * float(np.log(2.0 * np.pi))


def default_base() -> dict[str, Any]:
    """Return the settings of `LitaAgentHRL` that residuals depend on."""
    return {"l3": DEFAULT_L3, "parameters": asdict(Parameters())}


@dataclass(frozen=True, slots=True)
class ActingNet:
    """Policy of one layer.

    Attributes:
        weights: Matrices [in, out], first to last.
        biases: Vectors [out].
        log_std: Logarithm of the exploration's standard deviation [n]; −∞ for an output that is not explored.
    """

    weights: tuple[Floats32, ...]
    biases: tuple[Floats32, ...]
    log_std: Floats32

    @classmethod
    def zeros(cls, layer: Layer, log_std: float = -1.0) -> Self:
        """Return the policy whose mean is always zero: the heuristic agent."""
        shape = (INPUTS[layer], len(NAMES[layer]))
        return cls(
            (np.zeros(shape, np.float32),),
            (np.zeros(shape[1], np.float32),),
            np.full(shape[1], log_std, np.float32),
        )

    def mean(self, x: Floats32) -> Floats32:
        """Return the mean actions ``[*batch, n]`` for inputs ``[*batch, in]``, each row as if it were alone."""
        last = len(self.weights) - 1
        for index, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = matmul_rows(x, weight) + bias  # [*batch, out of this layer]
            if index < last:
                x = np.tanh(x)
        return x

    def sample(self, x: Floats32, noise: Floats32) -> tuple[Floats32, Floats32]:
        """Return actions ``[*batch, n]`` with standard normal noise, and their log-probabilities ``[*batch]``."""
        mean = self.mean(x)
        actions = mean + noise * np.exp(self.log_std)  # [*batch, n]
        # outputs with σ = 0 are constants and have no density
        explored = np.isfinite(self.log_std)
        log_std = self.log_std[explored]
        # [*batch, explored] in the order of memory in which a row is summed as if it were alone
        z = np.ascontiguousarray((actions - mean)[..., explored]) * np.exp(-log_std)
        log_prob = -0.5 * np.square(z).sum(-1) - log_std.sum() - len(log_std) * _HALF_LOG_2PI
        return actions.astype(np.float32), np.asarray(log_prob, np.float32)

    def arrays(self, prefix: str) -> dict[str, Array]:
        """Return all arrays by name."""
        named: dict[str, Array] = {f"{prefix}_log_std": self.log_std}
        for index, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            named |= {f"{prefix}_weight_{index}": weight, f"{prefix}_bias_{index}": bias}
        return named

    @classmethod
    def from_arrays(cls, prefix: str, arrays: Mapping[str, Array]) -> Self:
        """Build a net from what `arrays` returned."""
        count = sum(name.startswith(f"{prefix}_weight_") for name in arrays)
        return cls(
            tuple(np.asarray(arrays[f"{prefix}_weight_{index}"], np.float32) for index in range(count)),
            tuple(np.asarray(arrays[f"{prefix}_bias_{index}"], np.float32) for index in range(count)),
            np.asarray(arrays[f"{prefix}_log_std"], np.float32),
        )


@dataclass(frozen=True, slots=True, eq=False)
class SampledActions:
    """Residual actions of B days, or of M threads, with what a learner needs.

    Attributes:
        residual: What the layers apply: L2's actions ``[B, n]``, or L3's beside L4's ``[M, n]``.
        actions: Actions by layer, ``[rows, n]``.
        log_probs: Their log-probabilities, ``[rows]``.
    """

    residual: Floats32
    actions: dict[Layer, Floats32]
    log_probs: dict[Layer, Floats32]


@dataclass(frozen=True, slots=True)
class PolicySet:
    """Policies of all layers under one version; the residual of a missing layer is zero.

    Attributes:
        nets: Policies by layer.
        version: Number of updates that made them.
        levels: Levels of the chain at which they act; elsewhere the residual is zero.
        base: Settings of the heuristic agent whose decisions they change; default: those of `LitaAgentHRL`.
    """

    nets: Mapping[Layer, ActingNet] = field(default_factory=dict)
    version: int = 0
    levels: tuple[Level, ...] = LEVELS
    base: Mapping[str, Any] = field(default_factory=default_base)

    @property
    def rounds(self) -> bool:
        """Whether a layer acts every round."""
        return "l3" in self.nets or "l4" in self.nets

    @staticmethod
    def inputs(layer: Layer, requests: RoundRequests) -> Floats32:
        """Return the inputs of L3 or L4, ``[M, in]``."""
        if layer == "l3":
            return requests.views
        # [M, t + s] the factory's state beside every thread
        return np.concatenate((requests.views, requests.states[requests.seat]), axis=1)

    def act_days(self, requests: DayRequests) -> Floats32:
        """Return the residuals without exploration; see `SteeringPolicy`."""
        rows = len(requests.seats)
        if "l2" not in self.nets:
            return _zeros("l2", rows)
        return np.where(self._acts(requests.level)[:, None], self.nets["l2"].mean(requests.views), np.float32(0.0))

    def act_rounds(self, requests: RoundRequests) -> Floats32:
        """Return the residuals without exploration; see `SteeringPolicy`."""
        parts = [
            self.nets[layer].mean(self.inputs(layer, requests))
            if layer in self.nets
            else _zeros(layer, len(requests.seat))
            for layer in LAYERS[1:]
        ]
        acts = self._acts(requests.level)[requests.seat]
        return np.where(acts[:, None], np.concatenate(parts, axis=1), np.float32(0.0))

    def _acts(self, level: Ints) -> Bools:
        """Return at which of some levels the policies act."""
        return np.array([name in self.levels for name in LEVELS])[level]

    def sample_days(self, requests: DayRequests, rngs: Sequence[np.random.Generator]) -> SampledActions:
        """Sample actions of days for exploration, each factory's from its own rng."""
        if "l2" not in self.nets:
            return SampledActions(_zeros("l2", len(requests.seats)), {}, {})
        noise = np.stack([rng.standard_normal(len(NAMES["l2"]), dtype=np.float32) for rng in rngs])
        actions, log_probs = self.nets["l2"].sample(requests.views, noise)
        return SampledActions(actions, {"l2": actions}, {"l2": log_probs})

    def sample_rounds(self, requests: RoundRequests, rngs: Sequence[np.random.Generator]) -> SampledActions:
        """Sample actions of threads for exploration, each factory's from its own rng."""
        layers = [layer for layer in LAYERS[1:] if layer in self.nets]
        count = np.bincount(requests.seat, minlength=len(rngs)).tolist()
        # a factory draws for all its threads of one layer, then for those of the next
        drawn = [
            [rng.standard_normal((rows, len(NAMES[layer])), dtype=np.float32) for layer in layers]
            for rng, rows in zip(rngs, count, strict=True)
        ]
        actions: dict[Layer, Floats32] = {}
        log_probs: dict[Layer, Floats32] = {}
        for index, layer in enumerate(layers):
            noise = np.concatenate([parts[index] for parts in drawn])
            actions[layer], log_probs[layer] = self.nets[layer].sample(self.inputs(layer, requests), noise)
        parts = [actions.get(layer, _zeros(layer, len(requests.seat))) for layer in LAYERS[1:]]
        return SampledActions(np.concatenate(parts, axis=1), actions, log_probs)

    def arrays(self, **meta: Any) -> dict[str, Array]:  # noqa: ANN401 - plain values for JSON
        """Return the content of a file of weights: arrays by name, and ``meta``, a JSON text."""
        content = {
            "kind": "online",
            "format": FORMAT,
            "features_digest": features_digest(),
            "l1_digest": l1_digest(),
            "layers": sorted(self.nets),
            "version": self.version,
            "places": self.levels,
            "base": dict(self.base),
        } | meta
        arrays: dict[str, Array] = {"meta": np.array(json.dumps(content, sort_keys=True))}
        for layer, net in self.nets.items():
            arrays |= net.arrays(layer)
        return arrays

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a file of weights.

        Raises:
            FileNotFoundError: If there is no such file.
            WeightsError: If they are damaged, of another kind or format, or made with other features or another L1.
        """
        arrays, meta = read_npz(path)
        if meta.get("kind") != "online" or meta.get("format") != FORMAT:
            raise WeightsError(
                f"{path} holds weights of kind {meta.get('kind')!r}, format {meta.get('format')!r}; "
                f"expected kind 'online', format {FORMAT}: give a file that lita train-online or lita distill "
                "of this version wrote"
            )
        try:
            check_digest(meta["features_digest"], str(path))
            check_l1_digest(meta["l1_digest"], str(path))
            nets = {layer: ActingNet.from_arrays(layer, arrays) for layer in meta["layers"]}
            base = meta.get("base", {name: REFERENCE[name] for name in default_base()})  # older files name none
            return cls(nets, meta["version"], tuple(meta["places"]), base)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise WeightsError(f"{path} is no file of online weights ({error!r}); make it again") from error


def _zeros(layer: Layer, *rows: int) -> Floats32:
    return np.zeros((*rows, len(NAMES[layer])), np.float32)
