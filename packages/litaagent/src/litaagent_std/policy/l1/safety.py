"""L1, hard bounds: what may be bought and sold, and the clip that everything leaving the agent passes.

Hard bounds hold at every setting: an offer consists of integers inside the agenda; what is accepted for a day
never exceeds the lines left free by that day's commitments; purchases never exceed free cash. Soft bounds may be
exceeded within a risk budget: outstanding proposals, and sales beyond input that is in stock or contracted.
With a budget of 0 the soft bounds are hard too.
"""

from __future__ import annotations

from dataclasses import astuple

import numpy as np

from ..arrays import Bools, Ints, every_term
from ..columns import BUY, SELL, CalendarBatch, ObservationBatch
from ..observation import Agenda, Offer
from ..plan import BoundsBatch

__all__ = ["affordable", "bounds", "clip", "clip_offer", "flows", "legal"]


def bounds(obs: ObservationBatch, calendar: CalendarBatch, persistent: Bools) -> BoundsBatch:
    """Compute the bounds from the days' observations and the commitments of this moment.

    Leads beyond the agenda or the last day get 0.

    Args:
        obs: B observations.
        calendar: Commitments of this moment.
        persistent: Whether production leaves the stock unchanged, ``[B]``.
    """
    incoming, outgoing = flows(obs, calendar)
    lines = np.maximum(0, obs.n_lines[:, None] - outgoing)  # [B, H + 1]
    spare = _spare_input(obs.stock_in[:, None], incoming, outgoing, persistent)
    covered = np.maximum(0, np.minimum(lines, spare))
    # [B, H + 1] leads for which sales can be agreed
    open_ = np.arange(lines.shape[1]) <= np.minimum(obs.horizon, obs.agenda[:, SELL, 3] - obs.day)[:, None]
    open_ = open_ & obs.trades[:, SELL, None]
    return BoundsBatch(lines * open_, covered * open_, spare, affordable(obs, calendar))


def flows(obs: ObservationBatch, calendar: CalendarBatch) -> tuple[Ints, Ints]:
    """Return the units that come in and go out by lead, today's exogenous contracts included, ``[B, H + 1]`` each."""
    incoming, outgoing = calendar.bought.copy(), calendar.sold.copy()
    incoming[:, 0] += obs.exogenous_in
    outgoing[:, 0] += obs.exogenous_out
    return incoming, outgoing


def _spare_input(stock: Ints, incoming: Ints, outgoing: Ints, persistent: Bools) -> Ints:
    """Return, by lead, the input that is in stock or contracted and not yet promised to a sale, ``[B, H + 1]``."""
    net = incoming - outgoing
    kept: Ints = stock + net
    if np.count_nonzero(persistent) == len(persistent):
        return kept
    # A sale on one day takes input from every later day: the minimum over the later days decides.
    total = stock + np.cumsum(net, axis=1)
    least = np.minimum.accumulate(total[:, ::-1], axis=1)[:, ::-1]
    return np.where(persistent[:, None], kept, least)


def affordable(obs: ObservationBatch, calendar: CalendarBatch) -> Ints:
    """Return how many units can be bought at the highest legal price with cash that nothing else claims, ``[B]``.

    Claims are the standing purchases of the whole horizon, today's forced purchase, and the production of
    what is sold today.
    """
    if not np.count_nonzero(obs.trades[:, BUY]):
        return np.zeros(len(obs), np.int64)
    claimed = np.cumsum(calendar.bought_value, axis=1)[:, -1] + obs.exogenous_in_value
    claimed = claimed + obs.production_cost * np.minimum(obs.n_lines, calendar.sold[:, 0] + obs.exogenous_out)
    unit = obs.agenda[:, BUY, 5] + obs.production_cost
    units = np.maximum(0.0, (obs.cash - claimed) // np.where(unit > 0, unit, 1.0))
    return np.where(obs.trades[:, BUY], units, 0.0).astype(np.int64)


def clip(offer: Ints, agenda: Ints, most: Ints) -> tuple[Ints, Bools]:
    """Return offers clipped to their agendas and to a greatest quantity, and whether anything legal is left.

    Args:
        offer: Quantity, delivery day and unit price, ``[M, 3]``.
        agenda: Ends of the legal ranges, ``[M, 6]``.
        most: The greatest quantity, ``[M]``.
    """
    clipped = np.minimum(np.maximum(offer, agenda[:, 0::2]), agenda[:, 1::2])
    quantity = np.minimum(np.minimum(offer[:, 0], most), agenda[:, 1])
    clipped[:, 0] = quantity
    return clipped, np.asarray(quantity >= agenda[:, 0])


def clip_offer(offer: Offer, agenda: Agenda, most: int) -> Offer | None:
    """Return one offer clipped to its agenda and to a greatest quantity; None when nothing legal is left."""
    clipped, left = clip(np.array([offer], np.int64), np.array([astuple(agenda)]), np.array([most]))
    return Offer(*clipped[0].tolist()) if left[0] else None


def legal(offer: Ints, agenda: Ints) -> Bools:
    """Return whether offers ``[M, 3]`` lie inside their agendas ``[M, 6]``, ``[M]``."""
    return every_term((offer >= agenda[:, 0::2]) & (offer <= agenda[:, 1::2]))
