"""L2, learned: the heuristic's goals of every moment, changed by the network's residuals of the day's start."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from ..arrays import Bools, Floats32, Ints, true_rows
from ..columns import ObservationBatch
from ..features import day_features
from ..l1.safety import bounds
from ..layers import DayBatch
from ..networks.exploration import DaySample, Exploration, gaussian
from ..networks.inference import DayInputs, GoalNetwork
from ..parameters import LEVELS, Level, level_name
from ..plan import GoalsBatch
from .heuristic import heuristic_goals
from .residual import goal_base, shift_goals

__all__ = ["DayGoals", "LearnedGoals", "at_levels", "day_inputs"]


def day_inputs(obs: ObservationBatch, base: Floats32) -> DayInputs:
    """Return the network's inputs of days, given the heuristic's goals of their starts (`residual.goal_base`)."""
    features = day_features(obs)
    return DayInputs(
        features.x_static,
        features.x_temporal,
        features.x_role,
        features.mask,
        obs.n_lines.astype(np.float32),
        obs.price.astype(np.float32),
        base,
    )


def at_levels(obs: ObservationBatch, levels: tuple[Level, ...]) -> Bools:
    """Return which factories are at one of some levels of the chain, ``[B]``."""
    if levels == LEVELS:
        return np.ones(len(obs), np.bool_)
    pairs = zip(obs.level.tolist(), obs.n_levels.tolist(), strict=True)
    return np.array([level_name(*pair) in levels for pair in pairs], np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class DayGoals:
    """L2's decisions at the starts of B days.

    Attributes:
        inputs: The network's inputs.
        residual: ``[B, 7·buckets + 1]``.
        quantity: Goals by side and bucket in raw units, ``[B, 2, buckets]``.
        price: Likewise.
    """

    inputs: DayInputs
    residual: Floats32
    quantity: Floats32
    price: Floats32


class LearnedGoals:
    """An L2 (`layers.BatchGoals`) from trained weights.

    Args:
        network: The trained network.
        levels: Levels of the chain that it was trained for; at the others residuals are zero.
        exploration: Random streams for sampled residuals; default: the means.
    """

    def __init__(
        self, network: GoalNetwork, levels: tuple[Level, ...] = LEVELS, exploration: Exploration | None = None
    ) -> None:
        self._network, self.levels, self._exploration = network, levels, exploration
        self._days = np.zeros(0, np.int64)  # [n] the day that each factory's row of the columns is of
        self._columns: dict[str, np.ndarray] = {}

    def goals_of(self, day: DayBatch) -> GoalsBatch:
        """Set the goals; see `layers.BatchGoals`."""
        heuristic = heuristic_goals(day.obs, day.calendar, day.bounds, day.memory, day.parameters)
        if self._exploration is None and not at_levels(day.obs, self.levels).any():
            return heuristic
        residual = self.day_start(day).residual
        return shift_goals(heuristic, day.obs, residual, self._network.league_horizon)

    def day_start(self, day: DayBatch) -> DayGoals:
        """Return what was decided at the starts of the days; decide it where that is not done yet."""
        seats, today = day.seats, day.obs.day
        if int(seats.max(initial=-1)) >= len(self._days):
            self._grow(int(seats.max()) + 1)
        late = true_rows(self._days[seats] != today)
        if len(late):
            self._decide(day, late)
        rows = {name: column[seats] for name, column in self._columns.items()}
        inputs = DayInputs(**{part.name: rows[part.name] for part in fields(DayInputs)})
        return DayGoals(inputs, rows["residual"], rows["quantity"], rows["goal_price"])

    def _grow(self, count: int) -> None:
        more = count - len(self._days)
        self._days = np.concatenate([self._days, np.full(more, -1)])
        self._columns = {
            name: np.concatenate([column, np.zeros((more, *column.shape[1:]), column.dtype)])
            for name, column in self._columns.items()
        }

    def _decide(self, day: DayBatch, rows: Ints) -> None:
        """Decide some of the days and keep the result by factory."""
        obs, memory, p = day.obs.take(rows), day.memory.take(rows), day.parameters.take(rows)
        heuristic = heuristic_goals(obs, obs.calendar, bounds(obs, obs.calendar, memory.persistent), memory, p)
        inputs = day_inputs(obs, goal_base(heuristic, obs, self._network.league_horizon))
        residual, here, seats = self._network.latents(inputs), at_levels(obs, self.levels), day.seats[rows]
        if self._exploration is not None:
            noise = self._exploration.normals(seats, residual.shape[1])
            residual, log_prob = gaussian(residual, self._network.log_std, noise)
            sample = DaySample(seats, obs.day.copy(), inputs, residual, log_prob)
            self._exploration.days.append(sample)
        residual = np.where(here[:, None], residual, np.float32(0.0))
        quantity, price = self._network.decode(residual, inputs)
        found = {part.name: getattr(inputs, part.name) for part in fields(DayInputs)}
        found |= {"residual": residual, "quantity": quantity, "goal_price": price}
        for name, values in found.items():
            if name not in self._columns:
                self._columns[name] = np.zeros((len(self._days), *values.shape[1:]), values.dtype)
            self._columns[name][seats] = values
        self._days[seats] = obs.day
