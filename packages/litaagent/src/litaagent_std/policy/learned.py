"""Learned layers from weights: a file or folder of ``.npz`` becomes what `Brain` plugs in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from .digest import l1_digest
from .features import features_digest
from .l2.learned import LearnedGoals
from .l3.learned import LearnedDecisions
from .l4.learned import LearnedCoordination
from .layers import LayerSet
from .networks.inference import CoordinatorNetwork
from .networks.linear import decision_network, goal_network
from .networks.threads import RoundFeatures
from .networks.weights import Weights, WeightsError, load_weights, read_weights
from .parameters import LEVELS, Level
from .partners.types import PartnerTypes
from .versions import same_digest

__all__ = ["SHIPPED_GOALS", "check_made_with", "load_layers", "shipped_goals", "trained_levels"]

SHIPPED_GOALS: Final = Path(__file__).parent / "l2" / "middle_prices.npz"
"""Weights of the default agent's L2."""


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
    goal = None
    if "l2" in weights:
        goal = LearnedGoals(goal_network(weights["l2"]), trained_levels(weights["l2"]))
    decision, features = None, RoundFeatures()
    if "l3" in weights:
        if goal is None:
            raise WeightsError(
                f"{weights['l3'].source!r} was trained with the goals of an L2, and none is beside it; give a folder "
                "that holds both"
            )
        decision = LearnedDecisions(decision_network(weights["l3"]), goal, features, trained_levels(weights["l3"]))
    coordination = None
    if "l4" in weights:
        coordination = LearnedCoordination(CoordinatorNetwork(weights["l4"]), features, trained_levels(weights["l4"]))
    types = PartnerTypes(weights["partner"]) if "partner" in weights else None
    base: Mapping[str, Any] = next((content.meta["base"] for content in weights.values() if "base" in content.meta), {})
    return LayerSet(goal, decision, coordination, types, base)


def shipped_goals() -> LearnedGoals:
    """Return an L2 with the weights that come with the package."""
    weights = _shipped_weights()
    return LearnedGoals(goal_network(weights), trained_levels(weights))


@cache
def _shipped_weights() -> Weights:
    weights = load_weights(SHIPPED_GOALS)
    check_made_with(weights)
    return weights


def trained_levels(weights: Weights) -> tuple[Level, ...]:
    """Return the levels of the chain that weights were trained for."""
    return tuple(weights.meta.get("levels", LEVELS))


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
