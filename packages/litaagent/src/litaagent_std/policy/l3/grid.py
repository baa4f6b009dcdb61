"""Every offer that factories of one side would make today, with what decides about it at any time."""

from __future__ import annotations

import numpy as np

from ..arrays import Floats, Ints, true_rows
from .heuristic import Clock, Market, by_price, by_quantity, early, mixed, soften

__all__ = ["OfferGrid"]


class OfferGrid:
    """Offers of n factories by lead, quantity and price above the lowest legal one.

    Q and Z are the most quantities and prices of any factory; offers beyond a factory's own range are in the grid too.
    What does not depend on the round (`by_quantity`, `by_price`) is computed once for a market, and again only when its
    prices move.

    Args:
        n: Number of factories.
        leads: Number of delivery days, today included.
        most: The largest quantity.
        selling: Which side this is.

    Attributes:
        n: Number of factories.
        shape: Number of leads, quantities and prices: L, Q and Z.
    """

    def __init__(self, n: int, leads: int, most: int, *, selling: bool) -> None:
        self.n, self._selling = n, selling
        self._known = np.full((5, n), -1)  # the markets that the tables were computed for
        self._resize(leads, most + 1, 1)

    def _resize(self, leads: int, quantities: int, prices: int) -> None:
        self.shape = (leads, quantities, prices)
        self._by_quantity = np.zeros((4, self.n, leads, quantities))
        self._by_price = np.zeros((4, self.n, leads, prices))
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
            changed = np.arange(self.n)
        self._known = known
        # [changed, L, Q] and [changed, L, Z] by broadcasting
        wide = Market(*[getattr(market, name)[changed][:, None, None] for name in market.__slots__])
        lead, quantity, step = (np.arange(size) for size in self.shape)
        self._by_quantity[:, changed] = by_quantity(wide, lead[:, None], quantity, selling=self._selling)
        self._by_price[:, changed] = by_price(wide, lead[:, None], wide.price_min + step, selling=self._selling)

    def archetypes(
        self, seat: Ints, clock: Clock, cell: Ints, slot: Ints, count: Ints, priced: Ints, *, out: Floats
    ) -> None:
        """Write the probability that each archetype accepts offers, ``[4, R]``.

        Args:
            seat: The factory of each cell, ``[C]``.
            clock: Its relative time, C rows.
            cell: The cell of each of K adjacent groups of offers for the same day and quantity, ``[K]``, or one.
            slot: Their factory, delivery day and quantity, numbered ``(factory · L + lead) · Q + quantity``, ``[K]``.
            count: Offers of each group, ``[K]``.
            priced: The delivery day and price of each offer, numbered ``(factory · L + lead) · Z + step``, and its cell
                and price, ``cell · Z + step``, ``[2, R]``.
            out: The probabilities.
        """
        prices = self.shape[2]
        sized = self._by_quantity.reshape(4, -1).take(slot, axis=1)  # [4, K]
        sized[3] *= early(clock, selling=self._selling)[cell]
        # [4, C, Z] what changes over the rounds depends on the price alone, and is the same for all days
        moving = np.empty((4, len(seat), prices))
        static = self._by_price[:, :, 0] if self.n == 1 else self._by_price[:, seat, 0]
        moving[0], moving[3] = static[1], static[3]
        times = Clock(clock.time[:, None], clock.rest[:, None], clock.square[:, None])
        soften(static[0], times, out=moving[1:3])
        ahead = self._by_price[2].reshape(-1).take(priced[0])
        mixed(sized.repeat(count, axis=1), moving.reshape(4, -1).take(priced[1], axis=1), ahead, out=out)
