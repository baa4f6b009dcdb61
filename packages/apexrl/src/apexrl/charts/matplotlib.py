"""Charts as PNG and SVG, for papers and mail."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from apexrl.charts.data import Chart, Heat, Picture, Series
from apexrl.runs.atomic import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "save_figure"]

Format = Literal["png", "svg"]
_DPI: Final = 160
_WIDTH: Final = 7.2
_PIXELS_PER_INCH: Final = 96
_SHORT_NAME: Final = 18


def save_figure(picture: Picture, folder: Path, formats: tuple[Format, ...] = ("png", "svg")) -> list[Path]:
    """Write a chart under its name, once per format; returns the files."""
    import matplotlib as mpl

    figure = draw(picture)
    paths = []
    with mpl.rc_context({"svg.hashsalt": picture.name, "svg.fonttype": "none"}):
        for ending in formats:
            path = folder / f"{picture.name}.{ending}"
            with atomic_path(path) as temporary:
                figure.savefig(temporary, format=ending, dpi=_DPI, metadata={"Date": None} if ending == "svg" else None)
            paths.append(path)
    return paths


def draw(picture: Picture) -> Figure:
    """Return the figure of a chart."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, picture.height / _PIXELS_PER_INCH), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(_plain(picture.title), fontsize=11, loc="left")
    axes.set(xlabel=_plain(picture.x_title), ylabel=_plain(picture.y_title))
    if isinstance(picture, Heat):
        _heat(axes, picture)
    else:
        _chart(axes, picture)
    return figure


def _plain(text: str) -> str:
    """Return a text without the formulas that matplotlib reads between dollar signs."""
    return text.replace("$", r"\$")


def _chart(axes: Axes, chart: Chart) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    for band in chart.bands:
        axes.fill_between(
            band.x, band.low, band.high, color=band.color, alpha=0.15, linewidth=0, label=_plain(band.name)
        )
    boxes = [series for series in chart.series if series.kind == "box"]
    if boxes:
        _boxes(axes, boxes, sideways=chart.sideways)
    below: dict[object, float] = {}
    for series in chart.series:
        if series.kind == "bar":
            _bars(axes, series, chart, below)
        elif series.kind != "box":
            _marks(axes, series, chart)
    if chart.sideways:
        axes.invert_yaxis()
    if chart.bare:
        axes.set_axis_off()
    named = axes.get_legend_handles_labels()[1]
    if named:
        columns = 4 if max(map(len, named)) < _SHORT_NAME else 2
        axes.figure.legend(loc="outside lower center", frameon=False, fontsize="small", ncols=min(columns, len(named)))


def _marks(axes: Axes, series: Series, chart: Chart) -> None:
    x = [_plain(value) if isinstance(value, str) else value for value in series.x]
    y = [math.nan if value is None else value for value in series.y]
    across, up = (y, x) if chart.sideways else (x, y)
    look = {"color": series.color, "label": _plain(series.name) or None}
    if series.kind == "line":
        style = ":" if series.dashed else "-"
        marker = "o" if series.steps else None
        axes.plot(across, up, style, linewidth=series.width, marker=marker, markersize=4, **look)  # type: ignore[arg-type]  # numbers or names, as matplotlib takes them
    else:
        axes.plot(across, up, "o", markersize=series.size * 0.7, **look)  # type: ignore[arg-type]  # the same
    for place, (low, high) in enumerate(zip(series.low, series.high, strict=True)):
        if low is not None and high is not None:
            ends, level = [low, high], [x[place]] * 2
            pair = (ends, level) if chart.sideways else (level, ends)
            axes.plot(*pair, color=series.color, linewidth=1.5)


def _bars(axes: Axes, series: Series, chart: Chart, below: dict[object, float]) -> None:
    names = [_plain(value) if isinstance(value, str) else value for value in series.x]
    heights = [float(value) if isinstance(value, int | float) else 0.0 for value in series.y]
    keys = [(name, height < 0) for name, height in zip(names, heights, strict=True)]
    feet = [below.get(key, 0.0) if chart.stacked else 0.0 for key in keys]
    options = {"color": series.color, "label": _plain(series.name) or None}
    if chart.sideways:
        axes.barh(names, heights, left=feet, **options)  # type: ignore[arg-type]  # numbers or names
    else:
        axes.bar(names, heights, bottom=feet, **options)  # type: ignore[arg-type]  # numbers or names
    for key, height in zip(keys, heights, strict=True):
        below[key] = below.get(key, 0.0) + height


def _boxes(axes: Axes, boxes: list[Series], *, sideways: bool) -> None:
    values = [[float(value) for value in series.y if isinstance(value, int | float)] for series in boxes]
    drawn = axes.boxplot(
        values,
        orientation="horizontal" if sideways else "vertical",
        tick_labels=[_plain(series.name) for series in boxes],
        patch_artist=True,
        showmeans=True,
        flierprops={"markersize": 3},
    )
    for patch, series in zip(drawn["boxes"], boxes, strict=True):
        patch.set(facecolor=series.color, alpha=0.4)


def _heat(axes: Axes, heat: Heat) -> None:
    values = [[math.nan if value is None else value for value in row] for row in heat.values]
    finite = [abs(value) for row in values for value in row if math.isfinite(value)]
    most = max(finite, default=1.0) or 1.0
    least = -most if heat.diverging else 0.0
    axes.imshow(values, aspect="auto", cmap="RdBu" if heat.diverging else "Blues", vmin=least, vmax=most)
    axes.set_xticks(range(len(heat.x)), [_plain(name) for name in heat.x], rotation=30, ha="right", fontsize=8)
    axes.set_yticks(range(len(heat.y)), [_plain(name) for name in heat.y], fontsize=8)
    for row, texts in enumerate(heat.texts):
        for column, text in enumerate(texts):
            ink = "white" if abs(values[row][column]) > 0.6 * most else "black"
            axes.text(column, row, _plain(text), fontsize=7, ha="center", va="center", color=ink)
