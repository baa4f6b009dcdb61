"""The picture of an evaluation: how each comparison went, and where the difference comes from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from apexrl.runs.atomic import atomic_path
from litaagent_std.arena.evaluation import Evaluation
from litaagent_std.arena.sequential import FEWEST, confidence_sequence

__all__ = ["draw_picture"]

_SIZE: Final = (11.0, 4.5)


def draw_picture(evaluation: Evaluation, report: Mapping[str, Any], path: Path) -> None:
    """Write the picture as SVG.

    Left: the mean difference after every world with its confidence sequence. Right: the difference by level and length
    with bootstrap intervals.

    Args:
        evaluation: The evaluation.
        report: What `report_of` made of it.
        path: The file.
    """
    figure = Figure(figsize=_SIZE, layout="constrained")
    left, right = figure.subplots(1, 2)
    rows = report["comparisons"]
    parts: Mapping[str, Any] = max((row["difference"] for row in rows), key=len, default={})
    for place, row in enumerate(rows):
        _draw_course(left, evaluation, row["against"], f"C{place}")
        _draw_parts(right, row["difference"], list(parts), f"C{place}", 0.6 * ((place + 0.5) / len(rows) - 0.5))
    right.set_yticks(range(len(parts)), [f"{name} ({one['worlds']})" for name, one in parts.items()])
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    left.axhline(report["lead"], color="black", linewidth=0.8)
    right.axvline(report["lead"], color="black", linewidth=0.8)
    left.set(xlabel="worlds", ylabel="mean difference", title=f"{report['focal']} minus the other")
    right.set(xlabel="mean difference", title="by level and length")
    right.invert_yaxis()
    if rows:
        left.legend(frameon=False, fontsize="small")
    with mpl.rc_context({"svg.hashsalt": "arena", "svg.fonttype": "none"}), atomic_path(path) as file:
        figure.savefig(file, format="svg", metadata={"Date": None})


def _draw_course(axes: Axes, evaluation: Evaluation, name: str, color: str) -> None:
    used = evaluation.verdict(name).worlds
    gaps = np.array(evaluation.differences(name)[:used])
    means, lows, highs = confidence_sequence(gaps)
    worlds = np.arange(1, used + 1)
    axes.plot(worlds, means, color=color, label=name)
    shown = np.isfinite(lows) & (worlds >= FEWEST)
    axes.fill_between(worlds[shown], lows[shown], highs[shown], color=color, alpha=0.15, linewidth=0)


def _draw_parts(axes: Axes, parts: Mapping[str, Any], order: list[str], color: str, offset: float) -> None:
    """Draws a comparison's intervals; a short one may have no worlds of some level or length."""
    for name, one in parts.items():
        height = order.index(name) + offset
        if one["low"] is not None:
            axes.plot([one["low"], one["high"]], [height, height], color=color, linewidth=1.5)
        axes.plot(one["mean"], height, "o", color=color, markersize=4)
