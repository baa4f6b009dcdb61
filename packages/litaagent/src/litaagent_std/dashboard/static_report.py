"""One file of HTML to send by mail: pages with their charts, and Plotly's JavaScript in it once.

It loads nothing: a policy within the file forbids it. Every text from the data is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from apexrl.charts import Chart, Heat, Picture
from apexrl.charts.plotly import CONFIG, plotly_figure
from apexrl.runs.atomic import write_text
from litaagent_std.dashboard.page import Block, Cell, Facts, Filters, Link, Page, Rows, Text

__all__ = ["html_of", "write_report"]

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"
_DRAW: Final = """
const figures = JSON.parse(document.getElementById("figures").textContent);
const config = JSON.parse(document.getElementById("config").textContent);
figures.forEach(function (figure, place) {
  const spot = document.getElementById("figure-" + place);
  Plotly.newPlot(spot, figure.data, figure.layout, config).then(function () {
    if (figure.frames) { Plotly.addFrames(spot, figure.frames); }
  });
});
"""


def write_report(pages: Sequence[Page], path: Path, title: str) -> Path:
    """Write pages as one file; returns it."""
    write_text(path, html_of(pages, title))
    return path


def html_of(pages: Sequence[Page], title: str) -> str:
    """Return the whole file as text."""
    from plotly.offline import get_plotlyjs

    figures: list[dict[str, Any]] = []
    body = "\n".join(_page(page, figures) for page in pages)
    style = (Path(__file__).parent / "assets" / "lita.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{style}</style></head><body>",
            f'<header class="top"><a>LitaAgent</a><span class="what">{escape(title)}</span></header>',
            f"<main>{body}</main>",
            f'<script type="application/json" id="figures">{_script_safe(figures)}</script>',
            f'<script type="application/json" id="config">{_script_safe(CONFIG)}</script>',
            f"<script>{get_plotlyjs()}</script>",
            f"<script>{_DRAW}</script></body></html>",
            "",
        ]
    )


def _script_safe(values: Any) -> str:  # noqa: ANN401 - anything that JSON holds
    """JSON in which no end of a script element can occur."""
    return json.dumps(values, allow_nan=False).replace("<", "\\u003c")


def _page(page: Page, figures: list[dict[str, Any]]) -> str:
    parts = [f"<section><h1>{escape(page.title)}</h1>"]
    for is_picture, blocks in groupby(page.blocks, lambda block: isinstance(block, Chart | Heat)):
        made = [_block(block, figures) for block in blocks]
        parts += ['<div class="grid">', *made, "</div>"] if is_picture else made
    return "\n".join([*parts, "</section>"])


def _block(block: Block, figures: list[dict[str, Any]]) -> str:
    match block:
        case Text(tone="heading"):
            return f"<h2>{escape(block.text)}</h2>"
        case Text():
            return f'<p class="text-{block.tone}">{escape(block.text)}</p>'
        case Facts():
            pairs = [f"<div><dt>{escape(name)}</dt><dd>{_cell(value)}</dd></div>" for name, value in block.pairs]
            return f'<dl class="facts">{"".join(pairs)}</dl>'
        case Rows():
            return _table(block)
        case Filters():
            return ""  # a file has nothing to choose from
        case _:
            return _picture(block, figures)


def _cell(cell: Cell) -> str:
    return escape(cell.text if isinstance(cell, Link) else cell)


def _table(rows: Rows) -> str:
    kinds = ["text" if place < rows.n_texts else "number" for place in range(len(rows.columns))]
    head = "".join(f'<th class="{kind}">{escape(name)}</th>' for name, kind in zip(rows.columns, kinds, strict=True))
    lines = [
        "<tr>"
        + "".join(f'<td class="{kind}">{_cell(cell)}</td>' for cell, kind in zip(row, kinds, strict=True))
        + "</tr>"
        for row in rows.rows
    ]
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return f'<h2>{escape(rows.title)}</h2><div class="table">{table}</div>'


def _picture(picture: Picture, figures: list[dict[str, Any]]) -> str:
    figures.append(plotly_figure(picture))
    spot = f'<div id="figure-{len(figures) - 1}" style="height:{picture.height}px"></div>'
    note = f"<figcaption>{escape(picture.note)}</figcaption>" if picture.note else ""
    wide = ' class="wide"' if picture.wide else ""
    return f"<figure{wide}><h3>{escape(picture.title)}</h3>{spot}{note}</figure>"
