"""Reports of a tournament, an evaluation or a training: one HTML file, and every chart as PNG and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from apexrl.charts import save_figure
from apexrl.runs.atomic import ensure_folder, write_text
from apexrl.runs.errors import UserFacingError
from litaagent_std.dashboard.history import History, kind_of
from litaagent_std.dashboard.page import Page
from litaagent_std.dashboard.render import render_report
from litaagent_std.dashboard.views.agent import agent_page
from litaagent_std.dashboard.views.arena import arena_page
from litaagent_std.dashboard.views.negotiation import example_negotiation, negotiation_page
from litaagent_std.dashboard.views.tournament import tournament_page
from litaagent_std.dashboard.views.training import training_page
from litaagent_std.dashboard.views.world import world_page
from litaagent_std.dashboard.warehouse import Warehouse
from litaagent_std.records.reader import RECORDS_FOLDER

__all__ = ["NothingToReportError", "make_report", "pages_of"]


class NothingToReportError(UserFacingError):
    """A path holds nothing that a report can be made of."""


def pages_of(path: Path, world: int | None = None, agent: str | None = None) -> list[Page]:
    """Return the pages of a report.

    Args:
        path: The folder of a tournament, an evaluation of the arena, a training or an HMASD run.
        world: Of a tournament, the world to show; default: the first finished one.
        agent: Of a tournament, an agent to show too; also its reasons in that world, if the record holds them.

    Raises:
        NothingToReportError: If the folder holds none of them.
    """
    path = path.resolve()
    kind = kind_of(path)
    if kind == "tournament":
        return _tournament(path, world, agent)
    if kind == "arena":
        return [arena_page(path, path.name, {})]
    if kind is not None:
        return [training_page(History(path.parent), kind, path.name, {})]
    inside = sorted(child for child in path.iterdir() if kind_of(child) is not None) if path.is_dir() else []
    raise NothingToReportError(
        f"there is nothing to report in {str(path)!r}",
        "a report is made of a tournament, an evaluation of the arena, a training or an HMASD run",
        f"name one or more of {' '.join(map(str, inside))}"
        if inside
        else "name the folder of one; lita serve lists what there is",
    )


def _tournament(path: Path, world: int | None, agent: str | None) -> list[Page]:
    pages = [tournament_page(path, path.name, {})]
    store = Warehouse(path / RECORDS_FOLDER)
    if not store.worlds:
        return pages
    chosen = store.worlds[0] if world is None else world
    query = {"world": str(chosen)}
    example = example_negotiation(store, chosen)
    if example is None:
        pages.append(world_page(path, path.name, query))
    else:
        query["day"], index = map(str, example)
        pages.append(world_page(path, path.name, query))
        pages.append(negotiation_page(path, path.name, {**query, "negotiation": index}))
    if agent is not None:
        seat = _seat(store, chosen, agent)
        pages.append(agent_page(path, path.name, {**query, "agent": agent, "seat": seat}))
    return pages


def _seat(store: Warehouse, world: int, agent: str) -> str:
    """Return the agent's seat in a world as addresses name it; empty if it has none there."""
    question = "SELECT factory FROM factories WHERE competitor = ? ORDER BY factory LIMIT 1"
    rows = store.ask(question, ["factories"], [agent], world=world)
    return f"{world}-{rows[0]['factory']}" if rows else ""


def make_report(pages: Sequence[Page], output: Path, *, title: str, figures: bool = True) -> list[Path]:
    """Write the HTML file and, beside it, every chart as PNG and SVG.

    Args:
        pages: The pages to show.
        output: The HTML file.
        title: Its title.
        figures: Whether to write the charts too, into the folder ``NAME_figures`` beside it.

    Returns:
        The files, the HTML file first.
    """
    write_text(output, render_report(pages, title))
    written = [output]
    if figures:
        folder = output.with_name(f"{output.stem}_figures")
        ensure_folder(folder)
        for index, page in enumerate(pages, start=1):
            for chart in page.charts():
                written += save_figure(replace(chart, name=f"{index}_{chart.name}"), folder)
    return written
