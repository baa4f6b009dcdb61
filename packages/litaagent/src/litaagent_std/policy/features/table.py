"""Features as rows of a table with source, formula and scale, and their evaluation as arrays.

Formulas use addition, subtraction, multiplication, division and comparison alone, in double precision; the result
is divided by its scale, cut at `LIMIT` and rounded to single precision once. So the same observation gives the same
bits on every machine and in every batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np

from ..arrays import Array, Floats, Floats32

__all__ = ["LIMIT", "Feature", "part", "relative", "squash", "to_columns"]

LIMIT: Final = 10.0
"""No feature leaves [−LIMIT, LIMIT]; what lies beyond is cut."""


Source = TypeVar("Source")


@dataclass(frozen=True)
class Feature(Generic[Source]):
    """One feature.

    Attributes:
        name: Its name, unique in its group.
        source: The fields of the observation that it is made from.
        formula: Its formula, for the documentation.
        scale: What the formula's value is divided by.
        value: The formula: from columns to an array of the batch's shape, or to a scalar for all.
    """

    name: str
    source: str
    formula: str
    scale: float
    value: Callable[[Source], Any]


def part(amount: Array, whole: Array) -> Floats:
    """Return shares of a whole, 0 where the whole is not positive."""
    amount, whole = np.broadcast_arrays(amount, whole)
    return np.divide(amount, whole, out=np.zeros(amount.shape), where=whole > 0)


def relative(price: Array, usual: Array) -> Floats:
    """Return how far prices lie above their usual values; 0 where either is missing."""
    return np.where((price > 0) & (usual > 0), part(price, usual) - 1.0, 0.0)


def squash(x: Array) -> Floats:
    """Map numbers into (−1, 1) with slope 1 at 0: ``x / (1 + |x|)``."""
    return np.asarray(x / (1.0 + np.abs(x)), np.float64)


def to_columns(features: Sequence[Feature[Source]], source: Source, shape: tuple[int, ...]) -> Floats32:
    """Compute one column per feature.

    Returns:
        Array of shape ``[*shape, len(features)]``.

    Raises:
        ValueError: If a value is not finite, which no legal observation gives.
    """
    values = np.empty((len(features), *shape), np.float64)
    for column, feature in enumerate(features):
        values[column] = feature.value(source) / feature.scale
    if not np.isfinite(values).all():
        where = tuple(np.argwhere(~np.isfinite(values))[0])
        feature = features[where[0]]
        raise ValueError(
            f"feature {feature.name!r} = {feature.formula} is {values[where]}; features must be finite, "
            f"so look for NaN or infinity in {feature.source}"
        )
    return np.moveaxis(np.minimum(np.maximum(values, -LIMIT), LIMIT), 0, -1).astype(np.float32)
