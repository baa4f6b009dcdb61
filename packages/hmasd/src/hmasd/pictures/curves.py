"""Learning curves with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

from apexrl.arrays import Floats
from apexrl.charts import Band, Chart, Series, color_of
from apexrl.statistics import interval_over_seeds


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One line of a learning-curve chart; all sequences have the same length."""

    name: str
    x: Sequence[float]
    mean: Sequence[float]
    low: Sequence[float]
    """Lower end of the interval at each point."""
    high: Sequence[float]
    """Upper end of the interval at each point."""


def curve_over_seeds(name: str, x: Sequence[float], runs: Floats) -> Curve:
    """Return mean and bootstrap interval over seeds of ``(seeds, len(x))`` values."""
    bounds = [interval_over_seeds(runs[:, index]) for index in range(runs.shape[1])]
    return Curve(
        name=name,
        x=x,
        mean=runs.mean(axis=0).tolist(),
        low=[low for low, _ in bounds],
        high=[high for _, high in bounds],
    )


def learning_curves(name: str, curves: Sequence[Curve], *, title: str, y_title: str) -> Chart:
    """Return a chart of lines over environment steps with shaded intervals.

    Args:
        name: Name of the chart, which is also its file name.
        curves: One per line.
        title: What the chart shows.
        y_title: What the lines measure.
    """
    colors = [color_of(index) for index in range(len(curves))]
    return Chart(
        name=name,
        title=title,
        x_title="environment steps",
        y_title=y_title,
        series=[
            Series(name=curve.name, x=curve.x, y=curve.mean, color=color)
            for curve, color in zip(curves, colors, strict=True)
        ],
        bands=[
            Band(name="", x=curve.x, low=curve.low, high=curve.high, color=color)
            for curve, color in zip(curves, colors, strict=True)
        ],
    )
