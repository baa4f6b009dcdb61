"""Predictions for the training set by networks that did not see what they predict.

The training configurations are dealt into folds; the predictions of a fold come from a network that was trained on the
others. Validation and test rows, which no network trains on, get the predictions of the network that is shipped.
"""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from litaagent_std.hrl_xf.training.data import DataError, Rows, Table, rows_of

__all__ = ["SHIPPED", "fold_rows", "folds_of"]

logger = logging.getLogger(__name__)

SHIPPED = -1
"""Number of the fold of rows that the shipped network predicts."""


def folds_of(macro: Table, count: int, seed: int) -> NDArray[np.int64]:
    """Return the fold of every morning, `SHIPPED` for validation and test.

    Folds are whole configurations. Where there is only one, they are worlds, and where there is only one of these,
    factories; both are said, because then a fold has seen the same market as the rows that it predicts.

    Args:
        macro: The mornings.
        count: Folds, at most.
        seed: Seed of the assignment.

    Raises:
        DataError: If there is nothing to divide.
    """
    rows = rows_of(macro, "train")
    out = np.full(len(macro["config"]), SHIPPED, np.int64)
    units = _units(macro, rows)
    kinds = np.unique(units)
    order = np.random.default_rng(seed).permutation(len(kinds))
    fold_of_kind = np.empty(len(kinds), np.int64)
    fold_of_kind[order] = np.arange(len(kinds)) % min(count, len(kinds))
    out[rows] = fold_of_kind[np.searchsorted(kinds, units)]
    return out


def _units(macro: Table, rows: Rows) -> NDArray[np.int64]:
    config, world, factory = (np.asarray(macro[name][rows], np.int64) for name in ("config", "world", "factory"))
    for name, units in (("configuration", config), ("world", world), ("factory", world * 10_000 + factory)):
        if len(np.unique(units)) > 1:
            if name != "configuration":
                logger.warning("there is one configuration to train on: folds are made of each %s instead", name)
            return units
    raise DataError(
        "all training mornings are of one factory",
        "goals of L3 come from networks that did not see them, so there must be something to leave out",
        "collect at least two factories, better two configurations",
    )


def fold_rows(folds: NDArray[np.int64], fold: int) -> tuple[Rows, Rows]:
    """Return the rows that the network of a fold trains on, and those that it predicts."""
    if fold == SHIPPED:
        return np.flatnonzero(folds >= 0), np.flatnonzero(folds == SHIPPED)
    return np.flatnonzero((folds >= 0) & (folds != fold)), np.flatnonzero(folds == fold)
