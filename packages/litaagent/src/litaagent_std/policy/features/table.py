"""Features as rows of a table with source, formula and scale, and their evaluation as arrays.

Formulas use addition, subtraction, multiplication, division and comparison alone, in double precision; the result
is divided by its scale, cut at `LIMIT` and rounded to single precision once. So the same observation gives the same
bits on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final, Generic, TypeVar

import numpy as np

from ..arrays import Floats, Floats32

__all__ = ["LIMIT", "Feature", "part", "squash", "to_columns", "to_vector"]

LIMIT: Final = 10.0
"""No feature leaves [−LIMIT, LIMIT]; what lies beyond is cut."""


Source = TypeVar("Source")
Value = TypeVar("Value", float, Floats)


@dataclass(frozen=True)
class Feature(Generic[Source, Value]):
    """One feature.

    Attributes:
        name: Its name, unique in its group.
        source: The fields of the observation that it is made from.
        formula: Its formula, for the documentation.
        scale: What the formula's value is divided by.
        value: The formula.
    """

    name: str
    source: str
    formula: str
    scale: float
    value: Callable[[Source], Value]


def part(amount: float, whole: float) -> float:
    """Return a share of a whole, 0 when the whole is not positive."""
    return amount / whole if whole > 0 else 0.0


def squash(x: Value) -> Value:
    """Map numbers into (−1, 1) with slope 1 at 0: x / (1 + |x|)."""
    return x / (1.0 + abs(x))


def to_vector(features: Sequence[Feature[Source, float]], source: Source) -> Floats32:
    """Compute one number per feature.

    Returns:
        Array of shape [len(features)].

    Raises:
        ValueError: If a value is not finite, which no legal observation gives.
    """
    values = [feature.value(source) / feature.scale for feature in features]
    for feature, value in zip(features, values, strict=True):
        if not isfinite(value):
            raise _not_finite(feature, value)
    return np.array([min(LIMIT, max(-LIMIT, value)) for value in values], np.float32)


def to_columns(features: Sequence[Feature[Source, Floats]], source: Source, length: int) -> Floats32:
    """Compute one column per feature.

    Returns:
        Array of shape [length, len(features)].

    Raises:
        ValueError: If a value is not finite, which no legal observation gives.
    """
    values = np.empty((length, len(features)), np.float64)
    for column, feature in enumerate(features):
        values[:, column] = feature.value(source) / feature.scale
    finite = np.isfinite(values)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise _not_finite(features[column], float(values[row, column]))
    return np.minimum(np.maximum(values, -LIMIT), LIMIT).astype(np.float32)


def _not_finite(feature: Feature[Source, Value], value: float) -> ValueError:
    return ValueError(
        f"feature {feature.name!r} = {feature.formula} is {value}; features must be finite, "
        f"so look for NaN or infinity in {feature.source}"
    )
