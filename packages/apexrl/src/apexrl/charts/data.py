"""Charts as plain data.

A chart describes what is drawn; `apexrl.charts.plotly` turns it into a figure for the browser and
`apexrl.charts.matplotlib` into PNG and SVG. Texts are literal everywhere: both modules escape what their library would
interpret as markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["PALETTE", "Band", "Chart", "Heat", "Panels", "Picture", "Series", "Value", "color_of"]

PALETTE: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#7f7f7f", "#5b3a8c", "#e69f00")
"""Colours that people with any kind of colour vision can distinguish."""

Value = float | int | str | None
"""A coordinate: a number, a category, or None for a gap."""
Kind = Literal["line", "points", "bar", "box"]


def color_of(index: int) -> str:
    """Return the colour of the series with this index; colours repeat after the last one."""
    return PALETTE[index % len(PALETTE)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """Marks of one kind and colour; all sequences that are not empty have the same length.

    Attributes:
        name: Name in the legend; an empty name gets no entry.
        x: Positions along the first axis; ignored for a box, whose category is its name.
        y: Values; None leaves a gap.
        kind: How the marks are drawn.
        color: A colour such as ``#0072b2``.
        colors: A colour per bar; default: `color` for all.
        low: Lower ends of intervals, together with `high`; None for a mark without an interval.
        high: Upper ends of intervals.
        labels: A text per mark, shown on hover.
        texts: A text per bar, printed at its end.
        width: Line width.
        size: Diameter of the markers.
        sizes: A diameter per marker; default: `size` for all.
        dashed: Whether the line is dashed.
        steps: For a replay, the step at which each mark appears.
    """

    name: str
    x: Sequence[Value]
    y: Sequence[Value]
    kind: Kind = "line"
    color: str = PALETTE[0]
    colors: Sequence[str] = ()
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    labels: Sequence[str] = ()
    texts: Sequence[str] = ()
    width: float = 2.0
    size: float = 8.0
    sizes: Sequence[float] = ()
    dashed: bool = False
    steps: Sequence[int] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Band:
    """A shaded range between two curves, such as a confidence interval; an empty name gets no legend entry."""

    name: str
    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    color: str = "#999999"


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """Series and bands between two axes.

    Attributes:
        name: Identifier, valid as a file name and as an HTML id.
        title: What the chart shows.
        series: Series in drawing order.
        bands: Bands, drawn behind the series.
        x_title: Title of the horizontal axis.
        y_title: Title of the vertical axis.
        horizontal: Whether the first axis (`Series.x`) runs down the left side and values run to the right.
        stacked: Whether bars of different series are stacked.
        dodged: Whether points of different series in the same category are drawn side by side.
        reference: A value at which a thin line is drawn, such as 0 for differences.
        hide_axes: Whether axes are left out, as for a map.
        wide: Whether the chart takes the full width of a page.
        height: Height in CSS pixels.
        note: A sentence on how to read the chart.
    """

    name: str
    title: str
    series: Sequence[Series]
    bands: Sequence[Band] = ()
    x_title: str = ""
    y_title: str = ""
    horizontal: bool = False
    stacked: bool = False
    dodged: bool = False
    reference: float | None = None
    hide_axes: bool = False
    wide: bool = False
    height: int = 340
    note: str = ""

    @property
    def n_steps(self) -> int:
        """Number of steps of the replay; 0 if there is none."""
        return max((step + 1 for series in self.series for step in series.steps), default=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Heat:
    """A matrix drawn as coloured cells.

    Attributes:
        name: Identifier, valid as a file name and as an HTML id.
        title: What the matrix shows.
        x: Column names.
        y: Row names, from the top.
        values: Rows of values; None leaves a cell empty.
        texts: Texts printed in the cells; default: none.
        diverging: Whether the colour scale diverges from zero.
        x_title: Title of the columns.
        y_title: Title of the rows.
        wide: Whether the chart takes the full width of a page.
        height: Height in CSS pixels.
        note: A sentence on how to read the matrix.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Panels:
    """Several charts side by side in one file (matplotlib only).

    Attributes:
        name: Identifier, valid as a file name.
        pictures: The charts, row by row.
        columns: Charts per row.
        title: A title above all of them.
    """

    name: str
    pictures: Sequence[Chart | Heat]
    columns: int = 2
    title: str = ""


Picture = Chart | Heat
"""One chart of either form."""
