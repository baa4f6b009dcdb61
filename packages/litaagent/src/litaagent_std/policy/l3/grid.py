"""Every offer that factories of one side would make today, with what decides about it at any time."""

from __future__ import annotations

from typing import Final

import numpy as np

from ..arrays import Floats, Ints, true_rows
from .heuristic import Market, Offers, traits

__all__ = ["OfferGrid"]

_TRAITS: Final = 7


class OfferGrid:
    """Offers of n factories by lead, quantity and price, numbered ``(lead · Q + quantity) · Z + price - price_min``.

    Q and Z are the most quantities and prices of any factory; offers beyond a factory's own range are in the grid too.
    What does not depend on the round (`traits`) is computed once for a market, and again only when its prices move.

    Args:
        n: Number of factories.
        leads: Number of delivery days, today included.
        most: The largest quantity.
        selling: Which side this is.

    Attributes:
        columns: Of each offer the days until delivery, the units, the price above the lowest legal one, the index of
            delivery day and quantity, and the delivery day again, ``[5, G]``.
        shape: Number of leads, quantities and prices.
    """

    def __init__(self, n: int, leads: int, most: int, *, selling: bool) -> None:
        self._n, self._selling = n, selling
        self._known = np.full((5, n), -1)  # the markets that the traits were computed for
        self._resize(leads, most + 1, 1)

    def _resize(self, leads: int, quantities: int, prices: int) -> None:
        self.shape = (leads, quantities, prices)
        lead, quantity, step = np.indices(self.shape).reshape(3, -1)  # [G] each
        self.columns = np.stack([lead, quantity, step, lead * quantities + quantity, lead])
        self._traits = np.zeros((_TRAITS, self._n, len(lead)))
        self._known[:] = -1

    def start_day(self, market: Market) -> None:
        """Take the markets of a day, n rows."""
        m = market
        known = np.array([m.n_lines, m.price_min, m.price_max, m.edge, m.quantity_max], np.int64)  # [5, n]
        different = known != self._known
        if not np.count_nonzero(different):
            return
        changed = true_rows(different.any(0))
        leads, quantities, prices = self.shape
        needs = (int(market.quantity_max.max()) + 1, int((market.price_max - market.price_min).max()) + 1)
        if needs[0] > quantities or needs[1] > prices:
            self._resize(leads, max(quantities, needs[0]), max(prices, needs[1]))
            changed = np.arange(self._n)
        self._known = known
        # [changed, L, Q, Z] by broadcasting, so that what depends on some of the axes is computed for these alone
        own = [getattr(market, name)[changed][:, None, None, None] for name in market.__slots__]
        wide = Market(*own)
        lead, quantity, step = (np.arange(size) for size in self.shape)
        offers = Offers(wide, lead[:, None, None], quantity[:, None], wide.price_min + step)
        self._traits[:, changed] = traits(offers, selling=self._selling).reshape(_TRAITS, len(changed), -1)

    def traits(self, seat: Ints, offer: Ints) -> Floats:
        """Return `traits` of offers ``[R]`` of factories ``[R]``, or one for all, ``[7, R]``."""
        flat = offer if self._n == 1 else seat * self.columns.shape[1] + offer
        return self._traits.reshape(_TRAITS, -1).take(flat, axis=1)
