"""Learned layers from weights: a file or folder of ``.npz`` becomes what `Brain` plugs in."""

from __future__ import annotations

from pathlib import Path

from .l2.learned import LearnedGoals
from .l3.learned import LearnedDecisions
from .l4.learned import LearnedCoordination
from .layers import LayerSet
from .networks.inference import CoordinatorNetwork, DecisionNetwork, GoalNetwork
from .networks.weights import WeightsError, read_weights

__all__ = ["load_layers"]


def load_layers(path: str | Path) -> LayerSet:
    """Return the learned layers that a weights file or folder holds, ready for `Brain`.

    Raises:
        WeightsError: As `read_weights`; also for an L3 without the L2 whose goals it was trained with.
    """
    weights = read_weights(path)
    goal = LearnedGoals(GoalNetwork(weights["l2"])) if "l2" in weights else None
    decision = None
    if "l3" in weights:
        if goal is None:
            raise WeightsError(
                f"{weights['l3'].source!r} was trained with the goals of an L2, and none is beside it; give a folder "
                "that holds both"
            )
        decision = LearnedDecisions(DecisionNetwork(weights["l3"]), goal)
    coordination = LearnedCoordination(CoordinatorNetwork(weights["l4"])) if "l4" in weights else None
    return LayerSet(goal, decision, coordination)
