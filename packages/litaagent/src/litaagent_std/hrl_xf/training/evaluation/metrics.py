"""Measures of predictions: pure functions of arrays."""

from __future__ import annotations

import numpy as np

from litaagent_std.policy.arrays import Array

__all__ = ["auc", "brier", "calibration", "errors", "macro_f1"]


def errors(predicted: Array, target: Array) -> dict[str, float]:
    """Return mean absolute and root mean squared error, mean target, and mean relative error.

    The relative error divides by max(target, 1), so that small targets do not dominate it. All are 0 if there are no
    values.
    """
    if not len(target):
        return {"mae": 0.0, "rmse": 0.0, "mean_target": 0.0, "mean_rel_err": 0.0, "count": 0}
    distance = np.abs(predicted.astype(np.float64) - target)
    return {
        "mae": float(distance.mean()),
        "rmse": float(np.sqrt(np.square(distance).mean())),
        "mean_target": float(target.mean()),
        "mean_rel_err": float((distance / np.maximum(np.abs(target), 1.0)).mean()),
        "count": len(target),
    }


def macro_f1(predicted: Array, target: Array, classes: int) -> float:
    """Return the mean F1 = 2·TP / (2·TP + FP + FN) over the classes that occur."""
    scores = []
    for label in range(classes):
        hit = int(((predicted == label) & (target == label)).sum())
        wrong = int((predicted == label).sum()) + int((target == label).sum()) - 2 * hit
        if (target == label).any():
            scores.append(2.0 * hit / (2.0 * hit + wrong))
    return float(np.mean(scores)) if scores else 0.0


def auc(probability: Array, positive: Array) -> float:
    """Return the probability that a positive ranks above a negative, ties counting half; ½ if either is missing."""
    n_positive = int(positive.sum())
    n_negative = len(positive) - n_positive
    if not n_positive or not n_negative:
        return 0.5
    _, inverse, counts = np.unique(probability, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[inverse]  # mean rank of ties, from 1
    return float((ranks[positive.astype(bool)].sum() - n_positive * (n_positive + 1) / 2.0) / (n_positive * n_negative))


def brier(probability: Array, positive: Array) -> float:
    """Return the mean squared difference of probability and outcome."""
    return float(np.square(probability.astype(np.float64) - positive).mean()) if len(positive) else 0.0


def calibration(probability: Array, positive: Array, bins: int = 10) -> list[dict[str, float]]:
    """Return mean prediction, observed share and count of each non-empty bin of predictions."""
    bin_of = np.minimum((probability * bins).astype(np.int64), bins - 1)
    rows = []
    for number in range(bins):
        here = bin_of == number
        if here.any():
            mean, share = float(probability[here].mean()), float(positive[here].mean())
            rows.append({"predicted": mean, "observed": share, "count": int(here.sum())})
    return rows
