"""L2, learned: the network's goals of the day's start, less what was agreed since."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..arrays import Array, Floats32
from ..buckets import buckets
from ..columns import ObservationBatch
from ..features import day_features
from ..layers import DayBatch
from ..networks.inference import DayInputs, GoalNetwork
from ..plan import GoalsBatch
from .heuristic import expand, heuristic_goals

__all__ = ["LearnedGoals", "day_inputs"]


def day_inputs(obs: ObservationBatch) -> DayInputs:
    """Return the network's inputs of days."""
    features = day_features(obs)
    return DayInputs(
        features.x_static,
        features.x_temporal,
        features.x_role,
        features.mask,
        obs.n_lines.astype(np.float32),
        obs.price.astype(np.float32),
    )


class LearnedGoals:
    """An L2 (`layers.BatchGoals`) from trained weights.

    The values of capacity and input (`Goals.hold`, `Goals.unit_value`) and the urgency are not learned; they come from
    the heuristic.

    Args:
        network: The trained network.
    """

    def __init__(self, network: GoalNetwork) -> None:
        self._network = network
        self._obs: ObservationBatch | None = None
        self._days = np.zeros(0, np.int64)

    def day_start(self, obs: ObservationBatch) -> tuple[Floats32, Floats32, DayInputs]:
        """Return the days' quantities and prices, each ``[B, 2, buckets]``, and the inputs they were computed from."""
        key = obs.day.copy()
        if self._obs is not obs or not np.array_equal(self._days, key):  # rows of the same batch change by the day
            self._inputs = day_inputs(obs)
            self._quantity, self._price = self._network(self._inputs)
            self._obs, self._days = obs, key
        return self._quantity, self._price, self._inputs

    def goals_of(self, day: DayBatch) -> GoalsBatch:
        """Set the goals; see `layers.BatchGoals`."""
        obs, now, start = day.obs, day.calendar, day.obs.calendar
        quantity, price, _ = self.day_start(obs)
        horizon, width = int(obs.horizon.max()), now.sold.shape[1]
        traded = (_by_bucket(now.bought - start.bought, horizon), _by_bucket(now.sold - start.sold, horizon))
        sides = [
            expand(np.maximum(0.0, quantity[:, side] - traded[side]), price[:, side], horizon, width) for side in (0, 1)
        ]
        heuristic = heuristic_goals(obs, now, day.bounds, day.memory, day.parameters)
        (q_buy, p_buy), (q_sell, p_sell) = sides
        return replace(heuristic, q_buy=q_buy, p_buy=p_buy, q_sell=q_sell, p_sell=p_sell)


def _by_bucket(units: Array, horizon: int) -> Array:
    """Return sums of units ``[B, H + 1]`` by bucket, ``[B, buckets]``."""
    return np.stack([units[:, part.start : part.stop].sum(1) for part in buckets(horizon)], axis=1)
