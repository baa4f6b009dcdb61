"""Policies as plain arrays: what a snapshot carries to the workers, and how it decides with numpy alone.

A net is a tanh network with a Gaussian on top: ``mean = W_k tanh(… W_1 x + b_1 …) + b_k``, ``σ = exp(log_std)``. Acting
for one row costs some microseconds here, an order less than a call into torch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Final, Self

import numpy as np

from litaagent_std.agents.online.seat import DecisionRequest
from litaagent_std.agents.online.steering import DAY_ACTIONS, THREAD_ACTIONS, WEIGHT_ACTIONS, Layer
from litaagent_std.agents.online.views import DAY_VIEW, STATE_VIEW, THREAD_VIEW
from litaagent_std.policy.arrays import Array, Floats32
from litaagent_std.policy.features import check_digest, features_digest
from litaagent_std.policy.l1.digest import check_l1_digest, l1_digest
from litaagent_std.policy.parameters import LEVELS, Level

__all__ = ["INPUTS", "LAYERS", "NAMES", "ActingNet", "PolicySet", "SampledAction"]


LAYERS: Final[tuple[Layer, ...]] = ("l2", "l3", "l4")
INPUTS: Final[Mapping[Layer, int]] = {
    "l2": len(DAY_VIEW),
    "l3": len(THREAD_VIEW),
    "l4": len(THREAD_VIEW) + len(STATE_VIEW),
}
"""Width of what each layer's policy sees; L4 sees the thread and all of the factory."""
NAMES: Final[Mapping[Layer, tuple[str, ...]]] = {"l2": DAY_ACTIONS, "l3": THREAD_ACTIONS, "l4": WEIGHT_ACTIONS}
"""What each layer's policy puts out."""
FORMAT: Final = 4
"""Rises when arrays or the meaning of a policy's numbers change."""
_HALF_LOG_2PI: Final = 0.5 * float(np.log(2.0 * np.pi))


@dataclass(frozen=True, slots=True)
class ActingNet:
    """One layer's policy.

    Attributes:
        weights: Matrices [in, out], first to last.
        biases: Vectors [out].
        log_std: Logarithm of the exploration's standard deviation [n]; −∞ for a number that is not explored.
    """

    weights: tuple[Floats32, ...]
    biases: tuple[Floats32, ...]
    log_std: Floats32

    @classmethod
    def zeros(cls, layer: Layer, log_std: float = -1.0) -> Self:
        """Return the policy that always puts out zeros: the heuristic agent."""
        shape = (INPUTS[layer], len(NAMES[layer]))
        return cls(
            (np.zeros(shape, np.float32),),
            (np.zeros(shape[1], np.float32),),
            np.full(shape[1], log_std, np.float32),
        )

    def mean(self, x: Floats32) -> Floats32:
        """Means [*batch, n] of inputs [*batch, in]."""
        last = len(self.weights) - 1
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = x @ weight + bias
            if place < last:
                x = np.tanh(x)
        return x

    def sample(self, x: Floats32, luck: np.random.Generator) -> tuple[Floats32, Floats32]:
        """Draws actions [*batch, n] and gives their log-probabilities [*batch]."""
        mean = self.mean(x)
        noise = luck.standard_normal(mean.shape, dtype=np.float32)
        actions = mean + noise * np.exp(self.log_std)
        explored = np.isfinite(self.log_std)
        log_std = self.log_std[explored]
        z = (actions - mean)[..., explored] * np.exp(-log_std)
        log_prob = -0.5 * np.square(z).sum(-1) - log_std.sum() - len(log_std) * _HALF_LOG_2PI
        return actions.astype(np.float32), np.asarray(log_prob, np.float32)

    def arrays(self, prefix: str) -> dict[str, Array]:
        """Its arrays by name."""
        named: dict[str, Array] = {f"{prefix}_log_std": self.log_std}
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            named |= {f"{prefix}_weight_{place}": weight, f"{prefix}_bias_{place}": bias}
        return named

    @classmethod
    def from_arrays(cls, prefix: str, arrays: Mapping[str, Array]) -> Self:
        """Read what `arrays` gave."""
        count = sum(name.startswith(f"{prefix}_weight_") for name in arrays)
        return cls(
            tuple(np.asarray(arrays[f"{prefix}_weight_{place}"], np.float32) for place in range(count)),
            tuple(np.asarray(arrays[f"{prefix}_bias_{place}"], np.float32) for place in range(count)),
            np.asarray(arrays[f"{prefix}_log_std"], np.float32),
        )


@dataclass(frozen=True, slots=True)
class SampledAction:
    """An answer with what is needed to learn from it.

    Attributes:
        numbers: What the seat gets.
        actions: Actions by layer, [n] for L2 and [threads, n] for L3 and L4.
        log_probs: Their log-probabilities, [] and [threads].
    """

    numbers: Floats32
    actions: dict[Layer, Floats32]
    log_probs: dict[Layer, Floats32]


@dataclass(frozen=True, slots=True)
class PolicySet:
    """The policies of all layers under one version; a layer that is missing puts out zeros.

    Attributes:
        nets: Policies by layer.
        version: Updates that they have seen.
        places: Places in the chain that they play at; zeros elsewhere.
    """

    nets: Mapping[Layer, ActingNet] = field(default_factory=dict)
    version: int = 0
    places: tuple[Level, ...] = LEVELS

    @property
    def rounds(self) -> bool:
        """Whether anything is decided per round."""
        return "l3" in self.nets or "l4" in self.nets

    def inputs(self, layer: Layer, question: DecisionRequest) -> Floats32:
        """Return what a layer sees of a question, [in] for L2, [threads, in] for L3 and L4."""
        if layer != "l4":
            return question.view
        state = np.broadcast_to(question.state, (len(question.view), len(question.state)))
        return np.concatenate((question.view, state), axis=1)

    def answer(self, question: DecisionRequest) -> Floats32:
        """Return the deterministic answer: what an agent in play does."""
        nets = self.nets if question.place in self.places else {}
        if question.kind == "day":
            return nets["l2"].mean(question.view) if "l2" in nets else _zeros("l2")
        parts = [
            nets[layer].mean(self.inputs(layer, question)) if layer in nets else _zeros(layer, len(question.partners))
            for layer in LAYERS[1:]
        ]
        return np.concatenate(parts, axis=1)

    def sample(self, question: DecisionRequest, luck: np.random.Generator) -> SampledAction:
        """Return an answer drawn for exploration."""
        layers: tuple[Layer, ...] = ("l2",) if question.kind == "day" else ("l3", "l4")
        actions: dict[Layer, Floats32] = {}
        log_probs: dict[Layer, Floats32] = {}
        parts = []
        for layer in layers:
            if layer in self.nets:
                drawn, log_probs[layer] = self.nets[layer].sample(self.inputs(layer, question), luck)
                actions[layer] = drawn
                parts.append(drawn)
            else:
                parts.append(_zeros(layer, *([len(question.partners)] if question.kind == "round" else [])))
        return SampledAction(np.concatenate(parts, axis=-1), actions, log_probs)

    def arrays(self, **meta: Any) -> dict[str, Array]:  # noqa: ANN401 - plain values for JSON
        """Return what a file of weights holds: arrays by name, and ``meta``, a JSON text."""
        told = {
            "kind": "online",
            "format": FORMAT,
            "features_digest": features_digest(),
            "l1_digest": l1_digest(),
            "layers": sorted(self.nets),
            "version": self.version,
            "places": self.places,
        } | meta
        found: dict[str, Array] = {"meta": np.array(json.dumps(told, sort_keys=True))}
        for layer, net in self.nets.items():
            found |= net.arrays(layer)
        return found

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read weights.

        Raises:
            ValueError: If they are of another kind or format, or were made with other features or another L1.
        """
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(str(arrays.pop("meta", np.array("{}"))))
        if meta.get("kind") != "online" or meta.get("format") != FORMAT:
            raise ValueError(
                f"{path} holds weights of kind {meta.get('kind')!r}, format {meta.get('format')!r}; "
                f"here kind 'online', format {FORMAT} is needed: give a file that lita train-online or lita distill "
                "of this version wrote"
            )
        check_digest(meta["features_digest"], str(path))
        check_l1_digest(meta["l1_digest"], str(path))
        nets = {layer: ActingNet.from_arrays(layer, arrays) for layer in meta["layers"]}
        return cls(nets, meta["version"], tuple(meta["places"]))


def _zeros(layer: Layer, *rows: int) -> Floats32:
    return np.zeros((*rows, len(NAMES[layer])), np.float32)
