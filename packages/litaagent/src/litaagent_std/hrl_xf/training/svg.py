"""Small pictures without a library: curves of losses, and calibration."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

__all__ = ["calibration_chart", "line_chart"]

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 460, 260, 56, 34, 28
_COLOURS = ("#1f5fa8", "#c4511d", "#2d7d46", "#7b3fa0", "#8a6d1c", "#b0305c", "#3b8686", "#555555")
_DASHES = ("", "5 3")

Points = Sequence[tuple[float, float]]


def _frame(title: str, low: tuple[float, float], high: tuple[float, float], inner: str, legend: Sequence[str]) -> str:
    labels = [
        (_LEFT, _HEIGHT - 14, f"{low[0]:g}", "start"),
        (_WIDTH - 8, _HEIGHT - 14, f"{high[0]:g}", "end"),
        (_LEFT - 6, _HEIGHT - _BOTTOM, f"{low[1]:.3g}", "end"),
        (_LEFT - 6, _TOP + 8, f"{high[1]:.3g}", "end"),
    ]
    text = "".join(f'<text x="{x}" y="{y}" text-anchor="{a}" font-size="11">{t}</text>' for x, y, t, a in labels)
    axes = f'<path d="M{_LEFT},{_TOP} V{_HEIGHT - _BOTTOM} H{_WIDTH - 8}" fill="none" stroke="#888"/>'
    keys = "".join(
        f'<text x="{_LEFT + 10}" y="{_TOP + 12 + 14 * i}" font-size="11" fill="{_COLOURS[i % len(_COLOURS)]}">'
        f"{html.escape(name)}</text>"
        for i, name in enumerate(legend)
    )
    caption = html.escape(title)
    return (
        f'<figure><svg role="img" aria-label="{caption}" width="{_WIDTH}" height="{_HEIGHT}">'
        f'<text x="{_LEFT}" y="16" font-size="13" font-weight="bold">{caption}</text>{axes}{inner}{text}{keys}'
        "</svg></figure>"
    )


def _place(point: tuple[float, float], low: tuple[float, float], high: tuple[float, float]) -> str:
    x = (point[0] - low[0]) / max(high[0] - low[0], 1e-12)
    y = (point[1] - low[1]) / max(high[1] - low[1], 1e-12)
    return f"{_LEFT + x * (_WIDTH - 8 - _LEFT):.1f},{_HEIGHT - _BOTTOM - y * (_HEIGHT - _BOTTOM - _TOP):.1f}"


def line_chart(title: str, lines: Mapping[str, Points]) -> str:
    """Return curves as an SVG figure."""
    every = [point for points in lines.values() for point in points]
    low = (min(x for x, _ in every), min(y for _, y in every))
    high = (max(x for x, _ in every), max(y for _, y in every))
    inner = ""
    for number, points in enumerate(lines.values()):
        path = " ".join(_place(point, low, high) for point in points)
        colour, dash = _COLOURS[number % len(_COLOURS)], _DASHES[number % 2]
        inner += f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-dasharray="{dash}" stroke-width="2"/>'
        inner += "".join(
            f'<circle cx="{_place(p, low, high).split(",")[0]}" cy="{_place(p, low, high).split(",")[1]}" r="2" '
            f'fill="{colour}"/>'
            for p in points
        )
    return _frame(title, low, high, inner, list(lines))


def calibration_chart(title: str, bins: Sequence[Mapping[str, float]]) -> str:
    """Return predicted against observed shares; the diagonal is perfect calibration."""
    low, high = (0.0, 0.0), (1.0, 1.0)
    start, end = _place(low, low, high), _place(high, low, high)
    inner = f'<path d="M{start} L{end}" stroke="#bbb" fill="none"/>'
    points = [(bin_["predicted"], bin_["observed"]) for bin_ in bins]
    inner += f'<polyline points="{" ".join(_place(p, low, high) for p in points)}" fill="none" stroke="{_COLOURS[0]}"/>'
    most = max(bin_["count"] for bin_ in bins)
    for point, bin_ in zip(points, bins, strict=True):
        x, y = _place(point, low, high).split(",")
        radius = 2.0 + 6.0 * (bin_["count"] / most) ** 0.5
        inner += f'<circle cx="{x}" cy="{y}" r="{radius:.1f}" fill="{_COLOURS[0]}" fill-opacity="0.6"/>'
    return _frame(title, low, high, inner, ["predicted (across), observed (up)"])
