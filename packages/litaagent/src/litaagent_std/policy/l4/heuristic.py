"""L4: decisions across threads.

`best_subset` accepts today's offers jointly: per delivery day an exact knapsack over what was offered.
`Spreader` distributes what remains over the threads, each proposal chosen by the value of the deal and the
probability that the partner takes it; the same units may be offered to several partners as long as the
expected cost of too many acceptances stays within the risk budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Bools, Floats, Ints
from ..l3.heuristic import OfferGrid


def best_subset(quantities: Sequence[int], values: Sequence[float], room: int) -> frozenset[int]:
    """Return the indices of the offers whose total value is greatest within `room` units.

    Exact: dynamic programming over the total quantity. Offers of no value are left out; of equal totals the
    one with fewer units wins, because the rest can still be traded.
    """
    best: dict[int, tuple[float, frozenset[int]]] = {0: (0.0, frozenset())}
    for index, (quantity, value) in enumerate(zip(quantities, values, strict=True)):
        if value <= 0.0 or quantity > room:
            continue
        for total, (worth, chosen) in list(best.items()):
            after = total + quantity
            if after <= room and (after not in best or worth + value > best[after][0]):
                best[after] = (worth + value, chosen | {index})
    return max(best.items(), key=lambda item: (item[1][0], -item[0]))[1][1]


@dataclass(slots=True)
class Book:
    """What is on offer for one delivery day: the distribution of the units that partners will take.

    Attributes:
        room: Units that may be sold or bought.
        mass: Probability of each total of accepted units, shape (top + 1,).
    """

    room: int
    mass: Floats

    def added_excess(self, quantities: Ints) -> Floats:
        """Return the expected further units beyond `room` if an offer of each size were accepted."""
        totals = np.arange(len(self.mass))
        over = np.maximum(0, totals[None, :] + quantities[:, None] - max(0, self.room))
        return np.asarray((over - np.maximum(0, totals - max(0, self.room))[None, :]) @ self.mass)

    def add(self, quantity: int, probability: float) -> None:
        """Put one more proposal on the book."""
        shifted = np.zeros(len(self.mass) + quantity)
        shifted[quantity:] = probability * self.mass
        shifted[: len(self.mass)] += (1.0 - probability) * self.mass
        self.mass = shifted


class Spreader:
    """Chooses proposals thread by thread, each knowing what is already on offer.

    Args:
        grid: Every legal offer.
        room: Units that may be agreed, by lead.
        lines: Units that may be agreed by one deal at most (the hard bound), by lead.
        gain: Gain per unit of each offer, shape (n,).
        excess_cost: Loss by one unit too many at each offer (it brings no gain), shape (n,).
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
        self._within = (grid.quantity <= np.asarray(lines)[grid.lead]) & (gain > 0.0)
        self._excess = np.zeros(len(grid.lead))
        self._stale = set(range(len(room)))

    def reserve(self, lead: int, quantity: int, probability: float) -> None:
        """Take a proposal into account that is already on a partner's table."""
        if 0 <= lead < len(self._books):
            self._books[lead].add(quantity, probability)
            self._stale.add(lead)

    def choose(self, acceptance: Floats, weight: float, allowed: Bools, most: int | None = None) -> int | None:
        """Return the best proposal for one thread, or None when nothing may be offered.

        The score is ``weight · log P + log gain``: with weight 0 the most valuable deal, with weight 1 the
        greatest expected gain.

        Args:
            acceptance: Probability of acceptance of every offer, shape (n,).
            weight: Weight of the probability.
            allowed: Offers that this thread may be made, shape (n,).
            most: Units that the proposal may not exceed.
        """
        self._refresh()
        grid = self._grid
        value = (grid.quantity - self._excess) * self._gain - self._excess * self._excess_cost
        risk = acceptance * self._excess * self._excess_cost
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
        for lead in self._stale:
            rows = self._grid.lead == lead
            if rows.any():
                self._excess[rows] = self._books[lead].added_excess(self._grid.quantity[rows])
        self._stale.clear()
