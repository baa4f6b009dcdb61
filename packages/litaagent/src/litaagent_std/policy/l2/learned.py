"""L2, learned: the network's goals of the day's start, less what was agreed since."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..arrays import Floats32
from ..buckets import buckets
from ..columns import ObservationBatch
from ..features import day_features
from ..memory import Memory
from ..networks.inference import DayInputs, GoalNetwork
from ..observation import Calendar, Observation
from ..parameters import Parameters, level_name
from ..plan import Bounds, Goals
from .heuristic import HeuristicGoals, expand

__all__ = ["LearnedGoals", "day_inputs"]


def day_inputs(obs: Observation) -> DayInputs:
    """Return a day's observation as a batch of one."""
    batch = ObservationBatch.of([obs])
    features = day_features(batch)
    return DayInputs(
        features.x_static,
        features.x_temporal,
        features.x_role,
        features.mask,
        batch.n_lines.astype(np.float32),
        batch.price.astype(np.float32),
    )


class LearnedGoals:
    """A `GoalLayer` from trained weights.

    The values of capacity and input (`Goals.hold`, `Goals.unit_value`) and the urgency are not learned; they come from
    the heuristic.

    Args:
        network: The trained network.
        parameters: Parameters of the heuristic.
    """

    def __init__(self, network: GoalNetwork, parameters: Parameters | None = None) -> None:
        self._network = network
        self._parameters = parameters or Parameters()
        self._obs: Observation | None = None

    def day_start(self, obs: Observation) -> tuple[Floats32, Floats32, DayInputs]:
        """Return the day's quantities and prices, each ``[2, B]``, and the inputs they were computed from."""
        if self._obs is not obs:
            self._inputs = day_inputs(obs)
            quantity, price = self._network(self._inputs)
            self._obs, self._quantity, self._price = obs, quantity[0], price[0]
        return self._quantity, self._price, self._inputs

    def goals(self, obs: Observation, calendar: Calendar, limits: Bounds, memory: Memory) -> Goals:
        """Set the goals; see `GoalLayer`."""
        quantity, price, _ = self.day_start(obs)
        values = []  # (Q_buy, P_buy, Q_sell, P_sell) still to trade, by bucket
        for bucket, leads in enumerate(buckets(obs.horizon)):
            bought = sum(calendar.bought[lead] - obs.calendar.bought[lead] for lead in leads)
            sold = sum(calendar.sold[lead] - obs.calendar.sold[lead] for lead in leads)
            left = max(0.0, float(quantity[0, bucket]) - bought), max(0.0, float(quantity[1, bucket]) - sold)
            values.append((left[0], float(price[0, bucket]), left[1], float(price[1, bucket])))
        level = self._parameters.at(level_name(obs.level, obs.n_levels))
        heuristic = HeuristicGoals(level).goals(obs, calendar, limits, memory)
        kept = {name: getattr(heuristic, name) for name in ("hold", "unit_value", "u_buy", "u_sell")}
        return replace(expand(obs, tuple(values)), **kept)
