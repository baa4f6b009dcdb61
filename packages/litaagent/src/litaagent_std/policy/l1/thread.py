"""L1's baseline for threads alone, from the day's observation and the thread: the base of residuals.

In play the baseline knows the deals of the day so far. A record does not show which of them an agent knew when it
decided, so here the day is planned once, at its start: every partner gets its share of the day's goal, and a thread's
round moves only the price. The same plan is made live and from a record, so that a residual means the same in training
and in play.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from ..arrays import Bools, Floats, Ints
from ..columns import BUY, SELL, Batch, ObservationBatch, ThreadBatch
from ..parameters import ParameterColumns
from ..plan import BoundsBatch, GoalsBatch
from .baseline import allot, curve, power, progress, reservation, start_price

__all__ = ["ACCEPT", "END", "REJECT", "DayPlan", "day_start_plan", "thread_baseline"]

ACCEPT: Final = 0
REJECT: Final = 1
END: Final = 2


@dataclass(frozen=True, slots=True, eq=False)
class DayPlan(Batch):
    """What L1's baseline does on B days, by side.

    Attributes:
        end: Price that the concession ends at, ``[B, 2, H + 1]``.
        room: Most units to accept, ``[B, 2, H + 1]``.
        most: Most units to offer, ``[B, 2, H + 1]``.
        lead: Lead of each partner's share, ``[B, 2, P]``.
        quantity: Its quantity, ``[B, 2, P]``; 0 if it has no share.
    """

    end: Floats
    room: Ints
    most: Ints
    lead: Ints
    quantity: Ints


def day_start_plan(obs: ObservationBatch, limits: BoundsBatch, goals: GoalsBatch) -> DayPlan:
    """Plan both sides of days.

    Args:
        obs: B observations.
        limits: L1's bounds at the day's start.
        goals: The heuristic goals at the day's start.
    """
    width = max(obs.suppliers.there.shape[1], obs.consumers.there.shape[1])
    shape = (len(obs), 2, width)
    lead, quantity = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    buy = np.broadcast_to(limits.buy[:, None], limits.lines.shape)
    most = np.stack([buy, limits.lines], axis=1)
    units = np.stack([goals.q_buy, goals.q_sell], axis=1)
    for side in (BUY, SELL):
        partners = obs.partners(side)
        alive = partners.there & ~partners.bankrupt & obs.trades[:, side, None]  # [B, P]
        leads, shares = allot(side == SELL, units[:, side], alive.sum(1), obs.agenda[:, side, 1])
        row, column = np.nonzero(alive)
        rank = (np.cumsum(alive, axis=1) - 1)[row, column]
        lead[row, side, column], quantity[row, side, column] = leads[row, rank], shares[row, rank]
    return DayPlan(np.stack([goals.p_buy, goals.p_sell], axis=1), np.minimum(units, most), most, lead, quantity)


def thread_baseline(
    threads: ThreadBatch, obs: ObservationBatch, plan: DayPlan, parameters: ParameterColumns
) -> tuple[Ints, Ints]:
    """Decide threads, each alone.

    Args:
        threads: M threads, their seats being rows of the other arguments.
        obs: The observations.
        plan: The plans of their days.
        parameters: The parameters.

    Returns:
        Operations `ACCEPT`, `REJECT` or `END`, ``[M]``, and counter-offers: quantity, lead and unit price, ``[M, 3]``.
        There is always a counter-offer, also beside an acceptance (what would be offered instead) and an end (the least
        that may be offered, at the price of this round): a residual needs something to be added to.
    """
    seat, side = threads.seat, threads.selling.astype(np.int64)
    agenda, day = obs.agenda[seat, side], obs.day[seat]
    at = (seat, side, threads.partner)
    lead, quantity = plan.lead[at], plan.quantity[at]
    quantity = np.minimum(np.minimum(quantity, plan.most[seat, side, lead]), agenda[:, 1])
    none = quantity < agenda[:, 0]
    soonest = agenda[:, 2] - day
    lead, quantity = np.where(none, soonest, lead), np.where(none, agenda[:, 0], quantity)
    price = _limit(threads, agenda, plan.end[seat, side, lead], parameters, proposing=True)
    counter = np.stack(
        [
            quantity,
            np.clip(lead, soonest, agenda[:, 3] - day),
            np.clip(price, agenda[:, 4], agenda[:, 5]).astype(np.int64),
        ],
        axis=1,
    )
    accepted = _acceptable(threads, agenda, day, plan, parameters)
    return np.where(accepted, ACCEPT, np.where(none, END, REJECT)), counter


def _limit(threads: ThreadBatch, agenda: Ints, end: Floats, parameters: ParameterColumns, *, proposing: bool) -> Floats:
    """Return the limit prices of both sides, ``[M]``."""
    p, time = parameters.take(threads.seat), progress(threads, proposing=proposing)
    limits = [
        reservation(
            selling, start_price(selling, agenda, p), end, power(time, curve(selling, p)), urgency=p.buy_urgency
        )
        for selling in (False, True)
    ]
    return np.where(threads.selling, limits[1], limits[0])


def _acceptable(threads: ThreadBatch, agenda: Ints, day: Ints, plan: DayPlan, parameters: ParameterColumns) -> Bools:
    """Return which offers are legal, at our limit price or better, and within the room of their delivery day."""
    offer, side = threads.offer, threads.selling.astype(np.int64)
    lead = offer[:, 1] - day
    inside = threads.answers & (lead >= 0) & (lead < plan.end.shape[2])
    inside &= ((offer >= agenda[:, 0::2]) & (offer <= agenda[:, 1::2])).all(1)
    at = (threads.seat, side, np.where(inside, lead, 0))
    limit = _limit(threads, agenda, plan.end[at], parameters, proposing=False)
    good = np.where(threads.selling, offer[:, 2] >= limit, offer[:, 2] <= limit)
    return np.asarray(inside & good & (offer[:, 0] <= plan.room[at]))
