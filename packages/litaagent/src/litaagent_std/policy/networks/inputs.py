"""Inputs of the networks beyond the features: goals, baseline decisions, offers and rounds, dimensionless.

Training and play call the same functions. Quantities are divided by the lines, delivery days by the horizon, prices
are relative to the trading price in steps of a tenth, as in the history of a thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from ..arrays import Array, Floats, Floats32
from ..buckets import buckets
from ..features import DAY_FEATURES, THREAD_FEATURES

__all__ = [
    "ALPHA_LIMIT",
    "ALPHA_STEP",
    "BASELINE_SIZE",
    "BASE_LOGIT",
    "GOAL_CAP",
    "GOAL_STEPS",
    "L4_SIZE",
    "MASKED",
    "OFFER_SIZE",
    "OFFER_STEPS",
    "OPERATIONS",
    "PRICE_UNIT",
    "ThreadColumns",
    "band_columns",
    "base_inputs",
    "baseline_inputs",
    "coordinator_inputs",
    "goal_inputs",
    "offer_inputs",
    "spread",
    "thread_columns",
]


OPERATIONS: Final = ("accept", "reject", "end")
"""Operations of a thread in the order of their codes."""
GOAL_CAP: Final = 3.0
"""The most units of a goal, in full days of production per delivery day: the league's largest offer is three."""
GOAL_STEPS: Final = (0.3, 0.5, 0.5)
"""Steps of L2's exploration: of quantities in lines, of prices in widths of the band, of urgency and logarithms."""
OFFER_STEPS: Final = (0.2, 0.5)
"""Steps of L3's exploration: of quantities in lines, of prices in widths of the band."""
BASE_LOGIT: Final = 6.0
"""Bias of the heuristic's operation and delivery day in L3's logits: a new network follows it 99 times in 100."""
PRICE_UNIT: Final = 0.1
"""Relative prices are in tenths of the trading price, the width of the league's band on either side."""
MASKED: Final = -1e9
"""Logit of what is not legal; finite, so that nothing becomes NaN."""
OFFER_SIZE: Final = 4
BASELINE_SIZE: Final = 7
ROUND_SIZE: Final = 9
"""Inputs of L4 that compare a thread's offer with the others of its round, see `coordinator_inputs`."""
L4_SIZE: Final = ROUND_SIZE + len(THREAD_FEATURES["x_thread"]) + len(THREAD_FEATURES["x_partner"])
"""All inputs of L4 for a thread."""
ALPHA_LIMIT: Final = 2.0
"""Largest logarithm of α."""
ALPHA_STEP: Final = 1.0
"""Step of L4's exploration, of the logarithm of α."""


class ThreadColumns(NamedTuple):
    """Columns of the thread's arrays that the networks use by name."""

    mine: int
    history_lead: int
    history_amounts: tuple[int, int, int]
    answers: int
    offer_lead: int
    offer_amounts: tuple[int, int, int]
    lead_min: int
    lead_max: int


@lru_cache(maxsize=1)
def thread_columns() -> ThreadColumns:
    """Return the columns by name, whatever their order."""
    history, now, ranges = (THREAD_FEATURES[name].index for name in ("history", "x_thread", "ranges"))
    return ThreadColumns(
        history("mine"),
        history("lead"),
        (history("quantity"), history("lead"), history("price")),
        now("answers"),
        now("offer_lead"),
        (now("offer_quantity"), now("offer_lead"), now("offer_price")),
        ranges("lead_min"),
        ranges("lead_max"),
    )


@lru_cache(maxsize=1)
def band_columns() -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the columns of `x_static` with the legal price bands: the low ends and the high ends, buy and sell."""
    column = DAY_FEATURES["x_static"].index
    return (column("buy_price_min"), column("sell_price_min")), (column("buy_price_max"), column("sell_price_max"))


def base_inputs(base: Array, lines: Array, usual: Array) -> Floats32:
    """Return the heuristic's goals without units, ``[N, 7·B + 1]``.

    Args:
        base: Raw goals by bucket, see `l2.residual.goal_base`, ``[N, 7·B + 1]``.
        lines: ``[N]``.
        usual: Trading prices of input and output, ``[N, 2]``.
    """
    count, size = base.shape
    by_side = base[:, : size - 1 - size // 7].reshape(count, 3, 2, -1)
    usual = np.maximum(usual, np.float32(1e-6))[:, :, None]
    units = by_side[:, 0] / np.maximum(lines, np.float32(1.0))[:, None, None]
    relative = np.where(by_side[:, 1] > 0, (by_side[:, 1] / usual - 1.0) / PRICE_UNIT, 0.0)
    values = base[:, size - 1 - size // 7 :] / usual[:, 1]  # of capacity and input, in prices of the output
    parts = [part.reshape(count, -1) for part in (units, relative, by_side[:, 2], values)]
    return np.asarray(np.clip(np.concatenate(parts, axis=1), -10.0, 10.0), np.float32)


def goal_inputs(quantity: Array, price: Array, lines: Array, usual: Array) -> Floats32:
    """Return goals as dimensionless inputs, ``[N, 4·B]``.

    Args:
        quantity: Units, ``[N, 2, B]``, buying and selling.
        price: Unit prices, likewise; 0 if there is none.
        lines: ``[N]``.
        usual: Trading prices of input and output, ``[N, 2]``.
    """
    usual = np.maximum(usual, 1e-6)[:, :, None]
    units = quantity / np.maximum(lines, 1.0)[:, None, None]
    relative = np.where(price > 0, (price / usual - 1.0) / PRICE_UNIT, 0.0)
    # [N, 2, 2, B] units and prices, buying and selling
    both = np.clip(np.stack([units, relative], axis=1), -10.0, 10.0)
    return np.asarray(both.reshape(len(quantity), -1), np.float32)


def _position(price: Array, low: Array, high: Array) -> Array:
    """Return the position of prices in their bands, 0 lowest and 1 highest, ½ in a band of one price."""
    width = (high - low).astype(np.float64)
    return np.where(width > 0, (price - low) / np.maximum(width, 1.0), 0.5)


def baseline_inputs(
    op: Array,
    offer: Array,
    low: Array,
    high: Array,
    lines: Array,
    horizon: int,
) -> Floats32:
    """Return L1's baseline decisions, ``[M, 7]``.

    Args:
        op: Operation, ``[M]``.
        offer: Quantity, lead and unit price of its counter-offer, ``[M, 3]``; a quantity below 1 where there is none.
        low: The least legal values, ``[M, 3]``.
        high: The greatest legal values, ``[M, 3]``.
        lines: ``[M]``.
        horizon: The league's horizon.
    """
    # [M] whether there is a counter-offer, [M, 3] its operation as one-hot, [M, 4] its amounts
    there = (offer[:, 0] > 0).astype(np.float64)
    chosen = np.stack([op == kind for kind in range(3)], axis=1).astype(np.float64)
    amounts = np.stack(
        [
            offer[:, 0] / np.maximum(lines, 1.0),
            offer[:, 1] / max(1, horizon),
            _position(offer[:, 2], low[:, 2], high[:, 2]),
            np.ones(len(op)),
        ],
        axis=1,
    )
    return np.asarray(np.concatenate([chosen, amounts * there[:, None]], axis=1), np.float32)


def offer_inputs(
    offer: Array,
    low: Array,
    high: Array,
    lines: Array,
    usual: Array,
    side: Array,
    horizon: int,
) -> Floats32:
    """Return offers as dimensionless inputs, scaled as in a thread's history, ``[M, 4]``.

    Args:
        offer: Quantity, lead and unit price, ``[M, 3]``.
        low: The least legal values, ``[M, 3]``.
        high: The greatest legal values, ``[M, 3]``.
        lines: ``[M]``.
        usual: Trading price of the product, ``[M]``.
        side: 0 where we buy, 1 where we sell, ``[M]``.
        horizon: The league's horizon.
    """
    position = _position(offer[:, 2], low[:, 2], high[:, 2])
    columns = (
        offer[:, 0] / np.maximum(lines, 1.0),
        offer[:, 1] / max(1, horizon),
        (offer[:, 2] / np.maximum(usual, 1e-6) - 1.0) / PRICE_UNIT,
        np.where(side == 1, position, 1.0 - position),
    )
    return np.asarray(np.clip(np.stack(columns, axis=1), -10.0, 10.0), np.float32)


def coordinator_inputs(
    offers: Array,
    surplus: Array,
    room: Array,
    time: Array,
    lines: Array | float,
    usual: Array | float,
    horizon: Array | int,
    x_thread: Array,
    x_partner: Array,
) -> Floats32:
    """Return the threads of a side's round for L4, ``[K, L4_SIZE]``.

    Args:
        offers: Quantity, lead and unit price of each thread's offer, ``[K, 3]``; a quantity of 0 where there is none.
        surplus: Value of a unit of each offer beyond our limit, ``[K]``.
        room: Units that may be agreed on each offer's delivery day, ``[K]``.
        time: Relative time of each thread, ``[K]``.
        lines: The factory's lines, one for all or ``[K]``.
        usual: The product's trading price, likewise.
        horizon: The league's horizon, likewise.
        x_thread: The threads' features, ``[K, …]``.
        x_partner: The partners' features, ``[K, …]``.
    """
    there = offers[:, 0] > 0
    lines, usual, horizon = np.maximum(lines, 1.0), np.maximum(usual, 1e-6), np.maximum(1, horizon)
    units, gain = offers[:, 0] / lines, surplus / usual / PRICE_UNIT
    free = room / lines
    columns = (
        there,
        there * units,
        there * offers[:, 1] / horizon,
        there * (offers[:, 2] / usual - 1.0) / PRICE_UNIT,
        there * gain,
        there * free,
        there * units * gain,
        there * (units <= free),
        time,
    )
    compared = np.clip(np.stack(columns, axis=1).astype(np.float64), -10.0, 10.0)
    return np.asarray(np.concatenate([compared, x_thread, x_partner], axis=1), np.float32)


def spread(by_bucket: Sequence[float] | Array, horizon: int) -> Floats:
    """Return the quantities of buckets ``[B]`` spread over their delivery days in equal whole parts ``[H + 1]``."""
    out = np.zeros(horizon + 1)
    for units, leads in zip(by_bucket, buckets(horizon), strict=True):
        for index, lead in enumerate(leads):
            out[lead] = (round(float(units)) + len(leads) - 1 - index) // len(leads)
    return out
