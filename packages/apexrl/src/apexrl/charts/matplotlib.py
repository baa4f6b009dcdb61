"""Charts as PNG and SVG, for papers, Markdown pages and mail; matplotlib is imported when something is drawn.

SVG is reproducible: the same chart gives the same bytes (fixed hash salt, no date). Texts stay texts.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from apexrl.charts.data import Chart, Heat, Panels, Picture, Series, Value
from apexrl.runs.atomic import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Format", "draw", "save_figure", "save_svg", "svg_text"]

Format = Literal["png", "svg"]
_DPI: Final = 160
_WIDTH: Final = 7.2
_PANEL_WIDTH: Final = 5.5
_PIXELS_PER_INCH: Final = 96
_SHORT_NAME: Final = 18
_DODGE: Final = 0.6  # share of a category's height over which the series are spread


def save_figure(picture: Picture | Panels, folder: Path, formats: Sequence[Format] = ("png", "svg")) -> list[Path]:
    """Write a chart into a folder under its name, once per format, and return the files."""
    figure = draw(picture)
    paths = []
    for ending in formats:
        path = folder / f"{picture.name}.{ending}"
        write_bytes(path, _encode(figure, picture.name, ending))
        paths.append(path)
    return paths


def save_svg(picture: Picture | Panels, path: Path) -> Path:
    """Write a chart as SVG to a path and return it."""
    write_bytes(path, _encode(draw(picture), picture.name, "svg"))
    return path


def svg_text(picture: Picture | Panels) -> str:
    """Return a chart as an ``<svg>`` element to embed into HTML, with its title for screen readers."""
    text = _encode(draw(picture), picture.name, "svg").decode()
    element = text[text.index("<svg") :]
    return element.replace("<svg", f'<svg role="img" aria-label="{escape(picture.title)}"', 1)


def draw(picture: Picture | Panels) -> Figure:
    """Return the matplotlib figure of a chart."""
    from matplotlib.figure import Figure

    if not isinstance(picture, Panels):
        figure = Figure(figsize=(_WIDTH, picture.height / _PIXELS_PER_INCH), layout="constrained")
        _draw_picture(figure.add_subplot(), picture)
        _add_legend(figure, figure.axes[0])
        return figure
    n_rows = -(-len(picture.pictures) // picture.columns)
    height = n_rows * max(panel.height for panel in picture.pictures) / _PIXELS_PER_INCH
    figure = Figure(figsize=(_PANEL_WIDTH * picture.columns, height), layout="constrained")
    if picture.title:
        figure.suptitle(_literal(picture.title), fontsize=12)
    for index, panel in enumerate(picture.pictures, start=1):
        axes = figure.add_subplot(n_rows, picture.columns, index)
        _draw_picture(axes, panel)
        if axes.get_legend_handles_labels()[1]:
            axes.legend(frameon=False, fontsize="small")
    return figure


def _encode(figure: Figure, name: str, ending: Format) -> bytes:
    """Return the bytes of a file; those of SVG depend on nothing but the chart and matplotlib's version."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    metadata = {"Date": None} if ending == "svg" else None
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(buffer, format=ending, dpi=_DPI, metadata=metadata)
    return buffer.getvalue()


def _literal(text: str) -> str:
    """Escape dollar signs, between which matplotlib would read a formula."""
    return text.replace("$", r"\$")


def _draw_picture(axes: Axes, picture: Picture) -> None:
    axes.set_title(_literal(picture.title), fontsize=11, loc="left")
    axes.set(xlabel=_literal(picture.x_title), ylabel=_literal(picture.y_title))
    if isinstance(picture, Heat):
        _draw_heat(axes, picture)
    else:
        _draw_chart(axes, picture)


def _add_legend(figure: Figure, axes: Axes) -> None:
    """Put the legend below the axes, in as many columns as its names allow."""
    named = axes.get_legend_handles_labels()[1]
    if named:
        columns = 4 if max(map(len, named)) < _SHORT_NAME else 2
        figure.legend(loc="outside lower center", frameon=False, fontsize="small", ncols=min(columns, len(named)))


def _draw_chart(axes: Axes, chart: Chart) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    for band in chart.bands:
        axes.fill_between(
            band.x, band.low, band.high, color=band.color, alpha=0.15, linewidth=0, label=_literal(band.name)
        )
    if chart.reference is not None:
        line = axes.axvline if chart.horizontal else axes.axhline
        line(chart.reference, color="black", linewidth=0.8)
    boxes = [series for series in chart.series if series.kind == "box"]
    if boxes:
        _draw_boxes(axes, boxes, horizontal=chart.horizontal)
    stacks: dict[object, float] = {}
    for index, series in enumerate(chart.series):
        if series.kind == "bar":
            _draw_bars(axes, series, chart, stacks)
        elif series.kind != "box":
            _draw_marks(axes, series, chart, index)
    if chart.dodged:
        names = [_literal(str(name)) for name in _categories(chart)]
        (axes.set_yticks if chart.horizontal else axes.set_xticks)(range(len(names)), names)
    if chart.horizontal:
        axes.invert_yaxis()
    if chart.hide_axes:
        axes.set_axis_off()


def _categories(chart: Chart) -> list[Value]:
    """Return the categories of all series in order of their first occurrence."""
    return list(dict.fromkeys(value for series in chart.series for value in series.x))


def _positions(series: Series, chart: Chart, index: int) -> list[Value]:
    """Return where the marks of a series stand: its own positions, or beside those of the other series."""
    if not chart.dodged:
        return [_literal(value) if isinstance(value, str) else value for value in series.x]
    order = {category: level for level, category in enumerate(_categories(chart))}
    offset = _DODGE * ((index + 0.5) / len(chart.series) - 0.5)
    return [order[value] + offset for value in series.x]


def _draw_marks(axes: Axes, series: Series, chart: Chart, index: int) -> None:
    x = _positions(series, chart, index)
    y = [math.nan if value is None else value for value in series.y]
    first, second = (y, x) if chart.horizontal else (x, y)
    style = {"color": series.color, "label": _literal(series.name) or None}
    if series.kind == "line":
        marker = "o" if series.steps else None
        axes.plot(first, second, ":" if series.dashed else "-", lw=series.width, marker=marker, ms=4, **style)  # type: ignore[arg-type]  # numbers or categories
    elif series.sizes:
        areas = [(0.7 * size) ** 2 for size in series.sizes]
        axes.scatter(first, second, s=areas, alpha=0.7, **style)  # type: ignore[arg-type]  # numbers or categories
    else:
        axes.plot(first, second, "o", markersize=series.size * 0.7, **style)  # type: ignore[arg-type]  # the same
    for position, low, high in zip(x if series.low else (), series.low, series.high, strict=True):
        if low is not None and high is not None:
            ends, positions = [low, high], [position] * 2
            pair = (ends, positions) if chart.horizontal else (positions, ends)
            axes.plot(*pair, color=series.color, linewidth=1.5)


def _draw_bars(axes: Axes, series: Series, chart: Chart, stacks: dict[object, float]) -> None:
    """Draw bars; `stacks` holds the height reached so far by category and sign."""
    names = [_literal(value) if isinstance(value, str) else value for value in series.x]
    heights = [float(value) if isinstance(value, int | float) else 0.0 for value in series.y]
    keys = [(name, height < 0) for name, height in zip(names, heights, strict=True)]
    starts = [stacks.get(key, 0.0) if chart.stacked else 0.0 for key in keys]
    style = {"color": list(series.colors) or series.color, "label": _literal(series.name) or None}
    if chart.horizontal:
        bars = axes.barh(names, heights, left=starts, **style)  # type: ignore[arg-type]  # numbers or categories
    else:
        bars = axes.bar(names, heights, bottom=starts, **style)  # type: ignore[arg-type]  # numbers or categories
    if series.texts:
        axes.bar_label(bars, labels=[_literal(text) for text in series.texts], padding=2, fontsize=9)
    for key, height in zip(keys, heights, strict=True):
        stacks[key] = stacks.get(key, 0.0) + height


def _draw_boxes(axes: Axes, boxes: list[Series], *, horizontal: bool) -> None:
    values = [[float(value) for value in series.y if isinstance(value, int | float)] for series in boxes]
    drawn = axes.boxplot(
        values,
        orientation="horizontal" if horizontal else "vertical",
        tick_labels=[_literal(series.name) for series in boxes],
        patch_artist=True,
        showmeans=True,
        flierprops={"markersize": 3},
    )
    for patch, series in zip(drawn["boxes"], boxes, strict=True):
        patch.set(facecolor=series.color, alpha=0.4)


def _draw_heat(axes: Axes, heat: Heat) -> None:
    values = [[math.nan if value is None else value for value in row] for row in heat.values]
    finite = [abs(value) for row in values for value in row if math.isfinite(value)]
    most = max(finite, default=1.0) or 1.0
    least = -most if heat.diverging else 0.0
    axes.imshow(values, aspect="auto", cmap="RdBu" if heat.diverging else "Blues", vmin=least, vmax=most)
    axes.set_xticks(range(len(heat.x)), [_literal(name) for name in heat.x], rotation=30, ha="right", fontsize=8)
    axes.set_yticks(range(len(heat.y)), [_literal(name) for name in heat.y], fontsize=8)
    for row, texts in enumerate(heat.texts):
        for column, text in enumerate(texts):
            color = "white" if abs(values[row][column]) > 0.6 * most else "black"
            axes.text(column, row, _literal(text), fontsize=7, ha="center", va="center", color=color)
