"""An evaluation of the arena: is this agent better than that one?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from apexrl.charts import Chart, Estimate, Series, color_of, forest_plot
from apexrl.runs.errors import ReadFailedError
from apexrl.runs.reading import contained, read_sealed
from litaagent_std.arena.sequential import comparison_title
from litaagent_std.dashboard.history import grows
from litaagent_std.dashboard.page import Link, Page, Table, number, signed

__all__ = ["ReportDamagedError", "arena_page", "read_report"]

_NEEDED: Final = frozenset({"focal", "agents", "comparisons", "rules", "block", "lead"})
_MOST_FAILURES: Final = 5


class ReportDamagedError(ReadFailedError):
    """A ``report.json`` is not what the arena wrote."""


def read_report(folder: Path) -> dict[str, Any]:
    """Return the report of the arena.

    Raises:
        ReportDamagedError: If the file is not a report of the arena.
    """
    path = folder / "report.json"
    try:
        report = read_sealed(contained(folder, path.name))
    except (OSError, ReadFailedError) as error:
        raise _damaged(path, str(error)) from error
    if not report.keys() >= _NEEDED:
        raise _damaged(path, f"it lacks one of {sorted(_NEEDED)}")
    return report


def arena_page(folder: Path, name: str, query: Mapping[str, str]) -> Page:
    """Return the page of an evaluation.

    Args:
        folder: The folder with ``report.json``.
        name: Its name in addresses.
        query: Unused; every view has it.
    """
    del query
    report = read_report(folder)
    has_agents = bool(report["agents"])
    is_compared = has_agents and bool(report["comparisons"])
    facts = [
        ("agent", str(report["focal"])),
        ("seeds", str(report["block"])),
        ("mix", str(report["rules"].get("mix"))),
        ("engine", str(report["rules"].get("engine"))),
        ("question", f"a difference above {report['lead']:+g}?"),
    ]
    context = {
        "facts": facts,
        "comparisons": _comparison_table(report) if is_compared else None,
        "difference_charts": [_differences(report)] if is_compared else [],
        "scores": _score_table(report) if has_agents else None,
        "score_charts": [_scores(report)] if has_agents else [],
        "behaviour": _behaviour_table(report) if has_agents else None,
        "failed": list(report.get("failed", ()))[:_MOST_FAILURES],
    }
    title = f"{report['focal']} in the arena"
    return Page(
        template="arena", title=title, context=context, trail=[Link("all", "/")], live=grows(folder / "report.json")
    )


def _comparison_table(report: Mapping[str, Any]) -> Table:
    rows = []
    for row in report["comparisons"]:
        overall, verdict = row["difference"]["all"], row["verdict"]
        answer = verdict["answer"]
        if answer == "open" and verdict.get("needed") is not None:
            answer = f"open: about {verdict['needed']} worlds more"
        rows.append(
            [
                str(row["against"]),
                str(answer),
                signed(overall["mean"], 4),
                _interval(overall["low"], overall["high"]),
                _interval(verdict["low"], verdict["high"]),
                f"{100 * overall['won']:.0f} %",
                str(overall["worlds"]),
            ]
        )
    columns = ["minus", "answer", "difference", "95 % interval", "at any time", "won", "worlds"]
    return Table(comparison_title(report), columns, rows, n_texts=2)


def _differences(report: Mapping[str, Any]) -> Chart:
    groups = {
        f"minus {row['against']}": {
            part: Estimate(
                value=values["mean"],
                low=values["low"],
                high=values["high"],
                label=f"{part}: {signed(values['mean'])} in {values['worlds']} worlds",
            )
            for part, values in row["difference"].items()
        }
        for row in report["comparisons"]
    }
    chart = forest_plot(
        groups,
        name="differences",
        title="Paired differences, overall, by level and by length",
        x_title="mean difference",
        reference=report["lead"],
    )
    return replace(
        chart,
        note="Bars: 95 % bootstrap intervals, each for itself. An answer follows from the interval at any time, above.",
    )


def _scores(report: Mapping[str, Any]) -> Chart:
    series = []
    for index, (name, agent) in enumerate(report["agents"].items()):
        parts = agent["scores"]
        means = [values["mean"] for values in parts.values()]
        series.append(Series(name=name, x=list(parts), y=means, kind="points", color=color_of(index)))
    return Chart(name="scores", title="Mean score by level and length", series=series, y_title="mean score")


def _score_table(report: Mapping[str, Any]) -> Table:
    rows = []
    for name, agent in report["agents"].items():
        overall = agent["scores"]["all"]
        keys = ("truncated", "mean", "low_tail", "worst")
        rows.append([name, *(number(overall[key]) for key in keys), str(overall["worlds"])])
    return Table("Scores", ["agent", "truncated mean", "mean", "5 %", "worst", "worlds"], rows)


def _behaviour_table(report: Mapping[str, Any]) -> Table:
    columns = [
        "agent",
        "sales/day",
        "stock",
        "shortfall, %",
        "storage, %",
        "bankrupt, %",
        "errors",
        "L1",
        "ms/decision",
    ]
    rows: list[Sequence[str]] = []
    for name, agent in report["agents"].items():
        facts, cpu = agent["facts"], agent["cpu"]
        shares = [f"{100 * facts[key]:.1f}" for key in ("shortfall", "storage", "bankrupt")]
        counts = [str(facts["errors"]), number(facts["interventions"], 1), number(cpu["decision_ms"], 2)]
        rows.append([name, number(facts["sales"], 2), number(facts["stock"], 1), *shares, *counts])
    return Table("How they played", columns, rows)


def _interval(low: float | None, high: float | None) -> str:
    return "too few worlds" if low is None or high is None else f"{low:+.3f} … {high:+.3f}"


def _damaged(path: Path, why: str) -> ReportDamagedError:
    return ReportDamagedError(
        f"{path.name!r} in {path.parent.name!r} cannot be used: {why}",
        "it must be the report that lita arena wrote",
        "run the same lita arena command again; finished worlds are kept",
    )
