"""The hand-written belief about a partner (`l3.heuristic.PartnerModel`) over recorded events, for comparison.

It follows `policy.side.Side`: refusals and acceptances of our proposals, and the sizes of the partner's offers.
"""

from __future__ import annotations

import numpy as np

from litaagent_std.policy.arrays import Floats
from litaagent_std.policy.l3.heuristic import OfferGrid, PartnerModel, archetypes
from litaagent_std.policy.observation import Agenda, Offer
from litaagent_std.policy.parameters import Parameters
from litaagent_std.policy.partners.signature import Frame

__all__ = ["Mixture"]


class Mixture:
    """The belief about one partner on one side, with the events that `Side` gives it."""

    def __init__(self) -> None:
        self._model = PartnerModel(Parameters().learn_rate)

    def start(self, frame: Frame, *, edge: bool) -> None:
        """Start a thread: what was refused on an earlier day counts no more."""
        self._frame, self._edge = frame, edge
        self._pending: tuple[Offer, float] | None = None
        self._refused: list[Offer] = []

    @property
    def weights(self) -> Floats:
        """Weights of the archetypes, ``[4]``."""
        return self._model.weights

    def receive(self, offer: Offer) -> None:
        """Take an offer of the partner, which refuses our outstanding proposal."""
        self._answer(accepted=False)
        self._model.observe_offer(large=offer.quantity > self._frame.n_lines)

    def propose(self, offer: Offer, time: float) -> None:
        """Take our own proposal."""
        self._pending = (offer, time)

    def end(self, agreement: Offer | None) -> None:
        """Take the end of the thread."""
        if agreement is None:
            self._answer(accepted=False)
        elif self._pending is not None and self._pending[0] == agreement:
            self._answer(accepted=True)

    def _answer(self, *, accepted: bool) -> None:
        """Update the belief with the partner's answer to our proposal, unless it refused one as good before."""
        if self._pending is None:
            return
        (offer, time), self._pending = self._pending, None
        frame, day = self._frame, self._frame.day
        if offer.quantity > frame.n_lines:
            return  # outside of the grid that `Side` has
        agenda = Agenda(1, frame.n_lines, day, day + frame.horizon, frame.price_min, frame.price_max)
        grid = OfferGrid.of_offers(agenda, [offer], day, frame.n_lines, selling=frame.selling)
        if not any(grid.no_better(worse, day, selling=frame.selling)[0] for worse in self._refused):
            likelihood = archetypes(grid, time, selling=frame.selling, edge=self._edge)[:, 0]
            self._model.observe_reply(np.asarray(likelihood), accepted=accepted)
        if not accepted:
            self._refused.append(offer)
