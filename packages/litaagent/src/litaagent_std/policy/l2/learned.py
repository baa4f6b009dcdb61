"""L2 in play, learned: the network's goals of the morning, less what the day has agreed since."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Floats32
from ..features import day_features
from ..l1.safety import Bounds
from ..memory import Memory
from ..observation import Calendar, Observation
from ..parameters import Parameters, level_name
from .heuristic import Goals, HeuristicGoals, buckets, expand

if TYPE_CHECKING:
    from ..networks.inference import DayInputs, GoalNetwork

__all__ = ["LearnedGoals", "day_inputs"]


def day_inputs(obs: Observation) -> DayInputs:
    """Return a morning as a batch of one."""
    from ..networks.inference import DayInputs

    features = day_features(obs)
    return DayInputs(
        features.x_static[None],
        features.x_temporal[None],
        features.x_role[None],
        features.mask[None],
        np.array([obs.n_lines], np.float32),
        np.array([[obs.price_in, obs.price_out]], np.float32),
    )


class LearnedGoals:
    """A `GoalLayer` from trained weights.

    What a unit of capacity or of input is worth beyond the goals (`Goals.hold`, `Goals.unit_value`) is not part of a
    goal and comes from the rules.

    Args:
        network: The trained network.
        parameters: Numbers of the rules.
    """

    def __init__(self, network: GoalNetwork, parameters: Parameters | None = None) -> None:
        self._network = network
        self._parameters = parameters or Parameters()
        self._morning: Observation | None = None

    def morning(self, obs: Observation) -> tuple[Floats32, Floats32, DayInputs]:
        """Return the day's quantities and prices, each ``[2, B]``, and the inputs they came from."""
        if self._morning is not obs:
            self._inputs = day_inputs(obs)
            quantity, price = self._network(self._inputs)
            self._morning, self._quantity, self._price = obs, quantity[0], price[0]
        return self._quantity, self._price, self._inputs

    def goals(self, obs: Observation, calendar: Calendar, limits: Bounds, memory: Memory) -> Goals:
        """Set the goals; see `GoalLayer`."""
        quantity, price, _ = self.morning(obs)
        values = []
        for bucket, leads in enumerate(buckets(obs.horizon)):
            bought = sum(calendar.bought[lead] - obs.calendar.bought[lead] for lead in leads)
            sold = sum(calendar.sold[lead] - obs.calendar.sold[lead] for lead in leads)
            left = max(0.0, float(quantity[0, bucket]) - bought), max(0.0, float(quantity[1, bucket]) - sold)
            values.append((left[0], float(price[0, bucket]), left[1], float(price[1, bucket])))
        level = self._parameters.at(level_name(obs.level, obs.n_levels))
        rules = HeuristicGoals(level).goals(obs, calendar, limits, memory)
        return replace(expand(obs, tuple(values)), hold=rules.hold, unit_value=rules.unit_value)
