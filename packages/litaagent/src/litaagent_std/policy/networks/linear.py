"""Linear models of L2 and L3 in play: the same inputs and outputs as the networks, whose places they take.

They are trained in `hrl_x`. A file of one has the kind of its layer, and ``linear`` as the mode among its sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..arrays import Array, Floats, Floats32
from ..features import THREAD_FEATURES
from .inference import DayInputs, DecisionNetwork, GoalNetwork, ThreadInputs
from .inputs import PRICE_UNIT
from .weights import Weights, WeightsError

__all__ = ["LATEST", "LINEAR", "Linear", "LinearDecisions", "LinearGoals", "decision_network", "goal_network", "latest"]

LINEAR: Final = "linear"
"""The mode of a linear model's file."""
LATEST: Final = 2
"""Number of latest offers of a thread among the inputs of L3."""
_PARTS: Final = ("mean", "spread", "weights", "bias")


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """y = ((x − mean) / spread) · weights + bias.

    Attributes:
        mean: Mean of each input, [n].
        spread: Standard deviation of each input, 1 for (almost) constant inputs, [n].
        weights: [n, m].
        bias: [m].
    """

    mean: Floats
    spread: Floats
    weights: Floats
    bias: Floats

    def __call__(self, x: Array) -> Floats:
        """Return outputs [k, m] of inputs [k, n]."""
        standard = (np.asarray(x, np.float64) - self.mean) / self.spread
        return standard @ self.weights + self.bias

    def arrays(self, name: str) -> dict[str, Floats]:
        """Return the arrays under names for a file."""
        return {f"{name}.{part}": getattr(self, part) for part in _PARTS}

    @classmethod
    def of(cls, arrays: Mapping[str, Array], name: str) -> Linear:
        """Return the model whose arrays a file holds."""
        return cls(*(arrays[f"{name}.{part}"] for part in _PARTS))


def goal_network(weights: Weights) -> GoalNetwork:
    """Return the L2 that a file holds, a network or a linear model; raises as `_is_linear`."""
    return LinearGoals(weights) if _is_linear(weights) else GoalNetwork(weights)


def decision_network(weights: Weights) -> DecisionNetwork:
    """Return the L3 that a file holds, a network or a linear model; raises as `_is_linear`."""
    return LinearDecisions(weights) if _is_linear(weights) else DecisionNetwork(weights)


def _is_linear(weights: Weights) -> bool:
    """Return whether a file holds a linear model.

    Raises:
        WeightsError: If it does, and was trained on samples that hold other features than the agent sees.
    """
    is_linear = bool(weights.meta["sizes"].get("mode") == LINEAR)
    if is_linear and not weights.meta["horizon"]:
        raise WeightsError(
            f"{weights.source!r} was trained on samples without the features that the agent sees; train it on the "
            "rows of a dataset, as load_tournament_data returns them"
        )
    return is_linear


class LinearGoals(GoalNetwork):
    """A linear L2; its goals as residuals on the heuristic's."""

    def __init__(self, weights: Weights) -> None:
        super().__init__(weights)
        self._model = Linear.of(weights.arrays, "model")

    def latents(self, day: DayInputs) -> Floats32:
        """Return the residuals, ``[N, 7·B + 1]``: zero where the model wants nothing, and beyond units and prices."""
        count, buckets = len(day.lines), self.n_buckets
        rows = np.zeros((count, self.horizon + 1, day.x_temporal.shape[2]))
        rows[:, : day.mask.shape[1]] = day.x_temporal
        state = np.concatenate([day.x_static, rows.reshape(count, -1), day.x_role], axis=1)
        # [N, 2 sides, units or price, buckets], then one after the other, [N, 2, buckets] each
        goal = np.maximum(0.0, self._model(state)).reshape(count, 2, 2, buckets)
        units, price = goal[:, :, 0], goal[:, :, 1] * day.price[:, :, None]
        base = day.base[:, : 4 * buckets].reshape(count, 2, 2, buckets)  # units or price, side
        low, high = self.bands(day)
        out = np.zeros(day.base.shape)
        out[:, : 2 * buckets] = (units - base[:, 0] / day.lines[:, None, None]).reshape(count, -1)
        moved = np.where(units > 0.0, (price - base[:, 1]) / np.maximum(high - low, 1e-6), 0.0)
        out[:, 2 * buckets : 4 * buckets] = moved.reshape(count, -1)
        return out.astype(np.float32)


class LinearDecisions(DecisionNetwork):
    """A linear L3: the most probable operation, and the heuristic's counter-offer moved by the residual."""

    def __init__(self, weights: Weights) -> None:
        super().__init__(weights)
        self._operation, self._move = (Linear.of(weights.arrays, name) for name in ("operation", "residual"))

    def outputs(self, batch: ThreadInputs) -> tuple[Floats32, Floats32, Floats32, Floats32]:
        """Return masked logits of the operation and the lead, and quantity and position of the one member."""
        names = THREAD_FEATURES["ranges"]
        low, high = (1.0 + PRICE_UNIT * batch.ranges[:, names.index(end)] for end in ("price_min", "price_max"))
        width = np.maximum(high - low, 1e-6)
        base = np.stack([batch.baseline[:, 3], batch.baseline[:, 4], low + batch.baseline[:, 5] * width], axis=1)
        context = np.concatenate([batch.x_thread, batch.ranges, batch.x_partner], axis=1)
        recent = latest(batch.history, batch.history_mask.sum(axis=1))
        inputs = np.concatenate([context, recent.reshape(len(context), -1), batch.baseline[:, :3], base], axis=1)
        quantity, lead, price = (base + self._move(inputs)).T
        # the nearest delivery day is the most probable one
        days = -np.abs(lead[:, None] * self.league_horizon - np.arange(self.horizon + 1))
        op, days = self.masked(batch, self._operation(inputs), days)
        return op, days, quantity[:, None].astype(np.float32), ((price - low) / width)[:, None].astype(np.float32)


def latest(history: Array, count: Array) -> Floats:
    """Return the `LATEST` offers of threads, the latest first and zeros where there are fewer, ``[k, LATEST, n]``.

    Args:
        history: Offers, oldest first, ``[k, L, n]``.
        count: How many of them there are, ``[k]``.
    """
    out = np.zeros((len(history), LATEST, history.shape[2]))
    for back in range(LATEST):
        there = count > back
        out[there, back] = history[there, count[there] - 1 - back]
    return out
