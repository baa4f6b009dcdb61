"""L2's residuals: how a network changes what the heuristic L2 says, ``a_final = clip(a_base + Δa, mask)``.

A network sees and changes goals by delivery bucket, the heuristic sets them by lead. `goal_base` sums the heuristic's
goals up by bucket, which is the base of residuals in training and in play; `shift_goals` changes goals by lead. Zeros
change nothing, to the last bit.

A residual has ``7·buckets + 1`` components, see `goal_names`: quantities in lines, prices in widths of the legal band,
urgency as it is, and logarithms of the factors of the values of capacity and of input.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np

from ..arrays import Array, Bools, Floats, Floats32, Ints
from ..buckets import buckets, n_buckets
from ..columns import BUY, SELL, ObservationBatch
from ..networks.inputs import GOAL_CAP
from ..plan import GoalsBatch

__all__ = ["BUCKETS", "SIDES", "goal_base", "goal_names", "shift_goals"]

BUCKETS: Final = ("today", "soon", "mid", "far")
"""Names of the delivery buckets."""
SIDES: Final = ("buy", "sell")
PARTS: Final = ("quantity", "price", "urgency")
_LARGEST: Final = 1e6
"""Residuals are clipped to it, so that whole numbers can be made of them."""


def goal_names(count: int) -> tuple[str, ...]:
    """Return the names of a residual's components, in order.

    Args:
        count: Number of buckets.
    """
    names = BUCKETS[:count] + tuple(str(bucket) for bucket in range(len(BUCKETS), count))
    by_side = tuple(f"{side}_{part}_{name}" for part in PARTS for side in SIDES for name in names)
    return (*by_side, *(f"hold_{name}" for name in names), "unit_value")


@cache
def _pool(horizon: int, width: int) -> Floats:
    """Return which leads are in which bucket, ``[width, buckets]``; leads beyond the horizon are in the last one."""
    pool = np.zeros((width, n_buckets(horizon)))
    for index, leads in enumerate(buckets(horizon)):
        pool[leads.start : leads.stop, index] = 1.0
    pool[horizon + 1 :, -1] = 1.0
    pool.flags.writeable = False  # all callers share it
    return pool


def _exists(obs: ObservationBatch, width: int) -> Bools:
    """Return which delivery days exist, ``[B, width]``."""
    lead = np.arange(width)
    return np.asarray((lead < obs.days_left[:, None]) & (lead <= obs.horizon[:, None]))


def goal_base(goals: GoalsBatch, obs: ObservationBatch, horizon: int) -> Floats32:
    """Return goals by bucket in raw units, ``[B, 7·buckets + 1]``, in the order of `goal_names`.

    Quantities are sums over the delivery days of a bucket, prices, urgency and values of capacity are means.

    Args:
        goals: The heuristic's goals of the day's start, B rows.
        obs: The observations.
        horizon: The horizon that defines the buckets.
    """
    width = goals.p_buy.shape[1]
    exists = _exists(obs, width)
    pool = _pool(horizon, width)
    counts = np.maximum(1.0, exists @ pool)  # [B, buckets] delivery days that exist

    def total(values: Array) -> Floats:
        return np.asarray((values * exists) @ pool)

    parts = [total(goals.q_buy), total(goals.q_sell)]
    parts += [total(values) / counts for values in (goals.p_buy, goals.p_sell, goals.u_buy, goals.u_sell, goals.hold)]
    return np.concatenate([*parts, goals.unit_value[:, None]], axis=1).astype(np.float32)


def shift_goals(goals: GoalsBatch, obs: ObservationBatch, residual: Array, horizon: int) -> GoalsBatch:
    """Return goals changed by residuals.

    A bucket's units keep the heuristic's proportions among its days. Prices change by whole units, because the
    heuristic's are whole and a limit slightly beyond a whole price would exclude that price; see `_prices` for their
    bounds.

    Args:
        goals: The heuristic's goals of this moment, B rows.
        obs: The observations.
        residual: Residuals, ``[B, 7·buckets + 1]``.
        horizon: The horizon that defines the buckets.
    """
    width = goals.p_buy.shape[1]
    count = n_buckets(horizon)
    change = np.clip(np.nan_to_num(np.asarray(residual, np.float64)), -_LARGEST, _LARGEST)
    pool, exists = _pool(horizon, width), _exists(obs, width)
    by_side = change[:, : 6 * count].reshape(-1, 3, 2, count)  # [B, part, side, bucket]
    by_lead = by_side @ pool.T  # [B, part, side, lead]
    hold = change[:, 6 * count : 7 * count] @ pool.T  # [B, lead]
    return replace(
        goals,
        q_buy=_units(goals.q_buy, by_side[:, 0, BUY], obs, exists, pool),
        q_sell=_units(goals.q_sell, by_side[:, 0, SELL], obs, exists, pool),
        p_buy=_prices(goals.p_buy, by_lead[:, 1, BUY], obs, BUY),
        p_sell=_prices(goals.p_sell, by_lead[:, 1, SELL], obs, SELL),
        u_buy=_urgency(goals.u_buy, by_lead[:, 2, BUY], obs, BUY),
        u_sell=_urgency(goals.u_sell, by_lead[:, 2, SELL], obs, SELL),
        hold=goals.hold * np.exp(np.clip(hold, -10.0, 10.0)),
        unit_value=goals.unit_value * np.exp(np.clip(change[:, -1], -10.0, 10.0)),
    )


def _units(units: Ints, change: Floats, obs: ObservationBatch, exists: Bools, pool: Floats) -> Ints:
    """Return units by lead ``[B, L]`` whose sums by bucket change by residuals ``[B, buckets]`` in lines."""
    changed = np.rint(change * obs.n_lines[:, None])  # [B, buckets] in units
    if not changed.any():
        return units
    out = units.copy()
    for bucket in range(pool.shape[1]):
        inside = exists & (pool[:, bucket] > 0)
        own = np.where(inside, units, 0)
        total = own.sum(1)
        most = np.floor(GOAL_CAP * inside.sum(1) * obs.n_lines)
        wanted = np.clip(total + changed[:, bucket], 0, np.maximum(most, total)).astype(np.int64)
        # shares by lead: the heuristic's own, or equal ones where it wants nothing
        share = np.where(total[:, None] > 0, own, inside.astype(np.int64))
        whole = np.maximum(1, share.sum(1))
        # units up to each lead, rounded, so that they add up to what is wanted
        upto = (2 * wanted[:, None] * np.cumsum(share, axis=1) + whole[:, None]) // (2 * whole[:, None])
        split = np.diff(upto, axis=1, prepend=0)
        rows = (wanted != total) & inside.any(1)
        out = np.where(rows[:, None] & inside, split, out)
    return np.asarray(out, np.int64)


def _prices(prices: Floats, change: Floats, obs: ObservationBatch, side: int) -> Floats:
    """Return prices ``[B, L]`` changed by residuals ``[B, L]`` in widths of the legal band.

    A limit may lie a width beyond the worst legal price: offers stay legal, and the concession ends earlier.
    """
    low, high = obs.agenda[:, side, 4, None], obs.agenda[:, side, 5, None]
    width = high - low
    moved = prices + np.rint(change * width)
    low, high = (low - width, high) if side == SELL else (low, high + width)
    within = np.minimum(np.maximum(moved, np.minimum(low, prices)), np.maximum(high, prices))
    return np.where(obs.trades[:, side, None], within, prices)


def _urgency(urgency: Floats, change: Floats, obs: ObservationBatch, side: int) -> Floats:
    moved = np.minimum(1.0, np.maximum(0.0, urgency + change))
    return np.where(obs.trades[:, side, None] & (change != 0.0), moved, urgency)
