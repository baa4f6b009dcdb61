"""What the layers exchange and belongs to none of them: goals, bounds, plans, and the arithmetic of sets of offers.

`best_subset` is the exact knapsack by which offers are accepted together. `Book` is the distribution of the units that
partners will take of what is on offer for one delivery day.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .arrays import Floats, Ints
from .observation import Agenda, Offer

__all__ = ["Book", "Bounds", "Goals", "Plan", "band_price", "best_subset", "greedy_subset"]


@dataclass(frozen=True, slots=True)
class Goals:
    """L2's goals of a day by lead (days until delivery).

    Attributes:
        q_buy: Units to buy.
        p_buy: The most to pay per unit.
        q_sell: Units to sell.
        p_sell: The least to ask per unit.
        hold: Value of a unit of unsold capacity.
        unit_value: Value of one more unit of input today; no price above it is paid.
        u_buy: Urgency of purchases: 0 concedes by the rounds, 1 at once. Empty: 0 for every lead.
        u_sell: Urgency of sales, likewise: what a proposal asks at least follows the later of round and urgency, and
            the probability of acceptance counts at least so much in its choice.
    """

    q_buy: tuple[int, ...]
    p_buy: tuple[float, ...]
    q_sell: tuple[int, ...]
    p_sell: tuple[float, ...]
    hold: tuple[float, ...]
    unit_value: float
    u_buy: tuple[float, ...] = ()
    u_sell: tuple[float, ...] = ()

    def urgency(self, *, selling: bool) -> tuple[float, ...] | None:
        """Return a side's urgency by lead; None if nothing is urgent."""
        values = self.u_sell if selling else self.u_buy
        return values if any(values) else None


@dataclass(frozen=True, slots=True)
class Bounds:
    """L1's bounds: what may still be agreed, by lead (days until delivery).

    Attributes:
        lines: Units that the lines leave free: the hard bound of sales.
        covered: Units that existing or contracted input covers as well: the bound of sales at risk 0.
        spare: Input that is in stock or contracted and not promised to a sale; negative where sales are uncovered.
        buy: Units that free cash buys at the highest legal price: the hard bound of all purchases together.
    """

    lines: tuple[int, ...]
    covered: tuple[int, ...]
    spare: tuple[int, ...]
    buy: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A side's decisions in one round.

    Attributes:
        accept: Partners whose offers are accepted.
        offers: Proposals to the other partners; None ends the thread.
    """

    accept: frozenset[str]
    offers: Mapping[str, Offer | None]


def band_price(agenda: Agenda, position: float) -> float:
    """Return the price at a position of the legal band, 0 for the lowest and 1 for the highest."""
    return agenda.price_min + min(1.0, max(0.0, position)) * (agenda.price_max - agenda.price_min)


def best_subset(quantities: Sequence[int], values: Sequence[float], room: int) -> frozenset[int]:
    """Return the indices of the offers whose total value is greatest within `room` units.

    Exact: dynamic programming over the total quantity. Offers without value are left out; of equal totals the
    one with fewer units wins, because the rest can still be traded.
    """
    # total quantity -> (best value, chosen offers)
    best: dict[int, tuple[float, frozenset[int]]] = {0: (0.0, frozenset())}
    for index, (quantity, value) in enumerate(zip(quantities, values, strict=True)):
        if value <= 0.0 or quantity > room:
            continue
        for total, (worth, chosen) in list(best.items()):
            after = total + quantity
            if after <= room and (after not in best or worth + value > best[after][0]):
                best[after] = (worth + value, chosen | {index})
    return max(best.items(), key=lambda item: (item[1][0], -item[0]))[1][1]


def greedy_subset(quantities: Sequence[int], values: Sequence[float], room: int) -> frozenset[int]:
    """Return the indices of offers taken in order of value per unit as long as they fit."""
    chosen: set[int] = set()
    for index in sorted(range(len(values)), key=lambda i: -values[i] / quantities[i]):
        if values[index] > 0.0 and quantities[index] <= room:
            chosen.add(index)
            room -= quantities[index]
    return frozenset(chosen)


@dataclass(slots=True)
class Book:
    """Proposals for one delivery day: the distribution of the units that partners will take.

    Attributes:
        room: Units that may be sold or bought.
        mass: Probability of each total of accepted units, ``[T + 1]`` for totals 0 to T.
    """

    room: int
    mass: Floats

    def added_excess(self, quantities: Ints) -> Floats:
        """Return the expected further units beyond `room` if an offer of each size ``[K]`` were accepted, ``[K]``."""
        totals = np.arange(len(self.mass))  # [T + 1]
        # [K, T + 1] units beyond the room with the offer accepted
        over = np.maximum(0, totals[None, :] + quantities[:, None] - max(0, self.room))
        # minus those without it, averaged over the totals in their order: [K]
        more = (over - np.maximum(0, totals - max(0, self.room))[None, :]) * self.mass
        return np.asarray(np.cumsum(more, axis=1)[:, -1])

    def add(self, quantity: int, probability: float) -> None:
        """Add a proposal that is accepted with a probability: the convolution of both distributions."""
        shifted = np.zeros(len(self.mass) + quantity)  # [T + quantity + 1]
        shifted[quantity:] = probability * self.mass
        shifted[: len(self.mass)] += (1.0 - probability) * self.mass
        self.mass = shifted
