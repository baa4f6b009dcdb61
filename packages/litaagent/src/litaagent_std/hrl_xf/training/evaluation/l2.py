"""Evaluation of L2 beside baselines: errors of goals in raw units, by split, side and bucket.

Baselines: the mean goal of training by side and bucket; yesterday's goal of the same factory (*persistence*); for
prices the trading price (*spot*); and a ridge regression on the network's inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from litaagent_std.hrl_xf.data_pipeline.options import Split
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO
from litaagent_std.hrl_xf.training.backfill import predict_days
from litaagent_std.hrl_xf.training.data import Table, TrainingData, rows_of
from litaagent_std.hrl_xf.training.evaluation.linear import fit_ridge, predict_linear
from litaagent_std.hrl_xf.training.evaluation.metrics import errors
from litaagent_std.policy.arrays import Array, Ints
from litaagent_std.policy.networks.inputs import base_inputs

__all__ = ["evaluate_l2", "goal_error", "persistence_rows"]

_CHUNK = 4096


def _counts(macro: Table, rows: Ints) -> tuple[Array, Array]:
    """Return the masks of quantities and prices, each bool ``[n, 2, B]``: sides that are traded (`x_role`)."""
    role = np.asarray(macro["x_role"][rows])[:, :, None] > 0
    shape = macro["goal_q"].shape[1:]
    return np.broadcast_to(role, (len(rows), *shape)), np.asarray(macro["goal_p_mask"][rows]) & role


def goal_error(
    model: HorizonManagerPPO, data: TrainingData, split: Split, batch_size: int, device: torch.device
) -> dict[str, dict[str, float]]:
    """Return the errors of Q and P in raw units, masked by `x_role`."""
    rows = data.macro.rows(split)
    quantity, price = predict_days(model, data, rows, batch_size, device)
    q_counts, p_counts = _counts(data.macro, rows)
    return {
        "Q": errors(quantity[q_counts], np.asarray(data.macro["goal_q"][rows])[q_counts]),
        "P": errors(price[p_counts], np.asarray(data.macro["goal_p"][rows])[p_counts]),
    }


def persistence_rows(macro: Table) -> Ints:
    """Return the row of the same factory's day before, −1 if there is none."""
    keys = [np.asarray(macro[name], np.int64) for name in ("day", "factory", "world")]
    order = np.lexsort(keys)
    day, factory, world = (key[order] for key in keys)
    # rows sorted by world, factory and day: does a row follow the one before it by a day?
    follows = np.zeros(len(order), np.bool_)
    follows[1:] = (world[1:] == world[:-1]) & (factory[1:] == factory[:-1]) & (day[1:] == day[:-1] + 1)
    before = np.full(len(order), -1, np.int64)
    before[order[1:]] = np.where(follows[1:], order[:-1], -1)
    return before


def _inputs(macro: Table, rows: Ints) -> Array:
    parts = [np.asarray(macro[name][rows]).reshape(len(rows), -1) for name in ("x_static", "x_role", "x_temporal")]
    parts.append(np.asarray(macro["mask"][rows], np.float32))
    parts.append(base_inputs(*(np.asarray(macro[name][rows]) for name in ("base", "lines", "price"))))
    return np.concatenate(parts, axis=1)


def _scaled(macro: Table, rows: Ints) -> tuple[Array, Array]:
    """Return goals without units, ``[n, 2·B]``: quantities over lines, prices over trading prices."""
    lines = np.maximum(np.asarray(macro["lines"][rows]), 1.0)[:, None, None]  # [n, 1, 1]
    trading_price = np.maximum(np.asarray(macro["price"][rows]), 1e-6)[:, :, None]
    quantity, price = np.asarray(macro["goal_q"][rows]) / lines, np.asarray(macro["goal_p"][rows]) / trading_price - 1.0
    return quantity.reshape(len(rows), -1), price.reshape(len(rows), -1)


def _linear(data: TrainingData, rows: Ints) -> tuple[Array, Array]:
    """Return quantities and prices of a ridge regression that was fitted to the training rows."""
    macro, train = data.macro, rows_of(data.macro, "train")

    def chunks(which: int) -> Iterator[tuple[Array, Array, Array]]:
        for start in range(0, len(train), _CHUNK):
            chunk = train[start : start + _CHUNK]
            counts = _counts(macro, chunk)[which].reshape(len(chunk), -1).astype(np.float64)
            yield _inputs(macro, chunk), _scaled(macro, chunk)[which], counts

    shape = (len(rows), *macro["goal_q"].shape[1:])
    x = _inputs(macro, rows)
    quantity = predict_linear(fit_ridge(lambda: chunks(0)), x).reshape(shape)
    price = predict_linear(fit_ridge(lambda: chunks(1)), x).reshape(shape)
    lines, trading_price = np.asarray(macro["lines"][rows])[:, None, None], np.asarray(macro["price"][rows])[:, :, None]
    return np.maximum(0.0, quantity * lines), (1.0 + price) * trading_price


def _mean(data: TrainingData, rows: Ints) -> tuple[Array, Array]:
    """Return the mean goals of training by side and bucket, in units of lines and trading prices."""
    macro, train = data.macro, rows_of(data.macro, "train")
    means = []
    for which in (0, 1):
        counts = _counts(macro, train)[which]
        values = _scaled(macro, train)[which].reshape(counts.shape)
        means.append((values * counts).sum(0) / np.maximum(counts.sum(0), 1))
    lines, trading_price = np.asarray(macro["lines"][rows])[:, None, None], np.asarray(macro["price"][rows])[:, :, None]
    return means[0] * lines, (1.0 + means[1]) * trading_price


def _persistence(data: TrainingData, rows: Ints, mean: tuple[Array, Array]) -> tuple[Array, Array]:
    macro = data.macro
    before = persistence_rows(macro)[rows]
    has_before = (before >= 0)[:, None, None]
    quantity = np.where(has_before, np.asarray(macro["goal_q"])[before], mean[0])
    priced = has_before & np.asarray(macro["goal_p_mask"])[before]
    return quantity, np.where(priced, np.asarray(macro["goal_p"])[before], mean[1])


def _heuristic(macro: Table, rows: Ints) -> tuple[Array, Array]:
    """Return the goals of our heuristic agent with the same history, the base of the network's residuals."""
    shape = macro["goal_q"].shape[1:]
    base = np.asarray(macro["base"][rows])[:, : 6 * shape[1]].reshape(len(rows), 3, *shape)
    return base[:, 0], base[:, 1]


def evaluate_l2(model: HorizonManagerPPO, data: TrainingData, split: Split, device: torch.device) -> dict[str, Any]:
    """Return errors of the network and of every baseline: ``{quantity|price: {name: {all|side and bucket: …}}}``."""
    rows = data.macro.rows(split)
    macro = data.macro
    network = predict_days(model, data, rows, 2048, device)
    mean = _mean(data, rows)
    spot = np.broadcast_to(np.asarray(macro["price"][rows])[:, :, None], mean[1].shape)
    linear = _linear(data, rows)
    yesterday = _persistence(data, rows, mean)
    heuristic = _heuristic(macro, rows)
    named = {"linear": linear, "persistence": yesterday, "mean": mean, "heuristic": heuristic}
    quantities = {"network": network[0]} | {name: both[0] for name, both in named.items()}
    prices = {"network": network[1]} | {name: both[1] for name, both in named.items()} | {"spot": spot}
    counts = _counts(macro, rows)
    targets = np.asarray(macro["goal_q"][rows]), np.asarray(macro["goal_p"][rows])
    return {
        "quantity": {name: _by_bucket(values, targets[0], counts[0]) for name, values in quantities.items()},
        "price": {name: _by_bucket(values, targets[1], counts[1]) for name, values in prices.items()},
    }


def _by_bucket(predicted: Array, target: Array, counts: Array) -> dict[str, dict[str, float]]:
    measures = {"all": errors(predicted[counts], target[counts])}
    for side, name in enumerate(("buy", "sell")):
        for bucket in range(target.shape[2]):
            here = counts[:, side, bucket]
            measures[f"{name} {bucket}"] = errors(predicted[here, side, bucket], target[here, side, bucket])
    return measures
