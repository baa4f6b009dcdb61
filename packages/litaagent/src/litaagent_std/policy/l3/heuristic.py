"""L3, heuristic: the probability that a partner accepts an offer.

Most partners in the league are its own default agents, whose rules of acceptance are simple. `archetypes` states the
rules as probabilities of acceptance for every possible offer at once; `PartnerModel` is a belief over the archetypes,
updated by Bayes' rule with a partner's replies (tempered, because replies within a day are correlated). `OfferGrid`
holds every legal offer of a side, so that a thread's best proposal is found by one pass of numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..arrays import Bools, Floats, Ints
from ..observation import Agenda, Offer

__all__ = ["ARCHETYPES", "OfferGrid", "PartnerModel", "archetypes"]

ARCHETYPES: Final = ("random", "greedy", "sharing", "able")
"""Types of partners: accepts one offer in ten; bargains over the price and takes up to 3/4 of its lines; distributes
its need over its partners and buys ahead at the lowest price only; a strong competitor who accepts little."""
PRIOR: Final = (0.28, 0.28, 0.28, 0.16)
"""Belief about a partner before its first reply."""
LARGE_OFFER: Final = (0.65, 0.03, 0.3, 0.04)
"""How often each archetype offers more units than a factory has lines."""

_LEAST, _MOST = 0.002, 0.97  # no probability of acceptance is more extreme


@dataclass(frozen=True, slots=True)
class OfferGrid:
    """Every offer of a side: each lead × quantity × price of the agenda, n in all.

    Attributes:
        lead: Days until delivery, ``[n]``.
        quantity: Units, ``[n]``.
        price: Unit price, ``[n]``.
        concession: Position in the price band as the receiver sees it, 1 at its best price, ``[n]``.
        share: Quantity over our lines, ``[n]``.
        today: Whether delivery is today, ``[n]``.
        ahead: For a sale, whether a bargaining buyer takes the price for a later day, ``[n]``.
    """

    lead: Ints
    quantity: Ints
    price: Ints
    concession: Floats
    share: Floats
    today: Bools
    ahead: Bools

    @classmethod
    def of(cls, agenda: Agenda, day: int, leads: int, n_lines: int, *, selling: bool) -> OfferGrid:
        """Build the grid of one day."""
        # [n] each: lead varies slowest, price fastest
        top = max(agenda.quantity_min, min(agenda.quantity_max, n_lines))
        lead, quantity, price = (
            axis.ravel()
            for axis in np.meshgrid(
                np.arange(max(1, min(leads, agenda.time_max - day + 1))),
                np.arange(max(1, agenda.quantity_min), top + 1),
                np.arange(agenda.price_min, agenda.price_max + 1),
                indexing="ij",
            )
        )
        return cls._made(agenda, lead, quantity, price, n_lines, selling=selling)

    @classmethod
    def of_offers(cls, agenda: Agenda, offers: Sequence[Offer], day: int, n_lines: int, *, selling: bool) -> OfferGrid:
        """Build a grid of some offers alone."""
        quantity, time, price = np.array(offers, np.int64).reshape(-1, 3).T
        return cls._made(agenda, time - day, quantity, price, n_lines, selling=selling)

    @classmethod
    def _made(
        cls, agenda: Agenda, lead: Ints, quantity: Ints, price: Ints, n_lines: int, *, selling: bool
    ) -> OfferGrid:
        width = max(1, agenda.price_max - agenda.price_min)
        position = (price - agenda.price_min) / width
        # A bargaining partner pays or takes within the last tenth of the band for later days.
        low, high = int(0.9 * agenda.price_max), agenda.price_max
        ahead = price <= high - 0.9 * (high - low) if selling else price >= low + 0.9 * (high - low)
        return cls(lead, quantity, price, 1.0 - position if selling else position, quantity / n_lines, lead == 0, ahead)

    def offer(self, index: int, day: int) -> Offer:
        """Return one entry as an offer."""
        return Offer(int(self.quantity[index]), day + int(self.lead[index]), int(self.price[index]))

    def index(self, offer: Offer, day: int) -> int | None:
        """Return the entry of an offer, or None when the grid does not hold it."""
        matches = np.flatnonzero(
            (self.lead == offer.time - day) & (self.quantity == offer.quantity) & (self.price == offer.price)
        )
        return int(matches[0]) if len(matches) else None

    def no_better(self, offer: Offer, day: int, *, selling: bool) -> Bools:
        """Return the offers for the same later day that are no better for the receiver, ``[n]``."""
        worse = self.price >= offer.price if selling else self.price <= offer.price
        same = (self.lead == offer.time - day) & ~self.today
        return np.asarray(same & worse & (self.quantity >= offer.quantity))


def archetypes(grid: OfferGrid, time: float, *, selling: bool, edge: bool) -> Floats:
    """Return the probability that each archetype accepts each offer, ``[4, n]``.

    Args:
        grid: The offers.
        time: Relative time of the thread.
        selling: Whether we sell.
        edge: Whether the partner is at an end of the chain, where its need is exogenous.
    """
    # [n] each: the receiver's best price, a quantity it can use, and its concession over time
    best = grid.concession >= 0.999
    small = grid.share <= 0.75
    bargain = _soft(grid.concession - (1.0 - time) ** 0.6, 0.06)
    shared = _soft(grid.concession - 1.0 + time**2, 0.05)
    # A bargaining partner's days fill up from the near ones, and a full day takes only a few units more.
    booked = (9.0 - 0.75 * grid.lead) if edge and selling else (4.0 - 0.3 * grid.lead)
    greedy_later = small * grid.ahead * np.minimum(1.0, 1.6 * np.exp(-np.maximum(0.5, booked) * grid.share))
    if selling:
        greedy_today = small * (bargain * 0.05 * (1.0 - grid.share) if edge else 0.95 * bargain)
        sharing_today = np.where(best, 0.15, 0.01) if edge else 0.9 * (grid.share <= 0.2) * shared
        sharing_later = np.where(best, (0.9 if edge else 0.15) * np.exp(-0.12 * grid.lead), 0.0)
        able = 0.02 + 0.05 * grid.concession + 0.1 * (time < 0.1) * (grid.share <= 0.5)
    else:
        greedy_today = (0.8 - 0.4 * grid.share if edge else small) * bargain
        sharing_today = 0.9 * shared
        sharing_later = np.where(best, 0.1 if edge else 0.75, 0.0)
        able = 0.03 + 0.1 * grid.concession + 0.3 * (time < 0.2) * (grid.share <= 0.4)
    # [4, n] in the order of ARCHETYPES
    rows = (
        np.full(len(grid.lead), 0.1),
        np.where(grid.today, greedy_today, greedy_later),
        np.where(grid.today, sharing_today, sharing_later),
        able,
    )
    return np.asarray(np.clip(np.stack(rows), _LEAST, _MOST), dtype=np.float64)


def _soft(margin: Floats, width: float) -> Floats:
    """Return a step from 0 to 1 at margin 0, softened over `width`."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip((margin + 0.5 * width) / (0.25 * width), -30.0, 30.0))))


class PartnerModel:
    """Belief about one partner: a weight for each archetype.

    Args:
        rate: Weight of one refusal or offer as evidence, from 0 (none) to 1 (independent evidence).
    """

    def __init__(self, rate: float) -> None:
        self._log_weights = np.log(np.array(PRIOR))
        self._rate = rate

    @property
    def weights(self) -> Floats:
        """The weights, summing to 1, ``[4]``."""
        shifted = np.exp(self._log_weights - self._log_weights.max())
        return np.asarray(shifted / (shifted[0] + shifted[1] + shifted[2] + shifted[3]))

    def observe_reply(self, likelihood: Floats, *, accepted: bool) -> None:
        """Update the belief from a reply; `likelihood` is each archetype's probability of accepting, ``[4]``."""
        evidence = np.log(likelihood if accepted else 1.0 - likelihood)
        self._update(evidence * (1.0 if accepted else self._rate))

    def observe_offer(self, *, large: bool) -> None:
        """Update the belief from the size of one of the partner's own offers."""
        chance = np.array(LARGE_OFFER)
        self._update(self._rate * np.log(chance if large else 1.0 - chance))

    def _update(self, evidence: Floats) -> None:
        # Weights are bounded below, so that a partner who changes is recognised again.
        weights = self._log_weights + evidence
        self._log_weights = np.maximum(weights - weights.max(), -6.0)
