"""What the layers exchange and belongs to none of them: goals, bounds, plans, and the arithmetic of sets of offers.

The structs named ``…Batch`` hold B factories, or M threads of them, as columns; `Goals`, `Bounds` and `Plan` are one
factory's rows of them, as a layer that is written for one factory sees them. `best_subsets` is the exact knapsack by
which offers are accepted together. `Books` is the distribution of the units that partners will take of what is on offer
for each delivery day.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from .arrays import Array, Bools, Floats, Ints, true_rows
from .columns import Batch
from .observation import Offer

__all__ = [
    "Books",
    "Bounds",
    "BoundsBatch",
    "Goals",
    "GoalsBatch",
    "Plan",
    "PlanBatch",
    "band_price",
    "best_subsets",
    "greedy_subsets",
]


_NUMBERS: Final = np.arange(1 << 14)
_UNITS: Final = _NUMBERS.astype(np.float64)
_ZERO: Final = np.array(0.0)


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


@dataclass(frozen=True, slots=True, eq=False)
class GoalsBatch(Batch):
    """L2's goals of B factories, fields as in `Goals`: by lead ``[B, H + 1]``, and ``unit_value`` ``[B]``."""

    q_buy: Ints
    p_buy: Floats
    q_sell: Ints
    p_sell: Floats
    hold: Floats
    unit_value: Floats
    u_buy: Floats
    u_sell: Floats

    @classmethod
    def zeros(cls, count: int, leads: int) -> GoalsBatch:
        """Return goals of nothing."""
        names = ("q_buy", "p_buy", "q_sell", "p_sell", "hold", "u_buy", "u_sell")
        by_lead = {name: np.zeros((count, leads)) for name in names}
        return cls(**by_lead, unit_value=np.zeros(count))  # type: ignore[arg-type]  # L1 makes quantities whole

    def side(self, *, selling: bool) -> tuple[Ints, Floats, Floats]:
        """Return a side's quantities, prices and urgency, each ``[B, H + 1]``."""
        return (self.q_sell, self.p_sell, self.u_sell) if selling else (self.q_buy, self.p_buy, self.u_buy)

    def row(self, index: int, leads: int) -> Goals:
        """Return one factory's goals for its leads; urgency is empty where nothing is urgent."""

        def column(name: str) -> tuple[float, ...]:
            return tuple(getattr(self, name)[index, :leads].tolist())

        urgent = {name: values if any(values := column(name)) else () for name in ("u_buy", "u_sell")}
        return Goals(
            tuple(self.q_buy[index, :leads].tolist()),
            column("p_buy"),
            tuple(self.q_sell[index, :leads].tolist()),
            column("p_sell"),
            column("hold"),
            float(self.unit_value[index]),
            **urgent,
        )


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


@dataclass(frozen=True, slots=True, eq=False)
class BoundsBatch(Batch):
    """L1's bounds of B factories, fields as in `Bounds`: by lead ``[B, H + 1]``, and ``buy`` ``[B]``."""

    lines: Ints
    covered: Ints
    spare: Ints
    buy: Ints

    def row(self, index: int, leads: int) -> Bounds:
        """Return one factory's bounds for its leads."""
        lines, covered, spare = (
            tuple(column[index, :leads].tolist()) for column in (self.lines, self.covered, self.spare)
        )
        return Bounds(lines, covered, spare, int(self.buy[index]))

    @classmethod
    def of(cls, row: Bounds) -> BoundsBatch:
        """Return a batch of one factory."""
        return cls(np.array([row.lines]), np.array([row.covered]), np.array([row.spare]), np.array([row.buy]))


@dataclass(frozen=True, slots=True)
class Plan:
    """A side's decisions in one round.

    Attributes:
        accept: Partners whose offers are accepted.
        offers: Proposals to the other partners; None ends the thread.
    """

    accept: frozenset[str]
    offers: Mapping[str, Offer | None]


@dataclass(slots=True, eq=False)
class PlanBatch(Batch):
    """Decisions in M threads; a thread where nothing is accepted or proposed ends.

    Attributes:
        accept: Whether the offer on the table is accepted, ``[M]``.
        propose: Whether there is a proposal, ``[M]``.
        offer: The proposal: quantity, delivery day, unit price, ``[M, 3]``.
    """

    accept: Bools
    propose: Bools
    offer: Ints

    @classmethod
    def none(cls, count: int) -> PlanBatch:
        """Return a plan that ends all threads."""
        return cls(np.zeros(count, np.bool_), np.zeros(count, np.bool_), np.zeros((count, 3), np.int64))


def band_price(agenda: Ints, position: Array) -> Floats:
    """Return prices at positions of the legal band, 0 for the lowest and 1 for the highest.

    Args:
        agenda: Ends of the legal ranges, ``[…, 6]``.
        position: Positions, of a shape that broadcasts with the agendas.
    """
    low, high = agenda[..., 4], agenda[..., 5]
    return np.asarray(low + np.minimum(1.0, np.maximum(0.0, position)) * (high - low))


def best_subsets(group: Ints, quantity: Ints, value: Floats, room: Ints) -> Bools:
    """Return which offers of each group are worth most together within the group's room, ``[K]``.

    Exact: dynamic programming over the total quantity, of all groups at once. Offers without value are left out; of
    equal totals the one with fewer units wins, because the rest can still be traded.

    Args:
        group: Group of each offer, rising from 0, ``[K]``.
        quantity: Units, ``[K]``.
        value: Value of the offer, ``[K]``.
        room: Units of each group, ``[G]``.
    """
    taken = np.zeros(len(group), np.bool_)
    useful = true_rows((value > 0.0) & (quantity <= room[group]))
    if not len(useful):
        return taken
    group, quantity, value = group[useful], quantity[useful], value[useful]
    if len(useful) == 1:  # nothing to choose from
        taken[useful] = True
        return taken
    first = np.searchsorted(group, np.arange(len(room)))  # [G] first offer of each group
    index = np.arange(len(group)) - first[group]  # [K] index in the group
    width = int(room.max()) + 1
    totals = np.arange(width)
    # [G, width] best value of each total quantity, and the offers that make it, one bit each
    best, chosen = np.full((len(room), width), -np.inf), np.zeros((len(room), width), np.int64)
    best[:, 0] = 0.0
    for step in range(int(index.max()) + 1):
        rows = true_rows(index == step)
        g, q = group[rows], quantity[rows]
        before = totals - q[:, None]  # [rows, width] total without the offer
        fits = (before >= 0) & (totals <= room[g][:, None])
        source = np.maximum(before, 0)
        with_it = np.where(fits, best[g[:, None], source] + value[rows][:, None], -np.inf)
        better = with_it > best[g]
        bits = chosen[g[:, None], source] | (1 << step)
        best[g], chosen[g] = np.where(better, with_it, best[g]), np.where(better, bits, chosen[g])
    final = chosen[np.arange(len(room)), best.argmax(1)]  # [G]
    taken[useful] = (final[group] >> index) & 1 > 0
    return taken


def greedy_subsets(group: Ints, quantity: Ints, value: Floats, room: Ints) -> Bools:
    """Return which offers of each group are taken in order of value per unit as long as they fit, ``[K]``.

    Arguments as in `best_subsets`.
    """
    taken, left = np.zeros(len(group), np.bool_), room.copy()
    order = np.lexsort((-value / quantity, group))
    first = np.searchsorted(group, np.arange(len(room)))
    index = np.arange(len(group)) - first[group[order]]  # [K] rank in the group
    for step in range(int(index.max(initial=-1)) + 1):
        rows = order[index == step]
        fits = (value[rows] > 0.0) & (quantity[rows] <= left[group[rows]])
        rows = rows[fits]
        taken[rows] = True
        left[group[rows]] -= quantity[rows]
    return taken


class Books:
    """Proposals of S factories by delivery day: the distribution of the units that partners will take.

    Args:
        room: Units that may be sold or bought, ``[S, L]``.
        most: The largest quantity of an offer.
        proposals: The most proposals of a factory.

    Attributes:
        excess: Expected further units beyond the room if an offer of each quantity from 0 were accepted,
            ``[S, L, most + 1]``.
    """

    def __init__(self, room: Ints, most: int, proposals: int) -> None:
        self._room, self._quantities = np.maximum(_ZERO, room), _UNITS[: most + 1]
        excess = self._quantities - self._room[:, :, None]
        self.excess = np.maximum(_ZERO, excess, out=excess)
        self._most, self._capacity, self._possible = most, most * proposals + 1, 1
        self._mass: Floats | None = None  # [S · L, most + T] probability of each total of accepted units, from -most

    def add(self, seat: Ints, lead: Ints, quantity: Ints, probability: Floats) -> None:
        """Add one proposal of each of some factories: the convolution of both distributions, ``[A]`` each."""
        leads, width = self._room.shape[1], self._most + self._capacity
        if self._mass is None:
            self._mass = np.zeros((self._room.size, width))
            self._mass[:, self._most] = 1.0
        # totals that are possible now; the others have no mass and add nothing
        self._possible = min(self._capacity, self._possible + max(quantity.tolist()))
        day = seat * leads + lead  # [A]
        index = (day * width + self._most) + _NUMBERS[: self._possible, None]  # [T, A] each total among all masses
        flat = self._mass.reshape(-1)
        mass = probability * flat.take(index - quantity) + (1.0 - probability) * flat.take(index)
        flat[index] = mass
        over = _UNITS[: self._possible, None] - self._room.reshape(-1).take(day)  # [T, A]
        # [T, A, Q] units beyond the room with the offer accepted, minus those without it
        more = over[:, :, None] + self._quantities
        np.maximum(_ZERO, more, out=more)
        more -= np.maximum(_ZERO, over, out=over)[:, :, None]
        more *= mass[:, :, None]
        # averaged over the totals: a sum over the first axis adds its rows in order, [A, Q]
        self.excess.reshape(len(self._mass), -1)[day] = np.add.reduce(more, axis=0)
