"""L1, baseline: decisions without any model of the partner.

Prices concede over the rounds from the favourable end of the band to the goal's reservation price; a sale is
offered for the least filled delivery day with all that is left of it; a purchase is spread evenly over the
suppliers.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ..arrays import Array, Floats, Ints
from ..columns import ThreadBatch
from ..parameters import ParameterColumns
from ..plan import GoalsBatch, PlanBatch, band_price

__all__ = [
    "allot",
    "baseline_proposals",
    "curve",
    "power",
    "progress",
    "progress_at",
    "reservation",
    "start_price",
]

_LARGEST: Final = 2.0**53
"""Up to here a float holds every whole number."""


def progress(threads: ThreadBatch, *, proposing: bool) -> Floats:
    """Return the relative time of threads, 1 in their last effective decision, ``[M]``.

    The side that opens has its last proposal answered in the last round; the other side's proposal of the
    last round is never answered, so its last effective one is a round earlier.
    """
    last = threads.n_rounds - 1
    if proposing:
        last = last - ~threads.opens
    return np.where(last > 0, np.minimum(1.0, threads.round / np.maximum(1, last)), 1.0)


def progress_at(round_: int, n_rounds: int, *, opens: bool, proposing: bool) -> float:
    """Return `progress` of one thread from its round, its rounds and who opens it."""
    last = n_rounds - 1 - (1 if proposing and not opens else 0)
    return min(1.0, round_ / last) if last > 0 else 1.0


def power(base: Array, exponent: Array) -> Floats:
    """Return powers of relative times, ``[M]``.

    Python's own power, not numpy's, whose last bit depends on the vector instructions of the machine.
    """
    return np.array([b**e for b, e in zip(base.tolist(), exponent.tolist(), strict=True)], np.float64)


def reservation(
    selling: bool,
    start: Array,
    end: Array,
    conceded: Array,
    *,
    patience: Array | float = 1.0,
    urgency: Array | float = 0.0,
) -> Floats:
    """Return limit prices in whole units: the least of a sale, or the most of a purchase; shapes broadcast.

    Args:
        selling: Which side this is.
        start: Price that the concession starts from (`start_price`).
        end: Price that it ends at, the goal's.
        conceded: Share of the concession: the relative time to the power of the side's curve.
        patience: Of sales, from 0 (the final price at once) to 1.
        urgency: Of purchases, the least share of the concession.
    """
    if selling:
        return np.asarray(np.rint(end + np.maximum(0.0, start - end) * (1.0 - conceded) * patience))
    return np.asarray(np.rint(np.minimum(end, start + (end - start) * np.maximum(urgency, conceded))))


def curve(selling: bool, parameters: ParameterColumns) -> Floats:
    """Return the exponents of the side's concession."""
    return parameters.sell_curve if selling else parameters.buy_curve


def start_price(selling: bool, agenda: Ints, parameters: ParameterColumns) -> Floats:
    """Return the price that the concession starts from, ``[M]``, given the side's agendas ``[M, 6]``."""
    return band_price(agenda, parameters.sell_start if selling else parameters.buy_start)


def allot(selling: bool, room: Ints, count: Ints, quantity_max: Ints) -> tuple[Ints, Ints]:
    """Return lead and quantity of the baseline's proposals to each factory's threads in order; 0 units for none.

    A sale takes all that is left of the least filled delivery day, so that nothing is offered twice; a purchase takes
    an equal share of the first delivery day that needs any.

    Args:
        selling: Which side this is.
        room: Units that may still be offered, ``[S, H + 1]``.
        count: Threads of each factory, ``[S]``.
        quantity_max: The largest legal quantity, ``[S]``.

    Returns:
        Leads and quantities, ``[S, K]`` each, K the most threads of a factory.
    """
    left, seats = room.copy(), np.arange(len(room))
    most = int(count.max(initial=0))
    leads, quantities = np.zeros((2, len(room), most), np.int64)
    for k in range(most):
        lead = left.argmax(1) if selling else (left > 0).argmax(1)
        units = np.where(k < count, left[seats, lead], 0)
        part = units if selling else -(-units // np.maximum(1, count - k))
        given = units > 0
        leads[:, k], quantities[:, k] = lead, np.where(given, np.minimum(part, quantity_max), 0)
        left[seats, lead] -= np.where(given, part, 0)
    return leads, quantities


def baseline_proposals(
    threads: ThreadBatch,
    rank: Array,
    room: Ints,
    goals: GoalsBatch,
    day: Ints,
    agenda: Ints,
    parameters: ParameterColumns,
    *,
    selling: bool,
) -> PlanBatch:
    """Return the baseline's proposals to threads of one side; nothing is accepted.

    Args:
        threads: Threads that need a proposal, their seats being rows of what follows.
        rank: Index of each among its factory's threads here, ``[M]``.
        room: Units that may still be offered, ``[S, H + 1]``.
        goals: Goals, S rows.
        day: Today, ``[S]``.
        agenda: Legal ranges of the side, ``[S, 6]``.
        parameters: S rows.
        selling: Which side this is.
    """
    seat = threads.seat
    count = np.bincount(seat, minlength=len(room))
    leads, quantities = allot(selling, room, count, agenda[:, 1])
    lead, quantity = leads[seat, rank], quantities[seat, rank]
    p = parameters.take(seat)
    start, end = start_price(selling, agenda[seat], p), goals.side(selling=selling)[1][seat, lead]
    conceded = power(progress(threads, proposing=True), curve(selling, p))
    price = reservation(selling, start, end, conceded, urgency=p.buy_urgency)
    price = np.fmin(np.fmax(price, -_LARGEST), _LARGEST)  # goals may be of any size, and a price need not be legal yet
    offer = np.stack([quantity, day[seat] + lead, price.astype(np.int64)], axis=1)
    return PlanBatch(np.zeros(len(seat), np.bool_), quantity > 0, offer)
