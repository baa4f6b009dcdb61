"""Training, saving and loading of the linear models.

L2 predicts the day's goal from its state at day start; L3 predicts the operation, and the counter-offer as a residual
on L1's baseline, from the situation and the latest offers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from apexrl.runs.atomic import atomic_file
from apexrl.runs.reading import read_npz, reading
from litaagent_std.hrl_x.inputs import macro_arrays, micro_arrays
from litaagent_std.hrl_x.linear import Linear, TrainConfig, fit_regression, fit_softmax, softmax
from litaagent_std.hrl_xf.data_pipeline import MacroDataset, MacroSample, MicroDataset, MicroSample
from litaagent_std.hrl_xf.data_pipeline.errors import BadSampleError, DatasetError
from litaagent_std.policy.arrays import Array, Floats
from litaagent_std.policy.digest import l1_digest
from litaagent_std.policy.features import features_digest
from litaagent_std.policy.networks.linear import LINEAR
from litaagent_std.policy.networks.weights import FORMAT, FORMAT_VERSION

__all__ = ["L2Linear", "L3Linear", "TrainConfig", "load_model", "save_model", "train_l2_bc", "train_l3_bc"]


N_OPS: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class L2Linear:
    """A linear L2.

    Attributes:
        model: Maps the day's features to the goal without units.
        n_buckets: Delivery buckets.
        horizon: Delivery days after today among the features; 0 if the samples do not tell, as those of tables.
        league_horizon: The league's horizon, which defines the buckets; likewise.
    """

    model: Linear
    n_buckets: int
    horizon: int = 0
    league_horizon: int = 0

    def predict(self, state: Array, scale: Array) -> Floats:
        """Return goals in raw units, never negative.

        Args:
            state: Features of days, [k, n].
            scale: Units of goals, [k, 4].
        """
        goals = self.model(state).reshape(-1, 4, self.n_buckets)
        return np.asarray(np.maximum(0.0, goals) * np.asarray(scale)[:, :, None])


@dataclass(frozen=True, slots=True, eq=False)
class L3Linear:
    """A linear L3.

    Attributes:
        operation: Maps the situation to logits of accept, reject and end.
        residual: Maps the situation to quantity, lead and price minus the baseline's, without units.
        horizon: As in `L2Linear`.
        league_horizon: Likewise.
    """

    operation: Linear
    residual: Linear
    horizon: int = 0
    league_horizon: int = 0

    def predict(self, inputs: Array, baseline: Array, scale: Array) -> tuple[Floats, Floats]:
        """Return the probabilities of the operations, [k, 3], and the counter-offers in raw units, [k, 3].

        Args:
            inputs: From `inputs.micro_arrays`, [k, n].
            baseline: The baseline's operation, quantity, lead and price, [k, 4].
            scale: Units of quantity, lead and price, [k, 3].
        """
        counter = np.maximum(0, np.asarray(baseline)[:, 1:]) + self.residual(inputs) * np.asarray(scale)
        return softmax(self.operation(inputs)), counter


def train_l2_bc(samples: Sequence[MacroSample], config: TrainConfig | None = None) -> L2Linear:
    """Clone goals; prices count only where there is a quantity.

    Raises:
        BadSampleError: If there are no samples, or a value is not finite.
    """
    arrays = macro_arrays(samples)
    goal = arrays.goal / arrays.scale[:, :, None]
    known = np.ones(goal.shape, np.bool_)
    known[:, 1::2] = arrays.goal[:, 0::2] > 0  # [k, 4, B] prices with a quantity
    n, rows, buckets = goal.shape
    flat = rows * buckets
    model = fit_regression(arrays.state, goal.reshape(n, flat), known.reshape(n, flat), config or TrainConfig())
    return L2Linear(model, buckets, *_horizons(samples))


def train_l3_bc(samples: Sequence[MicroSample], config: TrainConfig | None = None) -> L3Linear:
    """Clone operations, and counter-offers as residuals on the baseline.

    Raises:
        BadSampleError: If there are no samples, no counter-offer among them, or a value is not finite.
    """
    arrays, options = micro_arrays(samples), config or TrainConfig()
    counters = arrays.action[:, 0] == 1  # [k] actions with a counter-offer
    if not counters.any():
        raise BadSampleError(
            f"none of {len(counters)} actions is a counter-offer",
            "quantity, lead and price are learned from counter-offers",
            "select an agent that negotiates, or more worlds",
        )
    residual = (arrays.action[:, 1:] - np.maximum(0, arrays.baseline[:, 1:])) / arrays.scale
    known = np.ones((int(counters.sum()), 3), np.bool_)
    operation = fit_softmax(arrays.inputs, arrays.action[:, 0].astype(np.int64), N_OPS, options)
    move = fit_regression(arrays.inputs[counters], residual[counters], known, options)
    return L3Linear(operation, move, *_horizons(samples))


def save_model(model: L2Linear | L3Linear, path: str | Path) -> Path:
    """Write a model as weights that the agent plays: arrays and one JSON text, no pickle."""
    parts = {"model": model.model} if isinstance(model, L2Linear) else _parts(model)
    sizes = {"mode": LINEAR, "horizon": model.horizon}
    meta: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": "l2" if isinstance(model, L2Linear) else "l3",
        "horizon": model.league_horizon,
        "features_digest": features_digest(),
        "l1_digest": l1_digest(),
        "sizes": sizes | ({"n_buckets": model.n_buckets} if isinstance(model, L2Linear) else {}),
    }
    arrays = {name: array for part, linear in parts.items() for name, array in linear.arrays(part).items()}
    target = Path(path)
    with atomic_file(target) as file:
        np.savez(file, meta=np.array(json.dumps(meta, sort_keys=True)), **arrays)  # type: ignore[arg-type]  # arrays
    return target


def load_model(path: str | Path) -> L2Linear | L3Linear:
    """Read what `save_model` wrote.

    Raises:
        DatasetError: If it is not a model.
    """
    wanted = ("save_model writes models", "save it again")
    try:
        with reading(path, DatasetError, *wanted):
            arrays = read_npz(path)
            meta = json.loads(str(arrays["meta"]))
            if meta.get("format") == _FIRST_FORMAT:
                meta |= {"sizes": {"mode": LINEAR, "horizon": 0, "n_buckets": meta.get("n_buckets")}, "horizon": 0}
            if meta["sizes"]["mode"] != LINEAR:
                raise ValueError("it is a network, no linear model")
            horizons = meta["sizes"]["horizon"], meta["horizon"]
            if meta["kind"] in ("l2", L2Linear.__name__):
                return L2Linear(Linear.of(arrays, "model"), meta["sizes"]["n_buckets"], *horizons)
            return L3Linear(Linear.of(arrays, "operation"), Linear.of(arrays, "residual"), *horizons)
    except FileNotFoundError as error:
        raise DatasetError(f"there is no model {str(path)!r}", *wanted) from error


_FIRST_FORMAT: Final = "litaagent.linear"
"""Files of the first version; they do not tell what they were trained on, so the agent cannot play them."""


def _parts(model: L3Linear) -> dict[str, Linear]:
    return {"operation": model.operation, "residual": model.residual}


def _horizons(samples: Sequence[Any]) -> tuple[int, int]:
    """Return the horizons of the features and of the league; 0 for samples that do not tell."""
    if isinstance(samples, MacroDataset | MicroDataset):
        return samples.data.horizon, samples.data.league_horizon
    return 0, 0
