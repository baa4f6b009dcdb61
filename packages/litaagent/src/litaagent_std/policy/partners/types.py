"""The type of a partner from its signature: a trained network, and a floor under every type.

The types are `l3.heuristic.ARCHETYPES`. The floor keeps every type possible, so that a partner unlike those of the
training is never taken for one type alone.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from ..arrays import Array, Bools, Floats, Floats32, Ints, true_rows
from ..columns import ThreadBatch
from ..l3.heuristic import ARCHETYPES
from ..networks.inference import TypeNetwork
from ..networks.weights import Weights, WeightsError, load_weights
from .signature import Frames, Signatures, signature_digest

__all__ = ["FLOOR", "SHIPPED", "PartnerTypes", "TypeBelief", "shipped_types"]

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

    def of_features(self, features: Floats32) -> Floats:
        """Return the probability of each type from features ``[P, F]``, ``[P, 4]``."""
        probabilities = self._network(features).astype(np.float64)
        return np.asarray((1.0 - len(ARCHETYPES) * self._floor) * probabilities + self._floor)


class TypeBelief:
    """A belief over the archetypes (`l3.heuristic.Belief`) that a network names from partners' signatures.

    Args:
        types: The network.
        n: Number of partners.
        selling: Which side this is.
    """

    by_replies = False

    def __init__(self, types: PartnerTypes, n: int, *, selling: bool) -> None:
        self.signatures = Signatures(n)
        self._types, self._selling = types, selling
        self._posterior = np.full((n, len(ARCHETYPES)), 1.0 / len(ARCHETYPES))
        self._asked: tuple[Ints, Array, Array] | None = None  # the latest round, until its types are asked for

    def weights(self, partner: Ints) -> Floats:
        """Return the network's posterior as of the partners' last round, ``[R, 4]``."""
        if self._asked is not None:
            latest, edge, opens = self._asked
            features = self.signatures.features(latest, selling=self._selling, edge=edge, opens=opens)
            self._posterior[latest] = posterior = self._types.of_features(features)
            self._asked = None
            if partner is latest:
                return posterior
        return self._posterior.take(partner, axis=0)

    def observe_replies(self, partner: Ints, likelihood: Floats, *, accepted: bool) -> None:
        """Do nothing: replies are part of the signature."""

    def observe_offers(self, partner: Ints, large: Bools) -> None:
        """Do nothing: offers are part of the signature."""

    def observe_round(
        self, partner: Ints, threads: ThreadBatch, frames: Frames, edge: Array, pending: Bools, proposals: Ints
    ) -> None:
        """Update the signatures with a round's offers; `weights` names the types of the round's partners, all at once.

        Args:
            partner: The partner of each thread by index, ``[M]``.
            threads: The threads.
            frames: Their sides' days, M rows or one for all.
            edge: Whether the partners are at an end of the chain, ``[M]`` or one for all.
            pending: Whether a proposal of ours is outstanding, ``[M]``.
            proposals: These proposals, ``[M, 3]``.
        """
        number = np.count_nonzero(threads.answers)
        if number:
            late = 2 * (threads.round - threads.opens) > threads.n_rounds
            events = (partner, frames, threads.offer, late, pending, proposals)
            if number < len(partner):
                rows = true_rows(threads.answers)
                some = frames if len(frames.day) == 1 else frames.take(rows)
                events = (partner[rows], some, threads.offer[rows], late[rows], pending[rows], proposals[rows])
            self.signatures.receive(*events)
        self._asked = (partner, edge, threads.opens)


@cache
def shipped_types() -> PartnerTypes:
    """Return the network that comes with the package."""
    return PartnerTypes(load_weights(SHIPPED))
