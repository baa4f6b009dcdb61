"""One side, buying or selling, of n factories: what is outstanding, risked and believed of partners during a world."""

from __future__ import annotations

import numpy as np

from ..arrays import Array, Bools, Floats, Ints, every_term, true_rows
from ..columns import SELL, ObservationBatch
from ..l1.baseline import curve, start_price
from ..l3.grid import OfferGrid
from ..l3.heuristic import Acceptance, Belief, Market, Mixture, Offers, archetypes
from ..l3.rounds import RoundTable
from ..l4.heuristic import excess_cost
from ..l4.view import SideGoals, SideView
from ..layers import SituationBatch
from ..memory import LEAVING_PRIOR, LEAVING_RATE, forecast_bankruptcy
from ..parameters import ParameterColumns
from ..partners.signature import LEFT_BEFORE, Frames
from ..partners.types import PartnerTypes, TypeBelief

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
        self.market = Market.of(obs, side)
        self._rounds = RoundTable(parameters, selling=self.selling)
        self._start, self._cost = np.zeros(n), np.zeros(n)
        self.budgets = np.zeros((n, leads))
        # by partner: whether a proposal of ours is not answered yet [n · P], these proposals [n · P, 3]
        self._pending, self._outstanding = np.zeros(n * width, np.bool_), np.zeros((n * width, 3), np.int64)
        self._proposed_at, self._leaving = np.zeros(n * width), np.full(n * width, LEAVING_PRIOR)
        self._last_day = np.full((n, width), np.inf)
        self._typed = TypeBelief(types, n * width, selling=self.selling) if types is not None else None
        self._frames = self._frames_of(obs)
        self.acceptance: Acceptance | None = None
        self._wanted: SideGoals | None = None  # of the latest goals
        most = int(np.maximum(obs.n_lines, obs.agenda[:, side, 0]).max())
        self._grid = OfferGrid(n, leads, most, selling=self.selling)
        if model:
            belief: Belief = self._typed or Mixture(np.repeat(parameters.learn_rate, width))
            self.acceptance = Acceptance(belief, n, width, leads, most, selling=self.selling)

    @property
    def pending(self) -> Bools:
        """Whether a proposal of ours is not answered yet, ``[n, P]``; changes with the side."""
        return self._pending.reshape(-1, self.width)

    @property
    def outstanding(self) -> Ints:
        """These proposals, ``[n, P, 3]``; they change with the side."""
        return self._outstanding.reshape(-1, self.width, 3)

    def start_day(self, obs: ObservationBatch, seats: Array | slice) -> None:
        """Start a day of some factories, a row of `obs` for each."""
        if not np.count_nonzero(obs.trades[:, self.side]):  # at an end of the chain: nobody to trade with
            return
        self.market = self.market.with_rows(seats, Market.of(obs, self.side))
        self._frames = self._frames.with_rows(seats, self._frames_of(obs))
        p = self._parameters if isinstance(seats, slice) else self._parameters.take(seats)
        self._start[seats] = start_price(self.selling, obs.agenda[:, self.side], p)
        self._cost[seats] = excess_cost(obs, 0.0, selling=self.selling)
        scale = obs.n_lines * obs.price[:, self.side]
        self.budgets[seats] = (p.risk_budget * scale)[:, None]
        self.pending[seats] = False
        if self._typed is not None:
            every = np.arange(len(self._pending)).reshape(-1, self.width)
            self._typed.signatures.start_day(every[seats].reshape(-1))
        partners = obs.partners(self.side)
        last = forecast_bankruptcy(partners) - p.bankruptcy_days[:, None]
        self._last_day[seats, : partners.there.shape[1]] = last
        if self.acceptance is not None:
            self.acceptance.start_day(seats)
            self._grid.start_day(self.market)

    def _frames_of(self, obs: ObservationBatch) -> Frames:
        agenda, selling = obs.agenda[:, self.side], np.full(len(obs), self.selling)
        return Frames.of(obs.day, obs.horizon, obs.n_lines, agenda[:, 4], agenda[:, 5], selling)

    def _frames_at(self, index: Ints) -> Frames:
        """Return the frames of partners by index; one for all of a single factory."""
        return self._frames if len(self._start) == 1 else self._frames.take(index // self.width)

    def view(self, situation: SituationBatch) -> SideView:
        """Return what the side knows of a round."""
        threads, seats = situation.threads, situation.seats
        whole = len(seats) == len(self._start)
        seat = threads.seat if whole else seats[threads.seat]
        partner = seat * self.width + threads.partner
        if not self.selling:
            patience = np.ones(len(threads))
        else:
            # A partner that often leaves early may leave in any round: while capacity goes unsold, its offers are
            # accepted at once.
            p, full = situation.day.parameters, situation.day.memory.full_rate
            hurry = p.impatience[threads.seat] * self._leaving[partner] * (1.0 - full[threads.seat])
            patience = np.maximum(0.0, 1.0 - hurry)
        market, start = (self.market, self._start) if whole else (self.market.take(seats), self._start[seats])
        if self._wanted is None or self._wanted.goals is not situation.goals:
            exponents = curve(self.selling, situation.day.parameters)
            self._wanted = SideGoals.of(situation, market, start, exponents, self._grid.shape)
        return SideView(
            partner,
            self._last_day.reshape(-1)[partner],
            patience,
            self._rounds.rounds(seat, threads),
            market,
            self._cost if whole else self._cost[seats],
            start,
            self._wanted,
            self._grid,
            self.acceptance,
        )

    def on_round(self, situation: SituationBatch, index: Ints) -> None:
        """Update beliefs from a round: partners who made a counter-offer have rejected our proposal.

        Args:
            situation: The round.
            index: The partner of each of its threads.
        """
        threads, pending = situation.threads, self._pending.take(index)
        if self._typed is not None:
            frames, edge = self._frames_at(index), self.market.edge
            edge = edge if len(edge) == 1 else edge.take(index // self.width)
            self._typed.observe_round(index, threads, frames, edge, pending, self._outstanding.take(index, axis=0))
        if np.count_nonzero(pending):
            answered = index[pending]
            self._observe(answered, accepted=False)
            self._pending[answered] = False
        if self.acceptance is not None and self.acceptance.belief.by_replies:
            rows = true_rows(threads.answers)
            if len(rows):
                large = threads.offer[rows, 0] > self.market.n_lines[index[rows] // self.width]
                self.acceptance.belief.observe_offers(index[rows], large)

    def on_agreements(self, seat: Ints, partner: Ints, offer: Ints) -> None:
        """Update beliefs from agreements; only our own proposals show what a partner accepts.

        Args:
            seat: The factories, ``[R]``.
            partner: Their partners, each once, ``[R]``.
            offer: What was agreed, ``[R, 3]``.
        """
        index = seat * self.width + partner
        ours = self._pending[index] & every_term(self._outstanding[index] == offer)
        if np.count_nonzero(ours):
            self._observe(index[ours], accepted=True)
        self._pending[index] = False
        if self._typed is not None:
            self._typed.signatures.agree(index, self._frames_at(index), offer, self._proposed_at[index], ours)

    def on_failures(self, seat: Ints, partner: Ints) -> None:
        """Update beliefs from threads that ended without agreement while our proposal was outstanding.

        Args:
            seat: The factories, ``[R]``.
            partner: Their partners, each once, ``[R]``.
        """
        index = seat * self.width + partner
        index = index[self._pending[index]]
        if not len(index):
            return
        self._observe(index, accepted=False)
        self._pending[index] = False
        time = self._proposed_at[index]
        self._leaving[index] += LEAVING_RATE * ((time < LEFT_BEFORE) - self._leaving[index])
        if self._typed is not None:
            self._typed.signatures.fail(index, self._frames_at(index), self._outstanding[index], time)

    def commit(self, situation: SituationBatch, view: SideView, proposes: Bools, offer: Ints) -> None:
        """Remember our proposals that are outstanding now; a partner's own offer back is none.

        Args:
            situation: The round.
            view: What the side knows of it.
            proposes: Threads with a proposal, ``[M]``.
            offer: The proposals, ``[M, 3]``.
        """
        threads = situation.threads
        rows = true_rows(proposes & ~(threads.answers & every_term(offer == threads.offer)))
        if not len(rows):
            return
        if len(rows) == len(threads):
            index, time = view.partner, view.rounds.clock.time
        else:
            index, time, offer = view.partner[rows], view.rounds.clock.time[rows], offer[rows]
        self._pending[index], self._outstanding[index], self._proposed_at[index] = True, offer, time

    def _observe(self, index: Ints, *, accepted: bool) -> None:
        """Take the answers of partners ``[R]`` to our outstanding proposals."""
        if self.acceptance is None or (accepted and not self.acceptance.belief.by_replies):
            return
        one, offer, market = len(self._start) == 1, self._outstanding.take(index, axis=0), self.market
        lead = offer[:, 1] - (market.day if one else market.day.take(index // self.width))
        if not self.acceptance.belief.by_replies:  # only refusals for later days are remembered
            rows = true_rows(lead != 0)
            if not len(rows):
                return
            if len(rows) < len(lead):
                index, offer, lead = index[rows], offer[rows], lead[rows]
        market = market if one else market.take(index // self.width)
        offers = Offers(market, lead, offer[:, 0], offer[:, 2])
        self.acceptance.observe(index, offers, self._proposed_at[index], accepted=accepted)

    def chance(
        self, situation: SituationBatch, view: SideView, row: Ints, lead: Ints, quantity: Ints, price: Ints
    ) -> Floats:
        """Return the probability that partners take offers, ``[R]``; NaN if it is not known.

        Args:
            situation: The round.
            view: What the side knows of it.
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
        table = archetypes(offers, view.rounds.clock.take(row), selling=self.selling)
        weights = self.acceptance.belief.weights(view.partner)[row].T
        out[known] = self.acceptance.probabilities(
            view.partner[row], weights, table, offers.lead, offers.quantity, offers.price
        )
        return out
