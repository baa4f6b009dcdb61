"""Charts as plain data.

A view says what is to be seen; `plotly_form` turns it into a figure for the browser and `matplotlib_form` into PNG and
SVG for papers. Names of agents and factories are text everywhere: both forms quote what their library would take for
markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["PALETTE", "Band", "Chart", "Heat", "Picture", "Series", "Value", "color_of"]

PALETTE: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#7f7f7f", "#5b3a8c", "#e69f00")
"""Colours that people with any kind of colour vision tell apart."""

Value = float | int | str | None
Kind = Literal["line", "points", "bar", "box"]


def color_of(index: int) -> str:
    """Return the colour of a series by its place."""
    return PALETTE[index % len(PALETTE)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One row of marks.

    Attributes:
        name: Name in the legend; an empty one stays out of it.
        x: Places across; for a box all values have the series' name.
        y: Heights; None leaves a gap.
        kind: How it is drawn.
        color: A colour such as ``#0072b2``.
        low: Lower ends of intervals, with `high`; None for a point without one.
        high: Upper ends.
        labels: A text per mark, shown by pointing at it.
        width: Width of the line.
        size: Size of the marks.
        dashed: Whether the line is dashed.
        steps: For a replay, the step at which each mark appears.
    """

    name: str
    x: Sequence[Value]
    y: Sequence[Value]
    kind: Kind = "line"
    color: str = PALETTE[0]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    labels: Sequence[str] = ()
    width: float = 2.0
    size: float = 8.0
    dashed: bool = False
    steps: Sequence[int] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Band:
    """A shaded range, such as the range of an issue or an interval around a curve."""

    name: str
    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    color: str = "#999999"


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """Marks between two axes.

    Attributes:
        name: Usable as a file name and as an address within a page.
        title: What it shows.
        series: What is drawn, in this order.
        bands: What is drawn behind it.
        x_title: What runs across.
        y_title: What runs upwards.
        sideways: Whether categories run downwards on the left: values and intervals then lie across.
        stacked: Whether bars stand on each other.
        bare: Whether axes are left out, as for a map.
        wide: Whether it takes the whole width of a page.
        height: In pixels of the browser.
        note: A sentence for those who want to know how to read it.
    """

    name: str
    title: str
    series: Sequence[Series]
    bands: Sequence[Band] = ()
    x_title: str = ""
    y_title: str = ""
    sideways: bool = False
    stacked: bool = False
    bare: bool = False
    wide: bool = False
    height: int = 340
    note: str = ""

    @property
    def n_steps(self) -> int:
        """Steps of the replay; 0 if there is none."""
        return max((step + 1 for series in self.series for step in series.steps), default=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Heat:
    """A matrix of numbers as colours.

    Attributes:
        name: Usable as a file name and as an address within a page.
        title: What it shows.
        x: Names of the columns.
        y: Names of the rows, from the top.
        values: Rows of numbers; None leaves a field empty.
        texts: What stands in the fields; empty for nothing.
        diverging: Whether colours part at zero.
        x_title: What runs across.
        y_title: What runs downwards.
        wide: Whether it takes the whole width of a page.
        height: In pixels of the browser.
        note: How to read it.
    """

    name: str
    title: str
    x: Sequence[str]
    y: Sequence[str]
    values: Sequence[Sequence[float | None]]
    texts: Sequence[Sequence[str]] = ()
    diverging: bool = False
    x_title: str = ""
    y_title: str = ""
    wide: bool = False
    height: int = 360
    note: str = ""


Picture = Chart | Heat
