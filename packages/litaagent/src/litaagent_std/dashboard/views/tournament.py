"""A tournament: the ranking with its intervals, by level and by length, and the list of worlds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from apexrl.charts import Chart, Heat, Picture, Series, color_of
from litaagent_std.dashboard.page import Filter, Link, Page, Table, number, signed
from litaagent_std.dashboard.views.standings import Played, Rank, length_names, pairs_of, ranks_of
from litaagent_std.dashboard.warehouse import Row, Warehouse
from litaagent_std.records.reader import RECORDS_FOLDER
from litaagent_std.tournament.standings import Paired

__all__ = ["played_in", "tournament_page"]

_LEVELS: Final = ("first", "middle", "last")
_PER_PAGE: Final = 25
_MOST_PROBLEMS: Final = 5

_SCORES: Final = """
    SELECT f.world, w.config, w.run, f.factory, f.competitor, f.score, f.n_errors, w.n_days,
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
    """Return every competitor's seat in every finished world, except worlds in which a wall-clock limit fired."""
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
            row["n_errors"],
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
    running = not store.manifest.complete
    filters, chosen = _filtered(played, query)
    context: dict[str, Any] = {
        "facts": _facts(store, folder),
        "running": running,
        "failed": list(store.manifest.failed.items())[:_MOST_PROBLEMS],
        "damaged": list(store.damaged.items())[:_MOST_PROBLEMS],
        "filters": filters if played else [],
        "ranking": None,
    }
    if chosen:
        ranks = ranks_of(chosen)
        pairs = pairs_of(chosen, [rank.competitor for rank in ranks])
        pages, worlds = _world_table(store, name, query)
        context |= {
            "ranking": _ranking_table(ranks, pairs, name),
            "charts": _charts(chosen, ranks, pairs),
            "pages": pages,
            "worlds": worlds,
        }
    return Page(template="tournament", title=name, context=context, trail=[Link("all", "/")], live=running)


def _charts(played: Sequence[Played], ranks: Sequence[Rank], pairs: Sequence[Paired]) -> list[Picture]:
    """Return ranking, distributions, means by level and by length, and the head-to-head matrix."""
    order = [rank.competitor for rank in ranks]
    charts: list[Picture] = [
        _ranking(ranks),
        _distributions(played, order),
        _by(played, order, "level", [level for level in _LEVELS if any(seat.level == level for seat in played)]),
        _by(played, order, "length", sorted({seat.length for seat in played})),
    ]
    return [*charts, *([_head_to_head(order, pairs)] if pairs else [])]


def _facts(store: Warehouse, folder: Path) -> list[tuple[str, str]]:
    manifest, done = store.manifest, len(store.worlds)
    state = "finished" if manifest.complete else f"running or stopped: {done} of {manifest.n_worlds} worlds"
    source = manifest.source.get("played", {})
    shown = [(key, source[key]) for key in ("configs", "runs", "steps", "levels", "inventory", "seed") if key in source]
    pairs = [("state", state), ("worlds", str(done)), ("folder", folder.name)]
    return pairs + [(key, "drawn" if value is None else str(value)) for key, value in shown]


def _filtered(played: Sequence[Played], query: Mapping[str, str]) -> tuple[list[Filter], list[Played]]:
    level, length = query.get("level", "all"), query.get("length", "all")
    levels = [("all", "all levels"), *((name, f"{name} level") for name in _LEVELS)]
    lengths = [("all", "all lengths"), *((name, name) for name in sorted({seat.length for seat in played}))]
    chosen = [seat for seat in played if level in {"all", seat.level} and length in {"all", seat.length}]
    return [Filter("level", "level", levels, level), Filter("length", "length", lengths, length)], chosen


def _ranking_table(ranks: Sequence[Rank], pairs: Sequence[Paired], name: str) -> Table:
    behind = {pair.second: pair for pair in pairs if pair.first == ranks[0].competitor}
    rows: list[list[str | Link]] = []
    for position, rank in enumerate(ranks, start=1):
        pair = behind.get(rank.competitor)
        rows.append(
            [
                Link(rank.competitor, "/agent", {"name": name, "agent": rank.competitor}),
                str(position),
                number(rank.score),
                _interval(rank.low, rank.high),
                number(rank.mean),
                number(rank.low_tail),
                number(rank.worst),
                str(rank.worlds),
                str(rank.errors),
                "–"
                if pair is None
                else f"{signed(-pair.difference)} ({_interval(_minus(pair.high), _minus(pair.low))})",
                "–" if pair is None or pair.p_holm is None else f"{pair.p_holm:.3f}",
            ]
        )
    columns = ["competitor", "rank", "score", "95 % interval", "mean", "5 %", "worst", "seats", "errors"]
    return Table("Ranking by the official truncated mean", [*columns, "minus the first", "p (Holm)"], rows)


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


def _colors(names: Sequence[str]) -> dict[str, str]:
    """Return a color by name: the one that the page of a world gives it, whatever its rank."""
    return {name: color_of(index) for index, name in enumerate(sorted(names))}


def _distributions(played: Sequence[Played], order: Sequence[str]) -> Chart:
    series, colors = [], _colors(order)
    for name in order:
        scores = [seat.score for seat in played if seat.competitor == name]
        series.append(Series(name=name, x=[name] * len(scores), y=scores, kind="box", color=colors[name]))
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
    series, colors = [], _colors(order)
    for name in order:
        own = [[seat.score for seat in played if seat.competitor == name and getattr(seat, what) == g] for g in groups]
        means = [sum(some) / len(some) if some else None for some in own]
        labels = [
            f"{name}, {g}: {number(mean)} in {len(some)} seats"
            for g, mean, some in zip(groups, means, own, strict=True)
        ]
        series.append(Series(name=name, x=list(groups), y=means, kind="points", color=colors[name], labels=labels))
    return Chart(name=f"by_{what}", title=f"Mean score by {what}", series=series, y_title="mean score", x_title=what)


def _head_to_head(order: Sequence[str], pairs: Sequence[Paired]) -> Heat:
    differences = {(pair.first, pair.second): pair.difference for pair in pairs}
    differences |= {(second, first): -difference for (first, second), difference in differences.items()}
    values = [[differences.get((row, column)) for column in order] for row in order]
    clear = {
        names for pair in pairs if pair.is_clear for names in ((pair.first, pair.second), (pair.second, pair.first))
    }
    texts = [
        ["" if value is None else signed(value, 2) + ("*" if (row, column) in clear else "") for column, value in line]
        for row, line in ((row, list(zip(order, cells, strict=True))) for row, cells in zip(order, values, strict=True))
    ]
    return Heat(
        name="head_to_head",
        title="Head to head: row minus column in the same seats",
        x=order,
        y=order,
        values=values,
        texts=texts,
        diverging=True,
        height=max(260, 130 + 30 * len(order)),
        note="Mean difference of the scores of two competitors that played the same seat of the same market. "
        f"A star: clear at 5 % after Holm's correction for all {len(pairs)} pairs.",
    )


def _world_table(store: Warehouse, name: str, query: Mapping[str, str]) -> tuple[list[Filter], Table]:
    pages = max(1, -(-len(store.worlds) // _PER_PAGE))
    asked = query.get("page", "1")
    page = min(max(1, int(asked) if asked.isdecimal() and len(asked) < 9 else 1), pages)
    rows = store.ask(_WORLDS, ["worlds", "factories"], [_PER_PAGE, (page - 1) * _PER_PAGE])
    columns = ["world", "best", "score", "configuration", "run", "rotation", "days", "levels", "factories", "errors"]
    table = Table("Worlds", columns, [_world_row(row, name) for row in rows], n_texts=2)
    if pages == 1:
        return [], table
    choices = [(str(index), f"worlds, page {index} of {pages}") for index in range(1, pages + 1)]
    return [Filter("page", "worlds", choices, str(page))], table


def _world_row(row: Row, name: str) -> list[str | Link]:
    link = Link(f"world {row['world']}", "/world", {"name": name, "world": row["world"]})
    limit = " (a time limit fired)" if row["limit_fired"] else ""
    counts = [str(row[key]) for key in ("config", "run", "rotation", "n_days", "n_levels", "n_factories", "errors")]
    return [link, f"{row['best']}{limit}", number(row["score"]), *counts]
