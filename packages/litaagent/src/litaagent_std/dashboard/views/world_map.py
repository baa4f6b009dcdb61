"""The map of a world: levels from left to right, and what flowed between factories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from apexrl.charts import Chart, Series, color_of

__all__ = ["world_map"]

_SYSTEM: Final = -1
_WIDEST: Final = 9.0
_MIDDLE: Final = 0.62  # where along an edge its label is: not where edges cross most

Place = tuple[float, float]
Row = dict[str, Any]


def world_map(n_levels: int, factories: Sequence[Row], agents: Sequence[str], flows: Sequence[Row]) -> Chart:
    """Draw factories by level, and a line per pair that traded, as wide as the units that flowed.

    Args:
        n_levels: Production levels.
        factories: Rows of the table ``factories``, in seat order.
        agents: Who plays each.
        flows: Units and value by seller and buyer; -1 is the system, which sells raw material and buys the product.
    """
    places = _places(n_levels, factories)
    most = max((row["units"] for row in flows), default=1)
    edges, middles, labels = [], [], []
    for row in flows:
        source = places[row["seller"]] if row["seller"] != _SYSTEM else _beside(places[row["buyer"]], -1)
        target = places[row["buyer"]] if row["buyer"] != _SYSTEM else _beside(places[row["seller"]], 1)
        width = 0.4 + _WIDEST * float(row["units"]) / float(most)
        color = "#b9c4cf" if _SYSTEM in (row["seller"], row["buyer"]) else "#7fb2d6"
        edges.append(Series(name="", x=[source[0], target[0]], y=[source[1], target[1]], color=color, width=width))
        middles.append(tuple(a + _MIDDLE * (b - a) for a, b in zip(source, target, strict=True)))
        labels.append(_flow_label(row, factories, agents))
    points = Series(
        name="",
        x=[one[0] for one in middles],
        y=[one[1] for one in middles],
        kind="points",
        size=4,
        color="#5f7f99",
        labels=labels,
    )
    return Chart(
        name="map",
        title="Supply chain: who delivered to whom",
        series=[*edges, points, *_nodes(n_levels, factories, agents, places)],
        hide_axes=True,
        wide=True,
        height=max(320, 46 * max(1, *(sum(r["level"] == level for r in factories) for level in range(n_levels))) + 80),
        note="Raw material comes from the left, the final product leaves on the right; the wider a line, the more "
        "units. Point at a line or a factory for numbers.",
    )


def _places(n_levels: int, factories: Sequence[Row]) -> dict[int, Place]:
    places = {}
    for level in range(n_levels):
        seats = [row["factory"] for row in factories if row["level"] == level]
        for index, seat in enumerate(seats):
            places[seat] = (float(level), (len(seats) - 1) / 2 - index)
    return places


def _beside(place: Place, side: int) -> Place:
    return place[0] + 0.45 * side, place[1]


def _flow_label(row: Row, factories: Sequence[Row], agents: Sequence[str]) -> str:
    def name(seat: int) -> str:
        return "the system" if seat == _SYSTEM else f"{factories[seat]['name']} {agents[seat]}"

    mean = float(row["value"]) / float(row["units"]) if row["units"] else 0.0
    way = f"{name(row['seller'])} → {name(row['buyer'])}"
    return f"{way}: {row['units']} units at {mean:.1f}, {row['contracts']} contracts"


def _nodes(n_levels: int, factories: Sequence[Row], agents: Sequence[str], places: dict[int, Place]) -> list[Series]:
    """Competitors large and named in the legend, default agents small and grey."""
    kinds = sorted({agents[row["factory"]] for row in factories if row["competitor"] is not None})
    groups = [(name, color_of(index)) for index, name in enumerate(kinds)]
    series = []
    for name, color in [("", "#7f7f7f"), *groups]:
        own = [row for row in factories if (agents[row["factory"]] if row["competitor"] is not None else "") == name]
        series.append(
            Series(
                name=name or "default agents",
                x=[places[row["factory"]][0] for row in own],
                y=[places[row["factory"]][1] for row in own],
                kind="points",
                color=color,
                size=16 if name else 11,
                labels=[f"{row['name']} {agents[row['factory']]}: score {row['score']:.3f}" for row in own],
            )
        )
    return [one for one in series if one.x]
