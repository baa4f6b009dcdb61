"""A tournament: who won, how sure that is, and what it depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from apexrl.charts import Chart, Heat, Series, color_of
from litaagent_std.dashboard.page import Block, Facts, Filter, Filters, Link, Page, Rows, Text, number, signed
from litaagent_std.dashboard.standings import Played, Rank, length_names, pairs_of, ranks_of
from litaagent_std.dashboard.warehouse import Row, Warehouse
from litaagent_std.records.reader import RECORDS_FOLDER
from litaagent_std.tournament.standings import Paired

__all__ = ["played_in", "standing_pictures", "tournament_page"]

_LEVELS: Final = ("first", "middle", "last")
_PER_PAGE: Final = 25

_SCORES: Final = """
    SELECT f.world, w.config, w.run, f.factory, f.competitor, f.score, w.n_days,
           CASE WHEN f.level = 0 THEN 'first' WHEN f.level = w.n_levels - 1 THEN 'last' ELSE 'middle' END AS level
    FROM factories f JOIN worlds w ON w.world = f.world
    WHERE f.competitor IS NOT NULL AND NOT w.limit_fired
    ORDER BY f.world, f.factory
"""
_WORLDS: Final = """
    SELECT w.world, w.config, w.run, w.rotation, w.n_days, w.n_levels, w.n_factories, w.limit_fired,
           arg_max(f.competitor, f.score) AS best, max(f.score) AS score, sum(f.n_errors) AS errors
    FROM worlds w JOIN factories f ON f.world = w.world AND f.competitor IS NOT NULL
    GROUP BY ALL ORDER BY w.world LIMIT ? OFFSET ?
"""


def played_in(store: Warehouse) -> list[Played]:
    """Every competitor's seat in every finished world; worlds in which a wall-clock limit fired are left out."""
    rows = store.ask(_SCORES, ["factories", "worlds"])
    names = length_names(row["n_days"] for row in rows)
    return [
        Played(
            row["world"],
            row["config"],
            row["run"],
            row["factory"],
            row["level"],
            names[row["n_days"]],
            row["competitor"],
            row["score"],
        )
        for row in rows
    ]


def tournament_page(folder: Path, name: str, query: Mapping[str, str]) -> Page:
    """Return the page of a tournament.

    Args:
        folder: The tournament's folder.
        name: Its name in addresses.
        query: Choices: ``level``, ``length`` and ``page``.
    """
    store = Warehouse(folder / RECORDS_FOLDER)
    played = played_in(store)
    trail = [Link("all", "/")]
    running = not store.manifest.complete
    top: list[Block] = [_state(store, folder), *_problems(store)]
    if not played:
        empty = "no world is finished yet; this page looks again by itself" if running else "no competitor played"
        return Page(title=name, blocks=[*top, Text(empty, "warning")], trail=trail, live=running)
    filters, chosen = _filtered(played, query)
    if not chosen:
        blocks = [*top, filters, Text("no seat fits the choice; take another one", "warning")]
        return Page(title=name, blocks=blocks, trail=trail, live=running)
    ranks = ranks_of(chosen)
    pairs = pairs_of(chosen, [rank.competitor for rank in ranks])
    blocks = [
        *top,
        filters,
        _ranking_table(ranks, pairs, name),
        *standing_pictures(chosen, ranks, pairs),
        *_world_table(store, name, query),
    ]
    return Page(title=name, blocks=blocks, trail=trail, live=running)


def standing_pictures(played: Sequence[Played], ranks: Sequence[Rank], pairs: Sequence[Paired]) -> list[Chart | Heat]:
    """Ranking, distributions, by level, by length, head to head."""
    order = [rank.competitor for rank in ranks]
    pictures = [
        _ranking(ranks),
        _distributions(played, order),
        _by(played, order, "level", [level for level in _LEVELS if any(one.level == level for one in played)]),
        _by(played, order, "length", sorted({one.length for one in played})),
    ]
    return [*pictures, *([_head_to_head(order, pairs)] if pairs else [])]


def _state(store: Warehouse, folder: Path) -> Facts:
    manifest, done = store.manifest, len(store.worlds)
    state = "finished" if manifest.complete else f"running or stopped: {done} of {manifest.n_worlds} worlds"
    source = manifest.source.get("played", {})
    shown = [(key, source[key]) for key in ("configs", "runs", "steps", "levels", "inventory", "seed") if key in source]
    pairs: list[tuple[str, str]] = [("state", state), ("worlds", str(done)), ("folder", folder.name)]
    return Facts(pairs + [(key, "drawn" if value is None else str(value)) for key, value in shown])


def _problems(store: Warehouse) -> list[Text]:
    failed = [
        Text(f"world {world} failed: {reason}", "warning") for world, reason in list(store.manifest.failed.items())[:5]
    ]
    damaged = [
        Text(f"world {world} is left out: {reason}", "error") for world, reason in list(store.damaged.items())[:5]
    ]
    return failed + damaged


def _filtered(played: Sequence[Played], query: Mapping[str, str]) -> tuple[Filters, list[Played]]:
    level, length = query.get("level", "all"), query.get("length", "all")
    levels = [("all", "all levels"), *((one, f"{one} level") for one in _LEVELS)]
    lengths = [("all", "all lengths"), *((one, one) for one in sorted({one.length for one in played}))]
    chosen = [one for one in played if level in {"all", one.level} and length in {"all", one.length}]
    return Filters([Filter("level", "level", levels, level), Filter("length", "length", lengths, length)]), chosen


def _ranking_table(ranks: Sequence[Rank], pairs: Sequence[Paired], name: str) -> Rows:
    behind = {pair.second: pair for pair in pairs if pair.first == ranks[0].competitor}
    rows: list[list[str | Link]] = []
    for place, rank in enumerate(ranks, start=1):
        pair = behind.get(rank.competitor)
        rows.append(
            [
                Link(rank.competitor, "/agent", {"name": name, "agent": rank.competitor}),
                str(place),
                number(rank.score),
                _interval(rank.low, rank.high),
                number(rank.mean),
                number(rank.low_tail),
                number(rank.worst),
                str(rank.worlds),
                "–"
                if pair is None
                else f"{signed(-pair.difference)} ({_interval(_minus(pair.high), _minus(pair.low))})",
            ]
        )
    columns = ["competitor", "rank", "score", "95 % interval", "mean", "5 %", "worst", "seats", "minus the first"]
    return Rows("Ranking by the official truncated mean", columns, rows)


def _minus(value: float | None) -> float | None:
    return None if value is None else -value


def _interval(low: float | None, high: float | None) -> str:
    return "one configuration" if low is None or high is None else f"{low:.3f} … {high:.3f}"


def _ranking(ranks: Sequence[Rank]) -> Chart:
    names = [rank.competitor for rank in ranks]
    labels = [f"{rank.competitor}: {rank.score:.3f}, {_interval(rank.low, rank.high)}" for rank in ranks]
    series = Series(
        name="",
        x=names,
        y=[rank.score for rank in ranks],
        low=[rank.low for rank in ranks],
        high=[rank.high for rank in ranks],
        kind="points",
        size=10,
        labels=labels,
    )
    return Chart(
        name="ranking",
        title="Ranking",
        series=[series],
        x_title="truncated mean score",
        horizontal=True,
        height=max(220, 90 + 30 * len(names)),
        note="The official metric leaves out scores above Q3 + 2 (Q3 − Q1). Intervals: 95 %, configurations resampled.",
    )


def _distributions(played: Sequence[Played], order: Sequence[str]) -> Chart:
    series = []
    for index, name in enumerate(order):
        scores = [one.score for one in played if one.competitor == name]
        series.append(Series(name=name, x=[name] * len(scores), y=scores, kind="box", color=color_of(index)))
    return Chart(
        name="distributions",
        title="Scores of all seats",
        series=series,
        x_title="score",
        horizontal=True,
        height=max(220, 90 + 34 * len(order)),
        note="Final over initial balance. Box: the middle half; line: median; dashed: mean; points: outliers.",
    )


def _by(played: Sequence[Played], order: Sequence[str], what: str, groups: Sequence[str]) -> Chart:
    series = []
    for index, name in enumerate(order):
        own = [[one.score for one in played if one.competitor == name and getattr(one, what) == g] for g in groups]
        means = [sum(some) / len(some) if some else None for some in own]
        labels = [
            f"{name}, {g}: {number(mean)} in {len(some)} seats"
            for g, mean, some in zip(groups, means, own, strict=True)
        ]
        series.append(Series(name=name, x=list(groups), y=means, kind="points", color=color_of(index), labels=labels))
    return Chart(name=f"by_{what}", title=f"Mean score by {what}", series=series, y_title="mean score", x_title=what)


def _head_to_head(order: Sequence[str], pairs: Sequence[Paired]) -> Heat:
    found = {(pair.first, pair.second): pair.difference for pair in pairs}
    found |= {(second, first): -gap for (first, second), gap in found.items()}
    values = [[found.get((row, column)) for column in order] for row in order]
    return Heat(
        name="head_to_head",
        title="Head to head: row minus column in the same seats",
        x=order,
        y=order,
        values=values,
        texts=[["" if value is None else signed(value, 2) for value in row] for row in values],
        diverging=True,
        height=max(260, 130 + 30 * len(order)),
        note="Mean difference of the scores of two competitors that played the same seat of the same market.",
    )


def _world_table(store: Warehouse, name: str, query: Mapping[str, str]) -> list[Block]:
    pages = max(1, -(-len(store.worlds) // _PER_PAGE))
    asked = query.get("page", "1")
    page = min(max(1, int(asked) if asked.isdecimal() and len(asked) < 9 else 1), pages)
    rows = store.ask(_WORLDS, ["worlds", "factories"], [_PER_PAGE, (page - 1) * _PER_PAGE])
    columns = ["world", "best", "score", "configuration", "run", "rotation", "days", "levels", "factories", "errors"]
    table = Rows("Worlds", columns, [_world_row(row, name) for row in rows], n_texts=2)
    if pages == 1:
        return [table]
    choices = [(str(one), f"worlds, page {one} of {pages}") for one in range(1, pages + 1)]
    return [Filters([Filter("page", "worlds", choices, str(page))]), table]


def _world_row(row: Row, name: str) -> list[str | Link]:
    link = Link(f"world {row['world']}", "/world", {"name": name, "world": row["world"]})
    limit = " (a time limit fired)" if row["limit_fired"] else ""
    counts = [str(row[key]) for key in ("config", "run", "rotation", "n_days", "n_levels", "n_factories", "errors")]
    return [link, f"{row['best']}{limit}", number(row["score"]), *counts]
