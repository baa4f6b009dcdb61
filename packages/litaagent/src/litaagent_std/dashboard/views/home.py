"""The first page: a list of everything that can be shown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from apexrl.runs.errors import ReadFailedError
from apexrl.runs.reading import MALFORMED, contained, read_json
from litaagent_std.dashboard.history import History, Item, ItemKind
from litaagent_std.dashboard.page import Cell, Link, Page, Table, number
from litaagent_std.records.reader import RECORDS_FOLDER
from litaagent_std.records.storage.manifest import Manifest
from litaagent_std.records.storage.store import segments_in

__all__ = ["home_page"]

_TITLES: Final[dict[ItemKind, str]] = {
    "tournament": "Tournaments",
    "arena": "Evaluations of the arena",
    "training": "Trainings",
    "hmasd": "Skill discovery (HMASD)",
}


def home_page(history: History) -> Page:
    """List tournaments, evaluations and trainings, the newest first."""
    items = history.items()
    tables = []
    for kind, title in _TITLES.items():
        own = [item for item in items if item.kind == kind]
        if own:
            tables.append(_tournaments(own) if kind == "tournament" else _others(title, own))
    facts = [("folder", history.root.name or "/"), ("results", str(len(items)))]
    return Page(template="home", title="LitaAgent", context={"facts": facts, "tables": tables}, live=True)


def _tournaments(items: Sequence[Item]) -> Table:
    rows: list[list[Cell]] = []
    for item in items:
        link = Link(item.name, "/tournament", {"name": item.name})
        try:
            manifest = Manifest.read(item.path / RECORDS_FOLDER)
        except ReadFailedError as error:
            rows.append([link, f"cannot be read: {error}", "–", "–", "–", "–", _modified(item)])
            continue
        gathered = {world for shard in manifest.shards for world in range(shard.first, shard.stop)}
        done = len(gathered | segments_in(item.path / RECORDS_FOLDER).keys()) - len(manifest.failed)
        state = "finished" if manifest.complete else "running or stopped"
        best, score = _best(item)
        rows.append(
            [link, state, best, score, f"{done} of {manifest.n_worlds}", str(len(manifest.failed)), _modified(item)]
        )
    return Table(
        _TITLES["tournament"], ["name", "state", "first", "score", "worlds", "failed", "changed"], rows, n_texts=3
    )


def _best(item: Item) -> tuple[str, str]:
    """Return the winner and its score from the results of a finished tournament."""
    try:
        first = read_json(contained(item.path, "results.json"))["standings"][0]
        return str(first["competitor"]), number(float(first["score"]))
    except (OSError, ReadFailedError, *MALFORMED):
        return "–", "–"  # not finished


def _others(title: str, items: Sequence[Item]) -> Table:
    rows: list[list[Cell]] = [
        [Link(item.name, f"/{item.kind}", {"name": item.name}), _modified(item)] for item in items
    ]
    return Table(title, ["name", "changed"], rows)


def _modified(item: Item) -> str:
    return datetime.fromtimestamp(item.modified, UTC).strftime("%Y-%m-%d %H:%M UTC")
