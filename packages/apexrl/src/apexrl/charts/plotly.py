"""Charts as plotly figures: dictionaries that plotly.js reads as JSON.

plotly.js interprets some markup in texts; `escape_markup` makes every text from the data literal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from apexrl.charts.data import Band, Chart, Heat, Picture, Series, Value

__all__ = ["CONFIG", "Figure", "escape_markup", "plotly_figure"]

Figure = dict[str, Any]
"""A figure, or a part of one, as plotly.js reads it."""

CONFIG: Final[dict[str, Any]] = {"displaylogo": False, "responsive": True, "displayModeBar": False}
"""Options of plotly.js: no logo, nothing that contacts a server."""

_FONT: Final = {"family": "system-ui, -apple-system, Segoe UI, Noto Sans, sans-serif", "size": 12, "color": "#24292f"}
_GRID: Final = "#e6e8eb"
_FEW_POINTS: Final = 25
_FEW_STEPS: Final = 12
_NOISE: Final = 1e-6  # share of a value below which differences are rounding
_MODES: Final = {"line": "lines", "points": "markers"}


def escape_markup(text: str) -> str:
    """Escape a text so that plotly.js shows it literally."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def plotly_figure(picture: Picture) -> Figure:
    """Return the plotly figure of a chart, ready for JSON: ``data``, ``layout`` and, for a replay, ``frames``."""
    return _heat(picture) if isinstance(picture, Heat) else _chart(picture)


def _layout(picture: Picture) -> Figure:
    axis = {"gridcolor": _GRID, "zerolinecolor": "#b8bec5", "automargin": True}
    return {
        "height": picture.height,
        "font": _FONT,
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "margin": {"l": 8, "r": 8, "t": 12, "b": 8},
        "xaxis": {**axis, "title": {"text": escape_markup(picture.x_title)}},
        "yaxis": {**axis, "title": {"text": escape_markup(picture.y_title)}},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 11}},
        "hoverlabel": {"align": "left"},
        "uirevision": picture.name,
    }


def _chart(chart: Chart) -> Figure:
    layout = _layout(chart)
    if chart.horizontal:
        layout["yaxis"] |= {"autorange": "reversed", "type": "category"}
    else:
        layout["xaxis"] |= _whole_steps(chart)
        layout["yaxis"] |= _range_of_a_constant(chart)
    if chart.stacked:
        layout["barmode"] = "relative"
    if chart.dodged:
        layout |= {"scattermode": "group", "scattergap": 0.4}
    if chart.reference is not None:
        layout["shapes"] = [_reference_line(chart.reference, chart)]
    if chart.hide_axes:
        hidden = {"visible": False, "showgrid": False, "zeroline": False}
        layout["xaxis"] |= hidden
        layout["yaxis"] |= hidden
    bands = [trace for band in chart.bands for trace in _band(band)]
    figure: Figure = {"data": [*bands, *(_trace(series, chart) for series in chart.series)], "layout": layout}
    if chart.n_steps:
        _add_replay(figure, chart, len(bands))
    return figure


def _whole_steps(chart: Chart) -> Figure:
    """Return ticks at whole numbers if there are only a few of them: there is no update 1.5."""
    positions = [value for series in chart.series for value in series.x]
    are_whole = bool(positions) and all(isinstance(value, int) for value in positions)
    whole = [value for value in positions if isinstance(value, int)]
    return {"dtick": 1} if are_whole and max(whole) - min(whole) <= _FEW_STEPS else {}


def _range_of_a_constant(chart: Chart) -> Figure:
    """Return a range around lines that do not change: plotly would show 0.001 as 0, and rounding as a curve."""
    values = [value for series in chart.series for value in series.y if isinstance(value, int | float)]
    values = [value for value in values if math.isfinite(value)]
    if chart.bands or not values or any(series.kind != "line" for series in chart.series):
        return {}
    low, high = min(values), max(values)
    if high - low > _NOISE * max(abs(low), abs(high)):
        return {}
    margin = 0.5 * abs(high) or 1.0
    return {"range": [low - margin, high + margin]}


def _reference_line(value: float, chart: Chart) -> Figure:
    along, across = ("x", "y") if chart.horizontal else ("y", "x")
    return {
        "type": "line",
        f"{along}0": value,
        f"{along}1": value,
        f"{across}0": 0,
        f"{across}1": 1,
        f"{across}ref": "paper",
        "layer": "below",
        "line": {"color": "#57606a", "width": 1},
    }


def _band(band: Band) -> list[Figure]:
    edge = {"type": "scatter", "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "x": list(band.x)}
    return [
        {**edge, "y": _numbers(band.low), "showlegend": False},
        {
            **edge,
            "y": _numbers(band.high),
            "fill": "tonexty",
            "fillcolor": _faded(band.color),
            "name": escape_markup(band.name),
            "showlegend": bool(band.name),
        },
    ]


def _trace(series: Series, chart: Chart) -> Figure:
    first, second = _values(series.x), _values(series.y)
    if series.kind == "box":
        axis = "x" if chart.horizontal else "y"
        return {
            "type": "box",
            axis: second,
            "name": escape_markup(series.name),
            "marker": {"color": series.color, "size": 4},
            "boxpoints": "outliers",
            "boxmean": True,
            "showlegend": False,
        }
    if chart.horizontal:
        first, second = second, first
    trace: Figure = {"x": first, "y": second, "name": escape_markup(series.name), "showlegend": bool(series.name)}
    if series.labels:
        trace |= {"text": [escape_markup(label) for label in series.labels], "hoverinfo": "text"}
    if series.low:
        trace["error_x" if chart.horizontal else "error_y"] = _interval(series)
    if series.kind == "bar":
        return trace | _bar_style(series, chart)
    if chart.dodged:
        # without an orientation, marks are moved along the values instead of apart
        trace |= {"offsetgroup": escape_markup(series.name), "orientation": "h" if chart.horizontal else "v"}
    trace |= {"type": "scatter", "mode": _MODES[series.kind], "connectgaps": False}
    if series.kind == "line" and (series.steps or 2 != len(series.x) <= _FEW_POINTS):
        trace["mode"] = "lines+markers"  # a line of one point would be invisible
    line = {"color": series.color, "width": series.width, "dash": "dot" if series.dashed else "solid"}
    size = list(series.sizes) or (series.size if series.kind == "points" or series.steps else 5)
    return trace | {"line": line, "marker": {"color": series.color, "size": size}}


def _bar_style(series: Series, chart: Chart) -> Figure:
    style: Figure = {"type": "bar", "marker": {"color": list(series.colors) or series.color}, "textposition": "none"}
    if series.texts:
        style |= {"text": [escape_markup(text) for text in series.texts], "textposition": "outside"}
    return style | ({"orientation": "h"} if chart.horizontal else {})


def _interval(series: Series) -> Figure:
    """Return plotly's form of intervals: their extent to both sides of the value."""
    rows = list(zip(series.y, series.low, series.high, strict=True))
    extents = [
        (0.0, 0.0) if low is None or high is None or not isinstance(value, int | float) else (high - value, value - low)
        for value, low, high in rows
    ]
    up, down = zip(*extents, strict=True)
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "thickness": 1.5, "width": 4}


def _add_replay(figure: Figure, chart: Chart, first: int) -> None:
    """Add a frame per step, a slider, and buttons to play and to pause; `first` is the index of the first series."""
    traces = list(range(first, first + len(chart.series)))
    figure["frames"] = [
        {"name": str(step), "traces": traces, "data": [_up_to(series, chart, step) for series in chart.series]}
        for step in range(chart.n_steps)
    ]
    still = {"mode": "immediate", "frame": {"duration": 0, "redraw": False}, "transition": {"duration": 0}}
    moving = {"fromcurrent": True, "frame": {"duration": 450, "redraw": False}, "transition": {"duration": 0}}
    steps = [
        {"label": str(step + 1), "method": "animate", "args": [[str(step)], still]} for step in range(chart.n_steps)
    ]
    figure["layout"] |= {
        "sliders": [
            {
                "steps": steps,
                "active": chart.n_steps - 1,
                "currentvalue": {"prefix": "turn ", "xanchor": "right"},
                "x": 0.16,
                "len": 0.84,
                "pad": {"t": 46, "b": 4},
            }
        ],
        "updatemenus": [
            {
                "type": "buttons",
                "showactive": False,
                "direction": "left",
                "x": 0,
                "xanchor": "left",
                "y": 0,
                "yanchor": "top",
                "pad": {"t": 62},
                "buttons": [
                    {"label": "▶", "method": "animate", "args": [None, moving]},
                    {"label": "❚❚", "method": "animate", "args": [[None], still]},
                ],
            }
        ],
    }
    positions = [value for series in chart.series for value in series.x if isinstance(value, int | float)]
    margin = 0.5 if len(set(positions)) < 2 else 0.04 * (max(positions) - min(positions))
    figure["layout"]["xaxis"]["range"] = [
        min(positions) - margin,
        max(positions) + margin,
    ]  # the axis keeps its range in all frames


def _up_to(series: Series, chart: Chart, step: int) -> Figure:
    """Return the trace of a series with the marks that have appeared by a step."""
    if not series.steps:
        return _trace(series, chart)
    kept = [index for index, own in enumerate(series.steps) if own <= step]
    trace = _trace(series, chart)
    for key in ("x", "y", "text"):
        if key in trace:
            trace[key] = [trace[key][index] for index in kept]
    return trace


def _heat(heat: Heat) -> Figure:
    layout = _layout(heat)
    layout["yaxis"] |= {"autorange": "reversed", "type": "category"}
    layout["xaxis"] |= {"type": "category"}
    numbers = [value for row in heat.values for value in row if value is not None]
    most = max((abs(value) for value in numbers), default=1.0) or 1.0
    trace: Figure = {
        "type": "heatmap",
        "x": [escape_markup(name) for name in heat.x],
        "y": [escape_markup(name) for name in heat.y],
        "z": [_numbers(row) for row in heat.values],
        "colorscale": _DIVERGING if heat.diverging else _SEQUENTIAL,
        "showscale": False,
        "hoverongaps": False,
        "xgap": 1,
        "ygap": 1,
    }
    if heat.diverging:
        trace |= {"zmin": -most, "zmax": most}
    if heat.texts:
        trace |= {"text": [[escape_markup(text) for text in row] for row in heat.texts], "texttemplate": "%{text}"}
    return {"data": [trace], "layout": layout}


_DIVERGING: Final = [[0, "#d55e00"], [0.5, "#ffffff"], [1, "#0072b2"]]
_SEQUENTIAL: Final = [[0, "#f4f7fa"], [1, "#0072b2"]]


def _values(values: Sequence[Value]) -> list[Value]:
    return [escape_markup(value) if isinstance(value, str) else _number(value) for value in values]


def _numbers(values: Sequence[float | None]) -> list[float | None]:
    return [_number(value) for value in values]


def _number(value: float | int | None) -> float | int | None:
    """Return None for NaN and infinity, which JSON lacks; such a value leaves a gap."""
    return value if value is None or math.isfinite(value) else None


def _faded(color: str) -> str:
    red, green, blue = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"
