"""The picture of an evaluation: how each comparison developed, and where the difference comes from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from apexrl.charts import Band, Chart, Estimate, Panels, Series, color_of, forest_plot, save_svg
from litaagent_std.arena.evaluation import Evaluation
from litaagent_std.arena.sequential import FEWEST, confidence_sequence

__all__ = ["draw_picture"]

_HEIGHT: Final = 430


def draw_picture(evaluation: Evaluation, report: Mapping[str, Any], path: Path) -> None:
    """Write the picture as SVG.

    Left: the mean difference after every world with its confidence sequence. Right: the difference by level and length
    with bootstrap intervals.

    Args:
        evaluation: The evaluation.
        report: The evaluation's report, made by `report_of`.
        path: The file.
    """
    save_svg(Panels(name="arena", pictures=[_progress(evaluation, report), _differences(report)]), path)


def _progress(evaluation: Evaluation, report: Mapping[str, Any]) -> Chart:
    """Return the mean difference and its confidence sequence by number of worlds."""
    series, bands = [], []
    for index, row in enumerate(report["comparisons"]):
        name, color = row["against"], color_of(index)
        used = evaluation.verdict(name).worlds
        means, lows, highs = confidence_sequence(np.array(evaluation.differences(name)[:used]))  # [used] each
        worlds = np.arange(1, used + 1)
        known = np.isfinite(lows) & (worlds >= FEWEST)  # [used] where the sequence has an interval
        series.append(Series(name=name, x=worlds.tolist(), y=means.tolist(), color=color))
        ends = {"x": worlds[known].tolist(), "low": lows[known].tolist(), "high": highs[known].tolist()}
        bands.append(Band(name="", color=color, **ends))
    return Chart(
        name="progress",
        title=f"{report['focal']} minus the other",
        series=series,
        bands=bands,
        x_title="worlds",
        y_title="mean difference",
        reference=report["lead"],
        height=_HEIGHT,
    )


def _differences(report: Mapping[str, Any]) -> Chart:
    """Return the differences by level and length; categories are named with their number of worlds."""
    rows = report["comparisons"]
    most: Mapping[str, Any] = max((row["difference"] for row in rows), key=len, default={})
    groups = {
        row["against"]: {
            f"{name} ({most[name]['worlds']})": Estimate(value=part["mean"], low=part["low"], high=part["high"])
            for name, part in row["difference"].items()
        }
        for row in rows
    }
    return forest_plot(
        groups, name="differences", title="by level and length", x_title="mean difference", reference=report["lead"]
    )
