"""The networks of the layers under one version: what a snapshot carries to workers, plays and writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from apexrl.runs.atomic import atomic_file, ensure_folder
from litaagent_std.hrl_xf.online.config import Layer
from litaagent_std.policy.l2.learned import LearnedGoals
from litaagent_std.policy.l3.learned import LearnedDecisions
from litaagent_std.policy.l4.learned import LearnedCoordination
from litaagent_std.policy.layers import LayerSet
from litaagent_std.policy.learned import check_made_with
from litaagent_std.policy.networks.exploration import Exploration
from litaagent_std.policy.networks.inference import CoordinatorNetwork, DecisionNetwork, GoalNetwork
from litaagent_std.policy.networks.linear import LINEAR
from litaagent_std.policy.networks.threads import RoundFeatures
from litaagent_std.policy.networks.weights import Weights, WeightsError, read_weights
from litaagent_std.policy.parameters import LEVELS, Level

__all__ = ["LAYERS", "Hierarchy"]

LAYERS: Final[tuple[Layer, ...]] = ("l2", "l3", "l4")


@dataclass(frozen=True, slots=True, eq=False)
class Hierarchy:
    """Networks of the layers.

    Attributes:
        nets: Weights by layer; L3 needs L2. A missing layer is the heuristic.
        version: Number of updates that made them.
        levels: Levels of the chain at which they act; at the others the heuristic agent plays.
        learning: Layers that explore.
    """

    nets: Mapping[Layer, Weights] = field(default_factory=dict)
    version: int = 0
    levels: tuple[Level, ...] = LEVELS
    learning: tuple[Layer, ...] = ()

    @property
    def rounds(self) -> bool:
        """Whether a layer acts every round."""
        return "l3" in self.nets or "l4" in self.nets

    @property
    def base(self) -> dict[str, Any]:
        """Settings of the heuristic agent that residuals are added to; empty if the weights name none."""
        return next((dict(weights.meta["base"]) for weights in self.nets.values() if "base" in weights.meta), {})

    def layers(self, exploration: Exploration | None = None) -> LayerSet:
        """Return the layers to plug into a brain; with exploration, those that learn sample."""
        if not self.nets:
            return LayerSet()
        explore = {layer: exploration if layer in self.learning else None for layer in LAYERS}
        features = RoundFeatures()
        goal = LearnedGoals(GoalNetwork(self.nets["l2"]), self.levels, explore["l2"])
        decision = coordination = None
        if "l3" in self.nets:
            network = DecisionNetwork(self.nets["l3"])
            decision = LearnedDecisions(network, goal, features, self.levels, explore["l3"])
        if "l4" in self.nets:
            weigher = CoordinatorNetwork(self.nets["l4"])
            coordination = LearnedCoordination(weigher, features, self.levels, explore["l4"])
        return LayerSet(goal, decision, coordination)

    def save(self, folder: Path, **meta: Any) -> Path:  # noqa: ANN401 - plain values for JSON
        """Write a file for each layer into a folder, and return it; ``meta`` is stored beside the arrays."""
        ensure_folder(folder)
        for layer, weights in self.nets.items():
            full = {**weights.meta, **meta, "levels": list(self.levels), "version": self.version}
            arrays: dict[str, Any] = dict(weights.arrays)
            with atomic_file(folder / f"{layer}.npz") as file:
                np.savez(file, meta=np.array(json.dumps(full, sort_keys=True)), **arrays)
        return folder

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a folder of weights, or the folder of a run.

        Raises:
            WeightsError: If they hold no L2, or were made with other features or another L1.
        """
        found = read_weights(path)
        nets: dict[Layer, Weights] = {layer: found[layer] for layer in LAYERS if layer in found}
        for weights in nets.values():
            check_made_with(weights)
            if weights.meta["sizes"].get("mode") == LINEAR:
                raise WeightsError(
                    f"{weights.source!r} is a linear model, which does not explore; start from networks that lita "
                    "train made"
                )
        if "l2" not in nets:
            raise WeightsError(f"{str(path)!r} holds no L2, which the other layers need; train phase l2 too")
        first = next(iter(nets.values())).meta
        return cls(nets, int(first.get("version", 0)), tuple(first.get("levels", LEVELS)))
