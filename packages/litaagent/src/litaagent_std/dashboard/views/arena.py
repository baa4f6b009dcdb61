"""An evaluation of the arena: is this agent better than that one?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from apexrl.charts import Chart, Series, color_of
from apexrl.runs.errors import UserFacingError
from litaagent_std.dashboard.history import grows
from litaagent_std.dashboard.page import Block, Facts, Link, Page, Rows, Text, number, signed

__all__ = ["ReportDamagedError", "arena_page", "read_report"]

_NEEDED: Final = frozenset({"focal", "agents", "comparisons", "rules", "block", "lead"})


class ReportDamagedError(UserFacingError):
    """A ``report.json`` is not what the arena wrote."""


def read_report(folder: Path) -> dict[str, Any]:
    """Return what the arena found.

    Raises:
        ReportDamagedError: If the file is not a report of the arena.
    """
    path = folder / "report.json"
    try:
        report = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(report, dict) or not report.keys() >= _NEEDED:
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
    blocks: list[Block] = [
        Facts(
            [
                ("agent", str(report["focal"])),
                ("seeds", str(report["block"])),
                ("mix", str(report["rules"].get("mix"))),
                ("engine", str(report["rules"].get("engine"))),
                ("question", f"a difference above {report['lead']:+g}?"),
            ]
        )
    ]
    if report["agents"]:
        if report["comparisons"]:
            blocks += [_comparison_table(report), _differences(report)]
        blocks += [_score_table(report), _scores(report), _fact_table(report)]
    else:
        blocks.append(Text("no world is finished yet", "warning"))
    for failure in list(report.get("failed", ()))[:5]:
        text = f"{failure['agent']} failed in world {failure['world']}, and is tried again by the same command"
        blocks.append(Text(f"{text}: {failure['reason']}", "warning"))
    live = grows(folder / "report.json")
    return Page(title=f"{report['focal']} in the arena", blocks=blocks, trail=[Link("all", "/")], live=live)


def _comparison_table(report: Mapping[str, Any]) -> Rows:
    rows = []
    for row in report["comparisons"]:
        every, verdict = row["difference"]["all"], row["verdict"]
        answer = verdict["answer"]
        if answer == "open" and verdict.get("needed") is not None:
            answer = f"open: about {verdict['needed']} worlds more"
        rows.append(
            [
                str(row["against"]),
                str(answer),
                signed(every["mean"], 4),
                _interval(every["low"], every["high"]),
                _interval(verdict["low"], verdict["high"]),
                f"{100 * every['won']:.0f} %",
                str(every["worlds"]),
            ]
        )
    columns = ["minus", "answer", "difference", "95 % interval", "at any time", "won", "worlds"]
    return Rows(f"{report['focal']} minus the other, in the same worlds", columns, rows, n_texts=2)


def _differences(report: Mapping[str, Any]) -> Chart:
    series = []
    for place, row in enumerate(report["comparisons"]):
        parts = row["difference"]
        series.append(
            Series(
                name=f"minus {row['against']}",
                x=list(parts),
                y=[one["mean"] for one in parts.values()],
                low=[one["low"] for one in parts.values()],
                high=[one["high"] for one in parts.values()],
                kind="points",
                color=color_of(place),
                labels=[f"{part}: {signed(one['mean'])} in {one['worlds']} worlds" for part, one in parts.items()],
            )
        )
    n_parts = max(len(one.x) for one in series)
    return Chart(
        name="differences",
        title="Paired differences, overall, by level and by length",
        series=series,
        x_title="mean difference",
        horizontal=True,
        height=max(260, 110 + 34 * n_parts),
        note="Bars: 95 % bootstrap intervals. An order is settled when the interval leaves out the lead asked for.",
    )


def _scores(report: Mapping[str, Any]) -> Chart:
    series = []
    for place, (name, agent) in enumerate(report["agents"].items()):
        parts = agent["scores"]
        heights = [one["mean"] for one in parts.values()]
        series.append(Series(name=name, x=list(parts), y=heights, kind="points", color=color_of(place)))
    return Chart(name="scores", title="Mean score by level and length", series=series, y_title="mean score")


def _score_table(report: Mapping[str, Any]) -> Rows:
    rows = []
    for name, agent in report["agents"].items():
        every = agent["scores"]["all"]
        keys = ("truncated", "mean", "low_tail", "worst")
        rows.append([name, *(number(every[key]) for key in keys), str(every["worlds"])])
    return Rows("Scores", ["agent", "truncated mean", "mean", "5 %", "worst", "worlds"], rows)


def _fact_table(report: Mapping[str, Any]) -> Rows:
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
    return Rows("How they played", columns, rows)


def _interval(low: float | None, high: float | None) -> str:
    return "too few worlds" if low is None or high is None else f"{low:+.3f} … {high:+.3f}"


def _damaged(path: Path, why: str) -> ReportDamagedError:
    return ReportDamagedError(
        f"{path.name!r} in {path.parent.name!r} cannot be used: {why}",
        "it must be the report that lita arena wrote",
        "run the same lita arena command again; finished worlds are kept",
    )
