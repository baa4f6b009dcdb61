"""Observations of the environments: vectors of days and of threads, and the state that a central critic sees.

The features are those of `litaagent_std.policy.features`, as in live play and in the data pipeline. Here they are
concatenated and averaged over buckets of delivery days, so that a vector's length depends neither on the horizon nor on
the number of partners.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from litaagent_std.policy.arrays import Floats32, Ints, true_rows
from litaagent_std.policy.buckets import buckets
from litaagent_std.policy.columns import BUY, SELL, CalendarBatch, Histories, ObservationBatch, ThreadBatch
from litaagent_std.policy.features import DAY_FEATURES, LIMIT, THREAD_FEATURES, day_features, thread_features
from litaagent_std.policy.parameters import LEVELS

__all__ = ["DAY_VIEW", "STATE_VIEW", "THREAD_VIEW", "day_views", "level_index", "round_views"]

_BUCKETS: Final = ("today", "soon", "mid", "far")
_KEPT: Final = 2
"""Number of a thread's latest offers in its view."""
_NOW: Final = ("bought", "sold", "net")
_SIDES: Final = ("buying", "selling")
_SUMMARY: Final = ("threads", "offers", "mean_advantage", "best_advantage", "offered_quantity")
_SEEN: Final = ("progress", "days_left", "cash", "stock_in", "margin", "price_out_change_10", "shortfall_penalty_mean")
_SEEN_COLUMNS: Final = tuple(DAY_FEATURES["x_static"].index(name) for name in _SEEN)
_OFFER_ADVANTAGE: Final = THREAD_FEATURES["x_thread"].index("offer_advantage")
_OFFER_QUANTITY: Final = THREAD_FEATURES["x_thread"].index("offer_quantity")

DAY_VIEW: Final = (
    *(f"level_{name}" for name in LEVELS),
    *DAY_FEATURES["x_role"],
    *DAY_FEATURES["x_static"],
    *(f"{name}_{bucket}" for bucket in _BUCKETS for name in DAY_FEATURES["x_temporal"]),
)
"""Names of a day's observation, in order."""

THREAD_VIEW: Final = (
    *(f"level_{name}" for name in LEVELS),
    *(f"day_{name}" for name in _SEEN),
    *(f"{name}_now_{bucket}" for bucket in _BUCKETS for name in _NOW),
    *THREAD_FEATURES["x_thread"],
    *THREAD_FEATURES["ranges"],
    *(f"partner_{name}" for name in THREAD_FEATURES["x_partner"]),
    *(f"offer_{index}_{name}" for index in range(_KEPT) for name in (*THREAD_FEATURES["history"], "there")),
)
"""Names of a thread's observation, in order."""

STATE_VIEW: Final = (
    *DAY_VIEW,
    *(f"{name}_now_{bucket}" for bucket in _BUCKETS for name in _NOW),
    "round",
    *(f"{side}_{name}" for side in _SIDES for name in _SUMMARY),
)
"""Names of the state that a central critic sees beside a thread's own view: the factory's day and all its threads."""


def level_index(obs: ObservationBatch) -> Ints:
    """Return the level of each factory in the chain, an index of `LEVELS`, ``[B]``; see `parameters.level_name`."""
    return np.where(obs.last_level, 2, np.where(obs.first_level, 0, 1))


def day_views(obs: ObservationBatch) -> Floats32:
    """Return the observations of day starts, float32 ``[B, len(DAY_VIEW)]``."""
    features = day_features(obs)
    levels = np.eye(len(LEVELS), dtype=np.float32)[level_index(obs)]  # [B, 3] one-hot
    temporal = _by_bucket(features.x_temporal, obs.horizon)
    return np.concatenate((levels, features.x_role, features.x_static, temporal), axis=1)


def _by_bucket(columns: Floats32, horizon: Ints) -> Floats32:
    """Average columns ``[B, H + 1, c]`` over the delivery days of each bucket; buckets that a horizon lacks are 0.

    Returns:
        ``[B, len(_BUCKETS) · c]``, bucket by bucket.
    """
    out = np.zeros((len(columns), len(_BUCKETS), columns.shape[2]), np.float32)
    for length in np.unique(horizon).tolist():
        rows = true_rows(horizon == length)
        for index, group in enumerate(buckets(length)):
            out[rows, index] = columns[rows, group.start : group.stop].mean(1)
    return out.reshape(len(columns), -1)


def _now(obs: ObservationBatch, calendar: CalendarBatch) -> Floats32:
    """Return units bought, sold and their difference by bucket, as agreed at this moment, over the lines."""
    bought, sold = calendar.bought.astype(np.float32), calendar.sold.astype(np.float32)
    # [S, H + 1, 3]
    units = np.stack((bought, sold, bought - sold), axis=2) / obs.n_lines[:, None, None].astype(np.float32)
    return np.clip(_by_bucket(np.asarray(units, np.float32), obs.horizon), -LIMIT, LIMIT)


def round_views(
    threads: ThreadBatch, made: Histories, obs: ObservationBatch, day: Floats32, calendar: CalendarBatch
) -> tuple[Floats32, Floats32]:
    """Return the views of a round of S factories with M threads.

    Args:
        threads: The threads that need a decision, those of a factory together.
        made: The offers made in them so far.
        obs: The observations at day start, S rows.
        day: Their `day_views`.
        calendar: The commitments at this moment.

    Returns:
        The threads' views ``[M, len(THREAD_VIEW)]`` and the states ``[S, len(STATE_VIEW)]``.
    """
    now = _now(obs, calendar)
    features = thread_features(threads, obs, *made)
    start = len(LEVELS) + len(DAY_FEATURES["x_role"])
    seen = day[:, [start + column for column in _SEEN_COLUMNS]]  # [S, len(_SEEN)] the day's features that matter here
    # [M, _KEPT · (features + 1)] the latest offers, each with a flag whether there is one
    history, mask = features.padded(_KEPT)
    offers = np.concatenate((history, mask[:, :, None].astype(np.float32)), axis=2).reshape(len(threads), -1)
    shared = np.concatenate((day[:, : len(LEVELS)], seen, now), axis=1)[threads.seat]
    views = np.concatenate((shared, features.x_thread, features.ranges, features.x_partner, offers), axis=1)
    states = np.concatenate((day, now, _summary(threads, features.x_thread, len(obs))), axis=1)
    return views.astype(np.float32), states.astype(np.float32)


def _summary(threads: ThreadBatch, x_thread: Floats32, seats: int) -> Floats32:
    """Return what the threads of each factory add up to, ``[S, 1 + 2 · len(_SUMMARY)]``."""
    out = np.zeros((seats, 1 + len(_SIDES) * len(_SUMMARY)), np.float32)
    out[:, 0] = threads.round[np.searchsorted(threads.seat, np.arange(seats))] / 20.0  # of the first thread
    for side in (BUY, SELL):
        own = threads.selling == side
        offered = true_rows(own & threads.answers)
        seat, column = threads.seat[offered], 1 + side * len(_SUMMARY)
        count = np.bincount(seat, minlength=seats)  # [S] offers on the table
        some = count > 0
        # sums in single precision and in the order of the threads
        total, best = np.zeros(seats, np.float32), np.full(seats, -np.inf, np.float32)
        units = np.zeros(seats, np.float32)
        np.add.at(total, seat, x_thread[offered, _OFFER_ADVANTAGE])
        np.maximum.at(best, seat, x_thread[offered, _OFFER_ADVANTAGE])
        np.add.at(units, seat, x_thread[offered, _OFFER_QUANTITY])
        out[:, column] = np.bincount(threads.seat[own], minlength=seats) / 6.0
        out[:, column + 1] = count / 6.0
        out[some, column + 2] = total[some] / count[some].astype(np.float32)
        out[some, column + 3] = best[some]
        out[:, column + 4] = np.minimum(LIMIT, units)
    return out
