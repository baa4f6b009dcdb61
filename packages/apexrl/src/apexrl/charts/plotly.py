"""Charts as figures of Plotly, in the plain form that its JavaScript reads.

Plotly takes a little markup in texts; every text that comes from data is therefore quoted by `quoted`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from apexrl.charts.data import Band, Chart, Heat, Picture, Series, Value

__all__ = ["CONFIG", "plotly_figure", "quoted"]

Figure = dict[str, Any]

CONFIG: Final[dict[str, Any]] = {"displaylogo": False, "responsive": True, "displayModeBar": False}
"""Options of Plotly: no logo, nothing that talks to a server."""

_FONT: Final = {"family": "system-ui, -apple-system, Segoe UI, Noto Sans, sans-serif", "size": 12, "color": "#24292f"}
_GRID: Final = "#e6e8eb"
_FEW_POINTS: Final = 25
_FEW_ROUNDS: Final = 12
_SHAPES: Final = {"line": "lines", "points": "markers"}


def quoted(text: str) -> str:
    """Return a text as Plotly shows it literally, without markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def plotly_figure(picture: Picture) -> Figure:
    """Return the figure of a chart."""
    return _heat(picture) if isinstance(picture, Heat) else _chart(picture)


def _layout(picture: Picture) -> Figure:
    axis = {"gridcolor": _GRID, "zerolinecolor": "#b8bec5", "automargin": True}
    return {
        "height": picture.height,
        "font": _FONT,
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "margin": {"l": 8, "r": 8, "t": 12, "b": 8},
        "xaxis": {**axis, "title": {"text": quoted(picture.x_title)}},
        "yaxis": {**axis, "title": {"text": quoted(picture.y_title)}},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 11}},
        "hoverlabel": {"align": "left"},
        "uirevision": picture.name,
    }


def _chart(chart: Chart) -> Figure:
    layout = _layout(chart)
    if chart.sideways:
        layout["yaxis"] |= {"autorange": "reversed", "type": "category"}
    if chart.stacked:
        layout["barmode"] = "relative"
    if chart.bare:
        hidden = {"visible": False, "showgrid": False, "zeroline": False}
        layout["xaxis"] |= hidden
        layout["yaxis"] |= hidden
    bands = [trace for band in chart.bands for trace in _band(band)]
    figure: Figure = {"data": [*bands, *(_trace(series, chart) for series in chart.series)], "layout": layout}
    if chart.n_steps:
        _add_replay(figure, chart, len(bands))
    return figure


def _band(band: Band) -> list[Figure]:
    edge = {"type": "scatter", "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "x": list(band.x)}
    return [
        {**edge, "y": _numbers(band.low), "showlegend": False},
        {
            **edge,
            "y": _numbers(band.high),
            "fill": "tonexty",
            "fillcolor": _faded(band.color),
            "name": quoted(band.name),
        },
    ]


def _trace(series: Series, chart: Chart) -> Figure:
    across, up = _values(series.x), _values(series.y)
    if series.kind == "box":
        axis = "x" if chart.sideways else "y"
        return {
            "type": "box",
            axis: up,
            "name": quoted(series.name),
            "marker": {"color": series.color, "size": 4},
            "boxpoints": "outliers",
            "boxmean": True,
            "showlegend": False,
        }
    if chart.sideways:
        across, up = up, across
    trace: Figure = {"x": across, "y": up, "name": quoted(series.name), "showlegend": bool(series.name)}
    if series.labels:
        trace |= {"text": [quoted(label) for label in series.labels], "hoverinfo": "text"}
    if series.low:
        trace["error_x" if chart.sideways else "error_y"] = _interval(series)
    if series.kind == "bar":
        return trace | {
            "type": "bar",
            "marker": {"color": series.color},
            "textposition": "none",
            **_bar_direction(chart),
        }
    trace |= {"type": "scatter", "mode": _SHAPES[series.kind], "connectgaps": False}
    if series.kind == "line" and (series.steps or 2 != len(series.x) <= _FEW_POINTS):
        trace["mode"] = "lines+markers"  # a line of one point would not be seen
    line = {"color": series.color, "width": series.width, "dash": "dot" if series.dashed else "solid"}
    size = series.size if series.kind == "points" or series.steps else 5
    return trace | {"line": line, "marker": {"color": series.color, "size": size}}


def _bar_direction(chart: Chart) -> Figure:
    return {"orientation": "h"} if chart.sideways else {}


def _interval(series: Series) -> Figure:
    """Plotly's form of an interval: how far it reaches to both sides of the value."""
    rows = list(zip(series.y, series.low, series.high, strict=True))
    reach = [
        (0.0, 0.0) if low is None or high is None or not isinstance(value, int | float) else (high - value, value - low)
        for value, low, high in rows
    ]
    up, down = zip(*reach, strict=True)
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "thickness": 1.5, "width": 4}


def _add_replay(figure: Figure, chart: Chart, first: int) -> None:
    """Add a frame per step, a slider, and buttons to play and to halt."""
    places = list(range(first, first + len(chart.series)))
    figure["frames"] = [
        {"name": str(step), "traces": places, "data": [_up_to(series, chart, step) for series in chart.series]}
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
    across = [value for series in chart.series for value in series.x if isinstance(value, int | float)]
    margin = 0.5 if len(set(across)) < 2 else 0.04 * (max(across) - min(across))
    figure["layout"]["xaxis"]["range"] = [min(across) - margin, max(across) + margin]  # axes stand still
    if max(across) - min(across) <= _FEW_ROUNDS:
        figure["layout"]["xaxis"]["dtick"] = 1


def _up_to(series: Series, chart: Chart, step: int) -> Figure:
    if not series.steps:
        return _trace(series, chart)
    kept = [place for place, own in enumerate(series.steps) if own <= step]
    trace = _trace(series, chart)
    for key in ("x", "y", "text"):
        if key in trace:
            trace[key] = [trace[key][place] for place in kept]
    return trace


def _heat(heat: Heat) -> Figure:
    layout = _layout(heat)
    layout["yaxis"] |= {"autorange": "reversed", "type": "category"}
    layout["xaxis"] |= {"type": "category"}
    numbers = [value for row in heat.values for value in row if value is not None]
    most = max((abs(value) for value in numbers), default=1.0) or 1.0
    trace: Figure = {
        "type": "heatmap",
        "x": [quoted(name) for name in heat.x],
        "y": [quoted(name) for name in heat.y],
        "z": [_numbers(row) for row in heat.values],
        "colorscale": _PARTED if heat.diverging else _RISING,
        "showscale": False,
        "hoverongaps": False,
        "xgap": 1,
        "ygap": 1,
    }
    if heat.diverging:
        trace |= {"zmin": -most, "zmax": most}
    if heat.texts:
        trace |= {"text": [[quoted(text) for text in row] for row in heat.texts], "texttemplate": "%{text}"}
    return {"data": [trace], "layout": layout}


_PARTED: Final = [[0, "#d55e00"], [0.5, "#ffffff"], [1, "#0072b2"]]
_RISING: Final = [[0, "#f4f7fa"], [1, "#0072b2"]]


def _values(values: Sequence[Value]) -> list[Value]:
    return [quoted(value) if isinstance(value, str) else _number(value) for value in values]


def _numbers(values: Sequence[float | None]) -> list[float | None]:
    return [_number(value) for value in values]


def _number(value: float | int | None) -> float | int | None:
    """JSON has neither NaN nor infinity: such a value leaves a gap."""
    return value if value is None or math.isfinite(value) else None


def _faded(color: str) -> str:
    red, green, blue = (int(color[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"
