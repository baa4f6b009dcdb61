"""L3: what a partner would accept, and how good each possible offer is.

`AcceptanceModel` is a logistic model per partner and side, started from a common prior and updated online
with every answer that a partner gives. `OfferGrid` holds every legal offer of a side at once, so that a
thread's best proposal is one pass of numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.typing import NDArray

from .observation import Agenda, Offer

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

N_FEATURES = 8
SELL_PRIOR = (-2.6, 1.2, -1.0, 0.3, 0.4, 0.8, 0.8, 0.5)
BUY_PRIOR = (-2.6, 1.2, -1.0, 0.3, 0.4, 0.8, 0.8, 0.5)


def features(concession: float, quantity: float, today: float, time: float) -> tuple[float, ...]:
    """Describes an offer as its receiver sees it.

    Args:
        concession: Place in the price band, 1 at the receiver's best price.
        quantity: Units as a share of our lines.
        today: 1 for delivery today, else 0.
        time: Relative time of the thread.
    """
    return (1.0, concession, quantity, today, today * quantity, time, time * concession, time * today)


class AcceptanceModel:
    """Probability that one partner accepts an offer, logistic in `features`.

    Args:
        prior: Initial weights.
        rate: Step of the online update.
    """

    def __init__(self, prior: tuple[float, ...], rate: float) -> None:
        self.weights = np.array(prior, dtype=np.float64)
        self.rate = rate

    def probability(self, x: tuple[float, ...]) -> float:
        """Returns the probability of acceptance."""
        return 1.0 / (1.0 + exp(-max(-30.0, min(30.0, float(self.weights @ np.array(x))))))

    def update(self, x: tuple[float, ...], *, accepted: bool) -> None:
        """Takes one answer in: a step of gradient ascent on the log-likelihood."""
        error = (1.0 if accepted else 0.0) - self.probability(x)
        self.weights += self.rate * error * np.array(x)


@dataclass(frozen=True, slots=True)
class OfferGrid:
    """Every offer of a side: each lead × quantity × price of the agenda.

    Attributes:
        lead: Days until delivery, shape (n,).
        quantity: Units, shape (n,).
        price: Unit price, shape (n,).
        still: Features that do not depend on time, shape (n, 8), time entries 0.
        moving: Their change per unit of relative time, shape (n, 8).
    """

    lead: IntArray
    quantity: IntArray
    price: IntArray
    still: FloatArray
    moving: FloatArray

    @classmethod
    def of(cls, agenda: Agenda, day: int, leads: int, n_lines: int, *, selling: bool) -> OfferGrid:
        """Builds the grid of one day."""
        top = min(agenda.quantity_max, n_lines)
        lead, quantity, price = (
            axis.ravel()
            for axis in np.meshgrid(
                np.arange(min(leads, agenda.time_max - day + 1)),
                np.arange(agenda.quantity_min, top + 1),
                np.arange(agenda.price_min, agenda.price_max + 1),
                indexing="ij",
            )
        )
        concession = concessions(price, agenda, selling=selling)
        share, today = quantity / n_lines, (lead == 0).astype(np.float64)
        zero, one = np.zeros_like(share), np.ones_like(share)
        still = np.stack([one, concession, share, today, today * share, zero, zero, zero], axis=1)
        moving = np.stack([zero, zero, zero, zero, zero, one, concession, today], axis=1)
        return cls(lead, quantity, price, still, moving)

    def probabilities(self, model: AcceptanceModel, time: float) -> FloatArray:
        """Returns the probability of acceptance of every offer, shape (n,)."""
        logit = self.still @ model.weights + time * (self.moving @ model.weights)
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logit, -30.0, 30.0))))

    def offer(self, index: int, day: int) -> Offer:
        """Returns one entry as an offer."""
        return Offer(int(self.quantity[index]), day + int(self.lead[index]), int(self.price[index]))


def concessions(price: IntArray, agenda: Agenda, *, selling: bool) -> FloatArray:
    """Returns the place of prices in the band as the receiver of the offer sees them, shape of `price`."""
    width = max(1, agenda.price_max - agenda.price_min)
    position = (price - agenda.price_min) / width
    return np.asarray(1.0 - position if selling else position, dtype=np.float64)


def offer_features(
    offer: Offer, agenda: Agenda, day: int, n_lines: int, time: float, *, selling: bool
) -> tuple[float, ...]:
    """Returns the features of one proposal of ours."""
    width = max(1, agenda.price_max - agenda.price_min)
    position = (offer.price - agenda.price_min) / width
    today = 1.0 if offer.time == day else 0.0
    return features(1.0 - position if selling else position, offer.quantity / n_lines, today, time)
