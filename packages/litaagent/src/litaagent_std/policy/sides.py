"""One side, buying or selling, of n factories: what is outstanding, risked and believed of partners during a world."""

from __future__ import annotations

import numpy as np

from .arrays import Array, Bools, Floats, Ints, true_rows
from .columns import SELL, ObservationBatch
from .l1.baseline import progress
from .l3.heuristic import Acceptance, Belief, Clock, Market, Mixture, Offers, archetypes
from .l4.heuristic import Partners
from .layers import SituationBatch
from .memory import LEAVING_PRIOR, LEAVING_RATE, forecast_bankruptcy
from .parameters import ParameterColumns
from .partners.signature import LEFT_BEFORE, Frames
from .partners.types import PartnerTypes, TypeBelief, frames_of

__all__ = ["Side"]


class Side:
    """The buying or the selling side of n factories with up to P partners each.

    A partner is indexed by ``factory · P + partner``.

    Args:
        obs: Observations of the first day, n rows.
        parameters: n rows.
        side: `BUY` or `SELL`.
        model: Whether there is a model of partners.
        types: The network that names types of partners; default: the belief of the acceptance model.

    Attributes:
        selling: Which side this is.
        market: The day's markets, n rows.
        acceptance: L3's probabilities; None if there is no model.
        budgets: Expected cost of excess that may still be risked today, ``[n, H + 1]``.
        pending: Whether a proposal of ours is not answered yet, ``[n, P]``.
        outstanding: These proposals, ``[n, P, 3]``.
    """

    def __init__(
        self,
        obs: ObservationBatch,
        parameters: ParameterColumns,
        side: int,
        *,
        model: bool,
        types: PartnerTypes | None = None,
    ) -> None:
        n, leads = obs.calendar.sold.shape
        self.width = width = max(1, obs.partners(side).there.shape[1])
        self.side, self.selling = side, side == SELL
        self._parameters = parameters
        self.market = Market.of(obs, side).take(np.arange(n))  # a copy, whose rows change by the day
        self.budgets = np.zeros((n, leads))
        self.pending, self.outstanding = np.zeros((n, width), np.bool_), np.zeros((n, width, 3), np.int64)
        self._proposed_at = np.zeros((n, width))
        self._bankrupt_on = np.full((n, width), np.inf)
        self._leaving = np.full((n, width), LEAVING_PRIOR)
        self._typed = TypeBelief(types, n * width, selling=self.selling) if types is not None else None
        self._frames: list[Frames | None] = [None] * n  # of each factory's latest round
        self.acceptance: Acceptance | None = None
        if model:
            belief: Belief = self._typed or Mixture(np.repeat(parameters.learn_rate, width))
            most = int(np.maximum(obs.n_lines, obs.agenda[:, side, 0]).max())
            self.acceptance = Acceptance(belief, n, width, leads, most, selling=self.selling)

    def start_day(self, obs: ObservationBatch, seats: Array | slice) -> None:
        """Start a day of some factories, a row of `obs` for each."""
        self.market.put(seats, Market.of(obs, self.side))
        scale = obs.n_lines * obs.price[:, self.side]
        self.budgets[seats] = (self._parameters.risk_budget[seats] * scale)[:, None]
        self.pending[seats] = False
        partners = obs.partners(self.side)
        self._bankrupt_on[seats, : partners.there.shape[1]] = forecast_bankruptcy(partners)
        if self.acceptance is not None:
            self.acceptance.start_day(seats)

    def partners(self, situation: SituationBatch) -> Partners:
        """Return what is known of the partners of a round's threads."""
        threads = situation.threads
        seat, partner = situation.seats[threads.seat], threads.partner
        patience = np.ones(len(threads))
        if self.selling:
            # A partner that often leaves early may leave in any round: while capacity goes unsold, its offers are
            # accepted at once.
            p, full = situation.day.parameters, situation.day.memory.full_rate
            hurry = p.impatience[threads.seat] * self._leaving[seat, partner] * (1.0 - full[threads.seat])
            patience = np.maximum(0.0, 1.0 - hurry)
        return Partners(seat * self.width + partner, self._bankrupt_on[seat, partner], patience)

    def on_round(self, situation: SituationBatch, index: Ints) -> None:
        """Update beliefs from a round: partners who made a counter-offer have rejected our proposal.

        Args:
            situation: The round.
            index: The partner of each of its threads.
        """
        threads = situation.threads
        if self._typed is not None:
            frames = frames_of(situation.day.obs, threads, selling=self.selling)
            edge = self.market.edge[situation.seats[threads.seat]]
            self._typed.observe_round(index, threads, frames, edge)
        seat, partner = situation.seats[threads.seat], threads.partner
        answered = true_rows(self.pending[seat, partner])
        if len(answered):
            self._observe(seat[answered], partner[answered], accepted=False)
            self.pending[seat[answered], partner[answered]] = False
        if self.acceptance is not None and self.acceptance.belief.by_replies:
            rows = true_rows(threads.answers)
            if len(rows):
                large = threads.offer[rows, 0] > self.market.n_lines[seat[rows]]
                self.acceptance.belief.observe_offers(index[rows], large)

    def on_agreements(self, seat: Ints, partner: Ints, offer: Ints) -> None:
        """Update beliefs from agreements; only our own proposals show what a partner accepts.

        Args:
            seat: The factories, ``[R]``.
            partner: Their partners, each once, ``[R]``.
            offer: What was agreed, ``[R, 3]``.
        """
        ours = true_rows(self.pending[seat, partner] & (self.outstanding[seat, partner] == offer).all(1))
        if len(ours):
            self._observe(seat[ours], partner[ours], accepted=True)
        self.pending[seat, partner] = False
        if self._typed is not None:
            self._typed.signatures.agree(seat * self.width + partner, offer)

    def on_failures(self, seat: Ints, partner: Ints) -> None:
        """Update beliefs from threads that ended without agreement while our proposal was outstanding.

        Args:
            seat: The factories, ``[R]``.
            partner: Their partners, each once, ``[R]``.
        """
        rows = true_rows(self.pending[seat, partner])
        if not len(rows):
            return
        seat, partner = seat[rows], partner[rows]
        self._observe(seat, partner, accepted=False)
        self.pending[seat, partner] = False
        left = (self._proposed_at[seat, partner] < LEFT_BEFORE).astype(np.float64)
        self._leaving[seat, partner] += LEAVING_RATE * (left - self._leaving[seat, partner])
        if self._typed is not None:
            self._typed.signatures.fail(seat * self.width + partner)

    def commit(self, situation: SituationBatch, proposes: Bools, offer: Ints) -> None:
        """Remember our proposals that are outstanding now; a partner's own offer back is none.

        Args:
            situation: The round.
            proposes: Threads with a proposal, ``[M]``.
            offer: The proposals, ``[M, 3]``.
        """
        threads = situation.threads
        same = threads.answers & (offer == threads.offer).all(1)
        rows = true_rows(proposes & ~same)
        if not len(rows):
            return
        seat, partner = situation.seats[threads.seat[rows]], threads.partner[rows]
        time = progress(threads, proposing=True)[rows]
        self.pending[seat, partner] = True
        self.outstanding[seat, partner], self._proposed_at[seat, partner] = offer[rows], time
        if self._typed is not None:
            frames = frames_of(situation.day.obs, threads, selling=self.selling).take(rows)
            self._typed.signatures.propose(seat * self.width + partner, frames, offer[rows], time)

    def _observe(self, seat: Ints, partner: Ints, *, accepted: bool) -> None:
        """Take the partners' answers to our outstanding proposals."""
        if self.acceptance is None:
            return
        offer, market = self.outstanding[seat, partner], self.market.take(seat)
        offers = Offers(market, offer[:, 1] - market.day, offer[:, 0], offer[:, 2])
        self.acceptance.observe(
            seat * self.width + partner, offers, self._proposed_at[seat, partner], accepted=accepted
        )

    def chance(
        self, situation: SituationBatch, index: Ints, row: Ints, lead: Ints, quantity: Ints, price: Ints
    ) -> Floats:
        """Return the probability that partners take offers, ``[R]``; NaN if it is not known.

        Args:
            situation: The round.
            index: The partner of each of its threads.
            row: Thread of each offer, ``[R]``.
            lead: Its days until delivery.
            quantity: Its units.
            price: Its unit price.
        """
        out = np.full(len(row), np.nan)
        if self.acceptance is None:
            return out
        market = self.market.take(situation.seats[situation.threads.seat[row]])
        known = true_rows(Offers(market, lead, quantity, price).known())
        if not len(known):
            return out
        row = row[known]
        offers = Offers(market.take(known), lead[known], quantity[known], price[known])
        clock = Clock.of(progress(situation.threads, proposing=True)).take(row)
        table = archetypes(offers, clock, selling=self.selling)
        weights = self.acceptance.belief.weights(index)[row]
        out[known] = self.acceptance.probabilities(index[row], weights, table, offers)
        return out
