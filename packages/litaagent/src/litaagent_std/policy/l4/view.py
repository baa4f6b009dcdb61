"""What one side of factories knows of a round: the view that L4's heuristics share."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from ..arrays import Array, Bools, Floats, Ints
from ..l1.baseline import power
from ..l3.grid import OfferGrid
from ..l3.heuristic import Acceptance, Market
from ..l3.rounds import Rounds
from ..layers import SituationBatch
from ..plan import GoalsBatch

__all__ = ["LEADS", "SideGoals", "SideView", "conceded_with", "free_cash", "free_room"]

LEADS: Final = np.arange(1024)
"""Days until delivery, as many as a horizon may have."""
_UNUSED: Final = np.zeros((1, 1))


class SideGoals(NamedTuple):
    """What L2's goals mean for the proposals of one side of S factories; the same until the goals change.

    Attributes:
        goals: The goals.
        urgency: Urgency by lead, ``[S, H + 1]``; None if nothing is urgent.
        urgent: Share of the concession that is made at once, likewise.
        hard: Units that L1 lets one deal hold at most, ``[S, H + 1]`` or ``[S, 1]``.
        units: The same within the agenda and for days that can be agreed for, ``[S, H + 1]``.
        enough: Quantities of the grid that are not too small, ``[S, 1, Q]``.
        highest: Steps from the lowest legal price to the highest price that we would offer, ``[S, H + 1]`` or
            ``[S, 1]``.
        drop: How far prices of sales concede, ``[S, H + 1]``; of purchases unused.
        least: Of sales, the lowest price that gains something, ``[S, H + 1]``; of purchases unused.
    """

    goals: GoalsBatch
    urgency: Floats | None
    urgent: Floats | None
    hard: Ints
    units: Ints
    enough: Bools
    highest: Array
    drop: Floats
    least: Floats

    @classmethod
    def of(
        cls, situation: SituationBatch, market: Market, start: Floats, curve: Floats, shape: tuple[int, int, int]
    ) -> SideGoals:
        """Return what the goals of a round mean.

        Args:
            situation: The round.
            market: The day's markets, S rows.
            start: Prices that concessions start from, ``[S]``.
            curve: Exponents of the concession, ``[S]``.
            shape: Leads, quantities and prices of the grid of offers.
        """
        goals, bounds, (leads, quantities, _) = situation.goals, situation.day.bounds, shape
        low, high = market.price_min[:, None], market.price_max[:, None]
        urgency = urgent = None
        asked: Floats = goals.side(selling=situation.selling)[2]
        if np.count_nonzero(asked):
            urgency = asked
            if np.count_nonzero(asked == asked[:, :1]) == asked.size:  # the same for every lead
                urgent = np.broadcast_to(power(asked[:, 0], curve)[:, None], asked.shape)
            else:
                urgent = power(asked.ravel(), np.repeat(curve, asked.shape[1])).reshape(asked.shape)
        hard = bounds.lines if situation.selling else bounds.buy[:, None]
        units = np.minimum(hard, market.quantity_max[:, None]) * (LEADS[:leads] < market.n_leads[:, None])
        enough = LEADS[:quantities] >= market.quantity_min[:, None, None]
        if situation.selling:
            drop, least = np.maximum(0.0, start[:, None] - goals.p_sell), np.floor(goals.hold) + 1.0
            return cls(goals, urgency, urgent, hard, units, enough, high - low, drop, least)
        ceiling = np.minimum(np.rint(goals.p_buy), (np.ceil(goals.unit_value) - 1.0)[:, None])
        highest = np.minimum(ceiling, high) - low
        return cls(goals, urgency, urgent, hard, units, enough, highest, _UNUSED, _UNUSED)


class SideView(NamedTuple):
    """What a side knows of a round with M threads of S factories.

    Attributes:
        partner: The partner of each thread as `Acceptance` numbers it, ``[M]``.
        last_day: The last day on which it may be trusted to be solvent, ``[M]``.
        patience: How long to wait for a better price, from 0 to 1, ``[M]``; of purchases 1.
        rounds: How far the threads are, M rows.
        market: The day's markets, S rows.
        cost: Cost of one unit too many, that of a purchase without its price, ``[S]``.
        start: Prices that concessions start from, ``[S]``.
        wanted: What L2's goals mean for the side's proposals, S rows.
        grid: The offers that may be made; numbered by the brain's factories.
        acceptance: L3's probabilities; None if there is no model.
    """

    partner: Ints
    last_day: Floats
    patience: Floats
    rounds: Rounds
    market: Market
    cost: Floats
    start: Floats
    wanted: SideGoals
    grid: OfferGrid
    acceptance: Acceptance | None


def free_room(situation: SituationBatch) -> Ints:
    """Return the goals' units by lead, less our outstanding proposals, ``[S, H + 1]``."""
    room = situation.goals.side(selling=situation.selling)[0].copy()
    if np.count_nonzero(situation.pending):
        seat, partner = situation.pending.nonzero()
        offers = situation.outstanding[seat, partner]
        lead = offers[:, 1] - situation.day.obs.day[seat]
        inside = (lead >= 0) & (lead < room.shape[1])
        np.subtract.at(room, (seat[inside], lead[inside]), offers[inside, 0])
    return room


def free_cash(situation: SituationBatch) -> Ints:
    """Return the units that free cash buys, less our outstanding proposals, ``[S]``."""
    if not np.count_nonzero(situation.pending):
        return situation.day.bounds.buy.copy()
    units = (situation.outstanding[:, :, 0] * situation.pending).sum(1)
    return np.asarray(situation.day.bounds.buy - units, np.int64)


def conceded_with(conceded: Floats, situation: SituationBatch, rows: Array) -> Floats:
    """Return concessions ``[rows]`` scaled by L4's weights: a thread of greater α concedes earlier."""
    return conceded if situation.alpha is None else np.minimum(1.0, conceded * situation.alpha[rows])
