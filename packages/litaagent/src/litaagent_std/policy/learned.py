"""Learned layers from weights: a file or folder of ``.npz`` becomes what `Brain` plugs in."""

from __future__ import annotations

from pathlib import Path

from .digest import l1_digest
from .features import features_digest
from .l2.learned import LearnedGoals
from .l3.learned import LearnedDecisions
from .l4.learned import LearnedCoordination
from .layers import LayerSet
from .networks.inference import CoordinatorNetwork, DecisionNetwork, GoalNetwork
from .networks.weights import Weights, WeightsError, read_weights
from .partners.types import PartnerTypes
from .versions import same_digest

__all__ = ["check_made_with", "load_layers"]


def load_layers(path: str | Path) -> LayerSet:
    """Return the learned layers that a weights file or folder holds, ready for `Brain`.

    Raises:
        WeightsError: As `read_weights`; also for weights that were made with other features or another L1, and for an
            L3 without the L2 whose goals it was trained with.
    """
    weights = read_weights(path)
    for kind, content in weights.items():
        if kind != "partner":  # its inputs are signatures, which it checks itself
            check_made_with(content)
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
    types = PartnerTypes(weights["partner"]) if "partner" in weights else None
    return LayerSet(goal, decision, coordination, types)


def check_made_with(weights: Weights) -> None:
    """Make sure that weights fit the present features and the present L1.

    Raises:
        WeightsError: If a digest differs.
    """
    present = {"features_digest": features_digest(), "l1_digest": l1_digest()}
    for name, digest in present.items():
        made = str(weights.meta.get(name))
        if not same_digest(made, digest):
            what = "features" if name == "features_digest" else "another L1"
            raise WeightsError(
                f"weights {weights.source!r} were made with {what} {made[:12]}…, present is {digest[:12]}…; "
                "their inputs would mean something else: train again with this version, or use the version that "
                "made them"
            )
