"""The type of a partner from its signature: a trained network, and a floor under every type.

The types are `l3.heuristic.ARCHETYPES`. The floor keeps every type possible, so that a partner unlike those of the
training is never taken for one type alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from ..arrays import Floats, Floats32
from ..l3.heuristic import ARCHETYPES
from ..networks.inference import TypeNetwork
from ..networks.weights import Weights, WeightsError, load_weights
from .signature import FEATURES, Signature, signature_digest

__all__ = ["FLOOR", "SHIPPED", "PartnerTypes", "shipped_types"]

FLOOR: Final = 0.02
"""Least probability of each type."""
SHIPPED: Final = Path(__file__).parent / "partner_types.npz"
"""Weights that come with the package."""


class PartnerTypes:
    """Posteriors over the types of partners.

    Args:
        weights: Trained weights, of kind ``partner``.
        floor: Least probability of each type.

    Raises:
        WeightsError: If the weights are of another kind, of other types, or were trained on other features.
    """

    def __init__(self, weights: Weights, floor: float = FLOOR) -> None:
        self._network = TypeNetwork(weights)
        self._floor = floor
        made = (weights.meta.get("signature_digest"), tuple(weights.meta.get("types", ())))
        if made != (signature_digest(), ARCHETYPES):
            raise WeightsError(
                f"weights {weights.source!r} were made with another signature or other types; train again with this "
                "version (lita train --phases partner), or use the version that made them"
            )

    def posterior(self, signatures: Sequence[Signature], *, selling: bool, edge: bool, opens: bool) -> Floats:
        """Return the probability of each type for each partner, ``[P, 4]``.

        Args:
            signatures: The partners of one side.
            selling: Whether we sell to them.
            edge: Whether they are at an end of the chain.
            opens: Whether we open the threads.
        """
        rows = [signature.features(selling=selling, edge=edge, opens=opens) for signature in signatures]
        return self.of_features(np.array(rows, np.float32).reshape(len(rows), len(FEATURES)))

    def of_features(self, features: Floats32) -> Floats:
        """Return the probability of each type from features ``[P, F]``, ``[P, 4]``."""
        probabilities = self._network(features).astype(np.float64)
        return np.asarray((1.0 - len(ARCHETYPES) * self._floor) * probabilities + self._floor)


@cache
def shipped_types() -> PartnerTypes:
    """Return the network that comes with the package."""
    return PartnerTypes(load_weights(SHIPPED))
