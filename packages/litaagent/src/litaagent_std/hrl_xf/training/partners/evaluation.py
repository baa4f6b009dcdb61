"""How well partners' types are named: accuracy by day, log-loss and calibration by type, beside prior and mixture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from litaagent_std.hrl_xf.data_pipeline.options import Split
from litaagent_std.hrl_xf.training.evaluation.metrics import calibration
from litaagent_std.hrl_xf.training.partners.dataset import PartnerData
from litaagent_std.policy.arrays import Array, Bools, Floats, Ints
from litaagent_std.policy.l3.heuristic import ARCHETYPES
from litaagent_std.policy.partners.types import PartnerTypes

__all__ = ["DAYS", "evaluate_types", "frequencies", "summary"]

DAYS: Final = (0, 1, 2, 3, 5, 8, 12, 20, 40)
"""Days whose first decisions are evaluated one by one."""

_LEAST: Final = 1e-9


def frequencies(labels: Array) -> Floats:
    """Return the share of each type, ``[4]``."""
    counts = np.bincount(labels, minlength=len(ARCHETYPES)).astype(np.float64)
    return np.asarray(counts / max(1.0, counts.sum()))


def evaluate_types(types: PartnerTypes, data: PartnerData, split: Split) -> dict[str, Any]:
    """Evaluate the network, with its floor, on the first decisions of a split's threads.

    Args:
        types: The network as it plays.
        data: The snapshots.
        split: The split.

    Returns:
        ``all``: network and prior on all of them; ``compared``: network, hand-written mixture and prior on those of
        competitors, for which the mixture is computed; ``ours``: the same for our own agent alone. Each has scores,
        accuracy by day, and calibration and log-loss by type.
    """
    rows = data.rows(split)
    rows = rows[np.asarray(data["decision"][rows]) == 0]
    labels, days = np.asarray(data["label"][rows], np.int64), np.asarray(data["day"][rows])
    mixture, observer = np.asarray(data["mixture"][rows], np.float64), np.asarray(data["observer"][rows])
    prior = np.tile(frequencies(np.asarray(data["label"][data.rows("train")], np.int64)), (len(rows), 1))
    network = types.of_features(np.asarray(data["features"][rows]))
    compared = ~np.isnan(mixture[:, 0])
    predictors = {"network": network, "prior": prior}
    beside = {"network": network, "mixture": mixture, "prior": prior}
    return {
        "all": _table(predictors, labels, days, np.ones(len(rows), np.bool_)),
        "compared": _table(beside, labels, days, compared),
        "ours": _table(beside, labels, days, compared & (observer == 2)),
    }


def _table(predictors: Mapping[str, Floats], labels: Ints, days: Ints, kept: Bools) -> dict[str, Any]:
    parts = {name: (probabilities[kept], labels[kept], days[kept]) for name, probabilities in predictors.items()}
    if not kept.any():
        return {"threads": 0}
    return {
        "threads": int(kept.sum()),
        "scores": {name: summary(p, label) for name, (p, label, _) in parts.items()},
        "by_day": {name: _by_day(*part) for name, part in parts.items()},
        "by_type": {name: _by_type(p, label) for name, (p, label, _) in parts.items()},
    }


def summary(probabilities: Floats, labels: Ints) -> dict[str, float]:
    """Return accuracy, log-loss and calibration error of predictions ``[N, 4]``."""
    right = probabilities[np.arange(len(labels)), labels]
    errors = [_calibration_error(probabilities[:, index], labels == index) for index in range(len(ARCHETYPES))]
    return {
        "accuracy": float((probabilities.argmax(1) == labels).mean()),
        "log_loss": float(-np.log(np.maximum(right, _LEAST)).mean()),
        "calibration_error": float(np.mean(errors)),
    }


def _calibration_error(probability: Floats, positive: Bools) -> float:
    """Return the mean distance of prediction and observed share over bins, weighted by their counts."""
    bins = calibration(probability, positive)
    return sum(abs(b["predicted"] - b["observed"]) * b["count"] for b in bins) / max(1, len(positive))


def _by_day(probabilities: Floats, labels: Ints, days: Ints) -> dict[str, dict[str, float]]:
    table = {}
    for day in DAYS:
        here = days == day
        if here.any():
            scores = summary(probabilities[here], labels[here])
            table[str(day)] = {name: scores[name] for name in ("accuracy", "log_loss")} | {"threads": int(here.sum())}
    return table


def _by_type(probabilities: Floats, labels: Ints) -> dict[str, dict[str, Any]]:
    table = {}
    for index, name in enumerate(ARCHETYPES):
        here = labels == index
        if not here.any():
            continue
        right = probabilities[here, index]
        table[name] = {
            "accuracy": float((probabilities[here].argmax(1) == index).mean()),
            "log_loss": float(-np.log(np.maximum(right, _LEAST)).mean()),
            "calibration_error": _calibration_error(probabilities[:, index], here),
            "calibration": calibration(probabilities[:, index], here),
            "threads": int(here.sum()),
        }
    return table
