"""A page as plain data: what the web page and the static report both show, each in its own way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlencode

from apexrl.charts import Chart, Heat, Picture

__all__ = ["Block", "Cell", "Facts", "Filter", "Filters", "Link", "Page", "Rows", "Text", "number", "signed"]


@dataclass(frozen=True, slots=True)
class Link:
    """A text that leads to another page: its path, and parameters for the query."""

    text: str
    path: str
    query: Mapping[str, str | int] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The address, with everything quoted that needs it."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


Cell = str | Link


@dataclass(frozen=True, slots=True)
class Text:
    """A sentence or two. A warning says what is missing, an error what is wrong."""

    text: str
    tone: Literal["plain", "heading", "note", "warning", "error"] = "plain"


@dataclass(frozen=True, slots=True)
class Facts:
    """A few names with their values."""

    pairs: Sequence[tuple[str, Cell]]


@dataclass(frozen=True, slots=True)
class Rows:
    """A table; the columns from the ``n_texts``-th on hold numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    n_texts: int = 1


@dataclass(frozen=True, slots=True)
class Filter:
    """A choice that is part of the address: its name there, its label, the choices as (value, text), the value."""

    name: str
    label: str
    choices: Sequence[tuple[str, str]]
    value: str
    several: bool = False


@dataclass(frozen=True, slots=True)
class Filters:
    """Choices side by side; only the web page shows them."""

    filters: Sequence[Filter]


Block = Text | Facts | Rows | Filters | Picture


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A page.

    Attributes:
        title: Its heading.
        blocks: What it shows, from the top.
        trail: The way to it.
        live: Whether what it shows still grows.
    """

    title: str
    blocks: Sequence[Block]
    trail: Sequence[Link] = ()
    live: bool = False

    def pictures(self) -> Iterator[Picture]:
        """Its charts."""
        return (block for block in self.blocks if isinstance(block, Chart | Heat))


def number(value: float | None, digits: int = 3) -> str:
    """Return a number for a table; a missing one is a dash."""
    return "–" if value is None else f"{value:.{digits}f}"


def signed(value: float | None, digits: int = 3) -> str:
    """Return a number with its sign."""
    return "–" if value is None else f"{value:+.{digits}f}"
