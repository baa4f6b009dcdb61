"""L4, heuristic: proposals across threads.

`Spreader` distributes the units that remain over the threads. Each proposal is chosen by the value of the deal and the
probability that the partner takes it; the same units may be offered to several partners as long as the expected cost of
too many acceptances stays within the risk budget. Which offers to accept together is decided by `plan.best_subset`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Bools, Floats
from ..l3.heuristic import OfferGrid
from ..plan import Book

__all__ = ["Spreader"]


class Spreader:
    """Choose proposals thread by thread, each with regard to those made before.

    Args:
        grid: Every legal offer.
        room: Units that may be agreed, by lead.
        lines: Units that may be agreed by one deal at most (the hard bound), by lead.
        gain: Gain per unit of each offer, ``[n]``.
        excess_cost: Loss by one unit too many at each offer (it brings no gain), ``[n]``.
        budgets: Expected cost of excess that may be risked, by lead; changed in place.
    """

    def __init__(
        self,
        grid: OfferGrid,
        room: Sequence[int],
        lines: Sequence[int],
        gain: Floats,
        excess_cost: Floats,
        budgets: list[float],
    ) -> None:
        self._grid, self._gain, self._excess_cost, self._budgets = grid, gain, excess_cost, budgets
        self._books = [Book(units, np.ones(1)) for units in room]
        # [n] offers that one deal may hold and that gain something
        self._within = (grid.quantity <= np.asarray(lines)[grid.lead]) & (gain > 0.0)
        self._excess = np.zeros(len(grid.lead))
        self._stale = set(range(len(room)))

    def reserve(self, lead: int, quantity: int, probability: float) -> None:
        """Add a proposal that a partner has not answered yet."""
        if 0 <= lead < len(self._books):
            self._books[lead].add(quantity, probability)
            self._stale.add(lead)

    def choose(self, acceptance: Floats, weight: float | Floats, allowed: Bools, most: int | None = None) -> int | None:
        """Return the best proposal for one thread, or None when nothing may be offered.

        The score is ``weight · log P + log gain``: with weight 0 the most valuable deal, with weight 1 the
        greatest expected gain.

        Args:
            acceptance: Probability of acceptance of every offer, ``[n]``.
            weight: Weight of the probability, one for all offers or of each, ``[n]``.
            allowed: Offers that this thread may be made, ``[n]``.
            most: Units that the proposal may not exceed.
        """
        self._refresh()
        grid = self._grid
        # [n] gain of each offer if it is accepted, units beyond the room bringing a loss
        value = (grid.quantity - self._excess) * self._gain - self._excess * self._excess_cost
        # [n] expected cost of its units beyond the room
        risk = acceptance * self._excess * self._excess_cost
        # [n] offers within the hard bound, the thread's limits and the budget of their delivery day
        open_ = self._within & allowed & (value > 0.0) & (risk <= np.asarray(self._budgets)[grid.lead] + 1e-9)
        if most is not None:
            open_ &= grid.quantity <= most
        if not open_.any():
            return None
        score = np.where(open_, weight * np.log(acceptance) + np.log(np.where(open_, value, 1.0)), -np.inf)
        index = int(score.argmax())
        lead = int(grid.lead[index])
        self._budgets[lead] -= float(risk[index])
        self.reserve(lead, int(grid.quantity[index]), float(acceptance[index]))
        return index

    def _refresh(self) -> None:
        """Compute the expected excess again for the delivery days with new proposals."""
        for lead in self._stale:
            rows = self._grid.lead == lead
            if rows.any():
                self._excess[rows] = self._books[lead].added_excess(self._grid.quantity[rows])
        self._stale.clear()
