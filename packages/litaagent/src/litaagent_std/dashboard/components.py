"""Pages as components of Dash. Every text becomes a text node, so nothing from the data is ever markup."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from dash import dcc, html

from apexrl.charts import Chart, Heat, Picture
from apexrl.charts.plotly import CONFIG, plotly_figure
from litaagent_std.dashboard.page import Block, Cell, Facts, Filters, Link, Page, Rows, Text

__all__ = ["render"]

Component = Any
"""A component; Dash has no type for them all."""


def render(page: Page) -> list[Component]:
    """Return the components of a page."""
    live = [html.Span("live", className="live")] if page.live else []
    parts: list[Component] = [_trail(page.trail), html.H1([page.title, *live])]
    for is_picture, blocks in groupby(page.blocks, lambda block: isinstance(block, Chart | Heat)):
        made = [_block(block) for block in blocks]
        parts += [html.Div(made, className="grid")] if is_picture else made
    return parts


def _trail(trail: Sequence[Link]) -> Component:
    steps: list[Component] = []
    for link in trail:
        steps += [_cell(link), " / "]
    return html.Nav(steps, className="trail")


def _block(block: Block) -> Component:
    match block:
        case Text():
            return (
                html.H2(block.text) if block.tone == "heading" else html.P(block.text, className=f"text-{block.tone}")
            )
        case Facts():
            pairs = [html.Div([html.Dt(name), html.Dd(_cell(value))]) for name, value in block.pairs]
            return html.Dl(pairs, className="facts")
        case Rows():
            return _table(block)
        case Filters():
            return _filters(block)
        case _:
            return _picture(block)


def _cell(cell: Cell) -> Component:
    return dcc.Link(cell.text, href=cell.address) if isinstance(cell, Link) else cell


def _table(rows: Rows) -> Component:
    kinds = ["text" if place < rows.n_texts else "number" for place in range(len(rows.columns))]
    head = html.Tr([html.Th(name, className=kind) for name, kind in zip(rows.columns, kinds, strict=True)])
    body = [
        html.Tr([html.Td(_cell(cell), className=kind) for cell, kind in zip(row, kinds, strict=True)])
        for row in rows.rows
    ]
    table = html.Div(html.Table([html.Thead(head), html.Tbody(body)]), className="table")
    return html.Section([html.H2(rows.title), table])


def _filters(block: Filters) -> Component:
    made = []
    for one in block.filters:
        options = [{"value": value, "label": text} for value, text in one.choices]
        value: Any = [part for part in one.value.split(",") if part] if one.several else one.value
        choice = dcc.Dropdown(
            id={"type": "choice", "name": one.name, "shown": one.value},
            options=options,
            value=value,
            multi=one.several,
            clearable=one.several,
        )
        made.append(html.Div([html.Label(one.label), choice], className="filter"))
    return html.Div(made, className="filters")


def _picture(picture: Picture) -> Component:
    graph = dcc.Graph(
        id={"type": "picture", "name": picture.name},
        figure=plotly_figure(picture),
        config=CONFIG,  # type: ignore[arg-type]  # Dash knows fewer options than Plotly
        style={"height": f"{picture.height}px"},
        responsive=True,
    )
    caption = [html.Figcaption(picture.note)] if picture.note else []
    return html.Figure([html.H3(picture.title), graph, *caption], className="wide" if picture.wide else "")
