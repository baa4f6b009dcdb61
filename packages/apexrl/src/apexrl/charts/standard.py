"""Standard charts of machine learning, built from `Series`, `Band` and `Heat`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from apexrl.arrays import Array, Floats
from apexrl.charts.data import Band, Chart, Heat, Series, color_of
from apexrl.statistics import interval_over_seeds

__all__ = [
    "Curve",
    "Estimate",
    "bar_chart",
    "calibration_chart",
    "confusion_matrix",
    "curve_over_seeds",
    "forest_plot",
    "learning_curves",
    "line_chart",
]

_SMALLEST, _LARGEST = 4.0, 16.0  # diameters of the markers of a calibration curve


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """A curve with an interval around it; all sequences have the same length.

    Attributes:
        name: Name in the legend.
        x: Positions, such as environment steps.
        mean: Values.
        low: Lower ends of the intervals.
        high: Upper ends of the intervals.
    """

    name: str
    x: Sequence[float]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A value with its interval.

    Attributes:
        value: The value.
        low: Lower end of the interval; None if there is too little data for one.
        high: Upper end.
        label: A text shown on hover.
    """

    value: float
    low: float | None = None
    high: float | None = None
    label: str = ""


def curve_over_seeds(name: str, x: Sequence[float], runs: Floats) -> Curve:
    """Return the mean and the bootstrap interval over seeds at each position.

    Args:
        name: Name in the legend.
        x: Positions ``[T]``.
        runs: One row of values per seed ``[seeds, T]``.
    """
    intervals = [interval_over_seeds(runs[:, index]) for index in range(runs.shape[1])]
    return Curve(
        name=name,
        x=x,
        mean=runs.mean(axis=0).tolist(),
        low=[low for low, _ in intervals],
        high=[high for _, high in intervals],
    )


def learning_curves(
    curves: Sequence[Curve], *, name: str, title: str, y_title: str, x_title: str = "environment steps"
) -> Chart:
    """Return curves with their intervals as shaded bands."""
    series = [Series(name=curve.name, x=curve.x, y=curve.mean, color=color_of(i)) for i, curve in enumerate(curves)]
    bands = [
        Band(name="", x=curve.x, low=curve.low, high=curve.high, color=color_of(i)) for i, curve in enumerate(curves)
    ]
    return Chart(name=name, title=title, series=series, bands=bands, x_title=x_title, y_title=y_title)


def line_chart(
    lines: Mapping[str, Sequence[tuple[float, float]]], *, name: str, title: str, x_title: str = "", y_title: str = ""
) -> Chart:
    """Return a line per entry of a mapping from names to points ``(x, y)``."""
    series = [
        Series(name=label, x=[x for x, _ in points], y=[y for _, y in points], color=color_of(index))
        for index, (label, points) in enumerate(lines.items())
    ]
    return Chart(name=name, title=title, series=series, x_title=x_title, y_title=y_title)


def bar_chart(
    values: Mapping[str, float],
    *,
    name: str,
    title: str,
    texts: Sequence[str] = (),
    x_title: str = "",
    y_title: str = "",
    height: int = 340,
) -> Chart:
    """Return a bar per entry, each in a colour of its own.

    Args:
        values: Heights by category.
        name: Identifier of the chart.
        title: What it shows.
        texts: A text above each bar; default: none.
        x_title: Title of the categories.
        y_title: Title of the values.
        height: Height in CSS pixels.
    """
    colors = [color_of(index) for index in range(len(values))]
    series = Series(name="", x=list(values), y=list(values.values()), kind="bar", colors=colors, texts=texts)
    return Chart(name=name, title=title, series=[series], x_title=x_title, y_title=y_title, height=height)


def confusion_matrix(
    counts: Array,
    classes: Sequence[str],
    *,
    name: str,
    title: str,
    x_title: str = "predicted",
    y_title: str = "true",
    height: int = 360,
) -> Heat:
    """Return the shares of predictions by true class.

    Args:
        counts: Cases by true and predicted class ``[n, n]``.
        classes: Names of the classes ``[n]``.
        name: Identifier of the chart.
        title: What it shows.
        x_title: Title of the columns.
        y_title: Title of the rows.
        height: Height in CSS pixels.
    """
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)  # [n, n] each row sums to 1, or to 0 if empty
    texts = [[f"{100 * share:.0f} %" for share in row] for row in shares.tolist()]
    return Heat(
        name=name,
        title=title,
        x=classes,
        y=classes,
        values=shares.tolist(),
        texts=texts,
        x_title=x_title,
        y_title=y_title,
        height=height,
    )


def calibration_chart(bins: Sequence[Mapping[str, float]], *, name: str, title: str) -> Chart:
    """Return observed frequencies against predicted probabilities; the diagonal is perfect calibration.

    Args:
        bins: ``predicted``, ``observed`` and ``count`` of each bin; the area of a marker grows with the count.
        name: Identifier of the chart.
        title: What it shows.
    """
    most = max(bin_["count"] for bin_ in bins)
    predicted, observed = [bin_["predicted"] for bin_ in bins], [bin_["observed"] for bin_ in bins]
    sizes = [_SMALLEST + (_LARGEST - _SMALLEST) * (bin_["count"] / most) ** 0.5 for bin_ in bins]
    labels = [f"predicted {b['predicted']:.3f}, observed {b['observed']:.3f}, {b['count']:.0f} cases" for b in bins]
    return Chart(
        name=name,
        title=title,
        series=[
            Series(name="", x=[0, 1], y=[0, 1], color="#bbbbbb", width=1.2),
            Series(name="", x=predicted, y=observed, width=1.2),
            Series(name="", x=predicted, y=observed, kind="points", sizes=sizes, labels=labels),
        ],
        x_title="predicted probability",
        y_title="observed frequency",
    )


def forest_plot(
    groups: Mapping[str, Mapping[str, Estimate]],
    *,
    name: str,
    title: str,
    x_title: str,
    reference: float | None = None,
) -> Chart:
    """Return estimates with their intervals, one row per category, one colour per group.

    Args:
        groups: Estimates by name of the group and by category; a group may lack categories.
        name: Identifier of the chart.
        title: What it shows.
        x_title: Title of the values.
        reference: A value at which a line is drawn.
    """
    # A group that lacks categories must not change their order: the one with most of them comes first.
    by_size = sorted(groups.values(), key=len, reverse=True)
    categories = list(dict.fromkeys(category for estimates in by_size for category in estimates))
    series = []
    for index, (group, estimates) in enumerate(groups.items()):
        rows = [estimates.get(category) for category in categories]
        series.append(
            Series(
                name=group,
                x=categories,
                y=[None if row is None else row.value for row in rows],
                low=[None if row is None else row.low for row in rows],
                high=[None if row is None else row.high for row in rows],
                kind="points",
                color=color_of(index),
                labels=["" if row is None else row.label for row in rows] if _has_labels(estimates) else [],
            )
        )
    return Chart(
        name=name,
        title=title,
        series=series,
        x_title=x_title,
        horizontal=True,
        dodged=True,
        reference=reference,
        height=max(260, 110 + 34 * len(categories)),
    )


def _has_labels(estimates: Mapping[str, Estimate]) -> bool:
    return any(estimate.label for estimate in estimates.values())
