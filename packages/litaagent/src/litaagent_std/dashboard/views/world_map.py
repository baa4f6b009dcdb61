"""The map of a world: levels from left to right, and what flowed between factories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from apexrl.charts import Chart, Series, color_of

__all__ = ["world_map"]

_SYSTEM: Final = -1
_WIDEST: Final = 9.0
_MIDDLE: Final = 0.62  # where along an edge its label is: not where edges cross most

Point = tuple[float, float]
Row = dict[str, Any]


def world_map(n_levels: int, factories: Sequence[Row], agents: Sequence[str], flows: Sequence[Row]) -> Chart:
    """Draw factories by level, and a line per pair that traded, as wide as the units that flowed.

    Args:
        n_levels: Production levels.
        factories: Rows of the table ``factories``, in seat order.
        agents: Who plays each.
        flows: Units and value by seller and buyer; -1 is the system, which sells raw material and buys the product.
    """
    positions = _positions(n_levels, factories)
    most = max((row["units"] for row in flows), default=1)
    edges, middles, labels = [], [], []
    for row in flows:
        source = positions[row["seller"]] if row["seller"] != _SYSTEM else _beside(positions[row["buyer"]], -1)
        target = positions[row["buyer"]] if row["buyer"] != _SYSTEM else _beside(positions[row["seller"]], 1)
        width = 0.4 + _WIDEST * float(row["units"]) / float(most)
        color = "#b9c4cf" if _SYSTEM in (row["seller"], row["buyer"]) else "#7fb2d6"
        edges.append(Series(name="", x=[source[0], target[0]], y=[source[1], target[1]], color=color, width=width))
        middles.append(tuple(a + _MIDDLE * (b - a) for a, b in zip(source, target, strict=True)))
        labels.append(_flow_label(row, factories, agents))
    labels_at = Series(
        name="",
        x=[point[0] for point in middles],
        y=[point[1] for point in middles],
        kind="points",
        size=4,
        color="#5f7f99",
        labels=labels,
    )
    return Chart(
        name="map",
        title="Supply chain: who delivered to whom",
        series=[*edges, labels_at, *_nodes(n_levels, factories, agents, positions)],
        hide_axes=True,
        wide=True,
        height=max(320, 46 * max(1, *(sum(r["level"] == level for r in factories) for level in range(n_levels))) + 80),
        note="Raw material comes from the left, the final product leaves on the right; the wider a line, the more "
        "units. Point at a line or a factory for numbers.",
    )


def _positions(n_levels: int, factories: Sequence[Row]) -> dict[int, Point]:
    positions = {}
    for level in range(n_levels):
        seats = [row["factory"] for row in factories if row["level"] == level]
        for index, seat in enumerate(seats):
            positions[seat] = (float(level), (len(seats) - 1) / 2 - index)
    return positions


def _beside(point: Point, side: int) -> Point:
    return point[0] + 0.45 * side, point[1]


def _flow_label(row: Row, factories: Sequence[Row], agents: Sequence[str]) -> str:
    def name(seat: int) -> str:
        return "the system" if seat == _SYSTEM else f"{factories[seat]['name']} {agents[seat]}"

    mean = float(row["value"]) / float(row["units"]) if row["units"] else 0.0
    way = f"{name(row['seller'])} → {name(row['buyer'])}"
    return f"{way}: {row['units']} units at {mean:.1f}, {row['contracts']} contracts"


def _nodes(n_levels: int, factories: Sequence[Row], agents: Sequence[str], positions: dict[int, Point]) -> list[Series]:
    """Competitors large and named in the legend, default agents small and grey."""
    kinds = sorted({agents[row["factory"]] for row in factories if row["competitor"] is not None})
    groups = [(name, color_of(index)) for index, name in enumerate(kinds)]
    series = []
    for name, color in [("", "#7f7f7f"), *groups]:
        own = [row for row in factories if (agents[row["factory"]] if row["competitor"] is not None else "") == name]
        series.append(
            Series(
                name=name or "default agents",
                x=[positions[row["factory"]][0] for row in own],
                y=[positions[row["factory"]][1] for row in own],
                kind="points",
                color=color,
                size=16 if name else 11,
                labels=[f"{row['name']} {agents[row['factory']]}: score {row['score']:.3f}" for row in own],
            )
        )
    return [group for group in series if group.x]
