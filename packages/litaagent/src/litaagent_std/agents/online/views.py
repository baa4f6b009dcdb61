"""Inputs of policies and critics: vectors for L2, for L3 and L4, and the state that a central critic sees.

The features are those of `litaagent_std.policy.features`, as in live play and in the data pipeline. Here they are
concatenated and averaged over buckets of delivery days, so that a vector's length depends neither on the horizon nor on
the number of partners.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from litaagent_std.policy.arrays import Floats32
from litaagent_std.policy.buckets import buckets
from litaagent_std.policy.columns import ObservationBatch, histories, live_threads
from litaagent_std.policy.features import DAY_FEATURES, LIMIT, THREAD_FEATURES, day_features, thread_features
from litaagent_std.policy.observation import Calendar, Observation, ThreadObservation
from litaagent_std.policy.parameters import LEVELS, level_name

__all__ = ["DAY_VIEW", "STATE_VIEW", "THREAD_VIEW", "day_view", "round_views"]

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
"""Names of L2's inputs, in order."""

THREAD_VIEW: Final = (
    *(f"level_{name}" for name in LEVELS),
    *(f"day_{name}" for name in _SEEN),
    *(f"{name}_now_{bucket}" for bucket in _BUCKETS for name in _NOW),
    *THREAD_FEATURES["x_thread"],
    *THREAD_FEATURES["ranges"],
    *(f"partner_{name}" for name in THREAD_FEATURES["x_partner"]),
    *(f"offer_{index}_{name}" for index in range(_KEPT) for name in (*THREAD_FEATURES["history"], "there")),
)
"""Names of L3's and L4's inputs, in order."""

STATE_VIEW: Final = (
    *DAY_VIEW,
    *(f"{name}_now_{bucket}" for bucket in _BUCKETS for name in _NOW),
    "round",
    *(f"{side}_{name}" for side in _SIDES for name in _SUMMARY),
)
"""Names of the state that a central critic sees beside a thread's own view: the factory's day and all its threads."""


def day_view(obs: Observation) -> Floats32:
    """Return L2's input at day start, float32 [len(DAY_VIEW)]."""
    features = day_features(ObservationBatch.of([obs]))
    own_level = level_name(obs.level, obs.n_levels)
    level = np.array([own_level == name for name in LEVELS], np.float32)  # [3] one-hot
    temporal = _by_bucket(features.x_temporal[0], obs.horizon)
    return np.concatenate((level, features.x_role[0], features.x_static[0], temporal))


def _by_bucket(columns: Floats32, horizon: int) -> Floats32:
    """Average columns [H+1, c] over the delivery days of each bucket; buckets that a short horizon lacks are 0.

    Returns:
        [len(_BUCKETS) · c], bucket by bucket.
    """
    rows = [columns[group.start : group.stop].mean(0) for group in buckets(horizon)]
    rows += [np.zeros(columns.shape[1], np.float32)] * (len(_BUCKETS) - len(rows))
    return np.concatenate(rows).astype(np.float32)


def _now(obs: Observation, calendar: Calendar) -> Floats32:
    """Return units bought, sold and their difference by bucket, as agreed at this moment, over the lines."""
    bought, sold = np.array(calendar.bought, np.float32), np.array(calendar.sold, np.float32)
    units = np.stack((bought, sold, bought - sold), axis=1) / obs.n_lines  # [H+1, 3]
    return np.clip(_by_bucket(units.astype(np.float32), obs.horizon), -LIMIT, LIMIT)


def _thread_views(threads: list[ThreadObservation], obs: Observation, day: Floats32, now: Floats32) -> Floats32:
    """Return L3's and L4's inputs for threads, float32 [len(threads), len(THREAD_VIEW)].

    Args:
        threads: The threads.
        obs: The observation at day start.
        day: Its `day_view`.
        now: The commitments at this moment by bucket, [len(_BUCKETS) · len(_NOW)].
    """
    count, seats = len(threads), [0] * len(threads)
    features = thread_features(
        live_threads(threads, [obs], seats), ObservationBatch.of([obs]), *histories(threads, seats)
    )
    start = len(LEVELS) + len(DAY_FEATURES["x_role"])
    seen = day[[start + column for column in _SEEN_COLUMNS]]  # [len(_SEEN)] the day's features that matter here
    # [count, _KEPT · (features + 1)] the latest offers, each with a flag whether there is one
    history, mask = features.padded(_KEPT)
    offers = np.concatenate((history, mask[:, :, None].astype(np.float32)), axis=2).reshape(count, -1)
    shared = np.broadcast_to(
        np.concatenate((day[: len(LEVELS)], seen, now)), (count, len(LEVELS) + len(seen) + len(now))
    )
    parts = (shared, features.x_thread, features.ranges, features.x_partner, offers)
    return np.concatenate(parts, axis=1).astype(np.float32)


def round_views(threads: list[ThreadObservation], obs: Observation, day: Floats32) -> tuple[Floats32, Floats32]:
    """Return the views of a round.

    Args:
        threads: The factory's threads that need a decision; at least one.
        obs: The observation at day start.
        day: Its `day_view`.

    Returns:
        The threads' views [len(threads), len(THREAD_VIEW)] and the state [len(STATE_VIEW)].
    """
    now = _now(obs, threads[0].calendar)
    views = _thread_views(threads, obs, day, now)
    return views, _state_view(threads, views, day, now)


def _state_view(threads: list[ThreadObservation], views: Floats32, day: Floats32, now: Floats32) -> Floats32:
    """Return the state that a central critic sees in a factory's round, float32 [len(STATE_VIEW)].

    Args:
        threads: The factory's threads that need a decision; at least one.
        views: Their views [len(threads), len(THREAD_VIEW)].
        day: `day_view` at day start.
        now: The commitments at this moment by bucket.
    """
    start = len(LEVELS) + len(_SEEN) + len(now)  # column of the thread features in a view
    summary: list[float] = [threads[0].round / 20.0]
    for buying in (True, False):
        side = [index for index, thread in enumerate(threads) if thread.buying is buying]
        offered = [index for index in side if threads[index].offer is not None]
        advantages = views[offered, start + _OFFER_ADVANTAGE]  # [len(offered)]
        summary += [len(side) / 6.0, len(offered) / 6.0]
        summary += [float(advantages.mean()), float(advantages.max())] if offered else [0.0, 0.0]
        summary.append(min(LIMIT, float(views[offered, start + _OFFER_QUANTITY].sum())))
    return np.concatenate((day, now, np.array(summary, np.float32)))
