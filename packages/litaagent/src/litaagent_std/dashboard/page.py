"""A page: the name of its Jinja template and the template's context, with the small values that templates lay out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from apexrl.charts import Chart, Heat, Picture

__all__ = ["Cell", "Filter", "Link", "Page", "Table", "number", "signed"]


@dataclass(frozen=True, slots=True)
class Link:
    """A link to another page: its text, its path and the parameters of its query."""

    text: str
    path: str
    query: Mapping[str, str | int] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Path and URL-encoded query."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


Cell = str | Link


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first ``n_texts`` columns are left-aligned texts, the others numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    n_texts: int = 1


@dataclass(frozen=True, slots=True)
class Filter:
    """A choice that is part of the address.

    Attributes:
        name: Its parameter in the query.
        label: Its label on the page.
        choices: Pairs of value and text.
        value: The chosen value; several are separated by commas.
        several: Whether more than one value can be chosen.
    """

    name: str
    label: str
    choices: Sequence[tuple[str, str]]
    value: str
    several: bool = False

    def is_chosen(self, value: str) -> bool:
        """Whether a value is the chosen one, or one of them."""
        return value in self.value.split(",") if self.several else value == self.value


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A page.

    Attributes:
        template: Name of the template, without ``.html``.
        title: The heading.
        context: Variables of the template.
        trail: Links to the pages above it.
        live: Whether what it shows still grows, so that the browser asks again.
        status: Status code of the HTTP response.
    """

    template: str
    title: str
    context: Mapping[str, Any]
    trail: Sequence[Link] = ()
    live: bool = False
    status: int = 200

    def charts(self) -> Iterator[Picture]:
        """Return the charts of the context: variables that are a chart or a list of charts, in their order."""
        for value in self.context.values():
            values = value if isinstance(value, list) else [value]
            yield from (chart for chart in values if isinstance(chart, Chart | Heat))


def number(value: float | None, digits: int = 3) -> str:
    """Format a number for a table; None is a dash."""
    return "–" if value is None else f"{value:.{digits}f}"


def signed(value: float | None, digits: int = 3) -> str:
    """Format a number with its sign; None is a dash."""
    return "–" if value is None else f"{value:+.{digits}f}"
