"""Logged metrics of a training as curves."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from apexrl.runs.errors import MetricError
from apexrl.runs.metrics.jsonl import read_jsonl
from apexrl.runs.reading import reading

__all__ = ["Curve", "read_curves", "thinned"]

Curve = tuple[list[int], list[float]]
"""Steps, and the values at them."""

_MOST_POINTS: Final = 1500
_LARGEST: Final = 10**300


def read_curves(path: Path) -> dict[str, Curve]:
    """Return every metric of a file as steps and values.

    Raises:
        MetricError: If a line is damaged.
    """
    wanted = ("a training writes its metrics there", "start it first")
    try:
        with reading(path, MetricError, *wanted):
            rows = read_jsonl(path)
    except FileNotFoundError as error:
        raise MetricError(f"{path.name!r} cannot be read: {error.strerror}", *wanted) from error
    curves: dict[str, Curve] = {}
    for row in rows:
        for metric, value in row.items():
            if metric != "step" and (isinstance(value, float) or (isinstance(value, int) and abs(value) < _LARGEST)):
                steps, values = curves.setdefault(metric, ([], []))
                steps.append(row["step"])
                values.append(float(value))
    return curves


def thinned(curve: Curve) -> Curve:
    """Return a curve with every n-th point, so that no more than 1,500 are drawn."""
    steps, values = curve
    every = -(-len(steps) // _MOST_POINTS)
    return (steps[::every], values[::every]) if every else curve
