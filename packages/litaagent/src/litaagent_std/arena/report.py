"""The result of an evaluation, as plain values and as tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np
from rich.console import Group
from rich.table import Table

from apexrl.statistics import PairedDifference, Summary, paired_difference, summarize
from litaagent_std.arena.evaluation import Evaluation, Unit
from litaagent_std.arena.sequential import comparison_title
from litaagent_std.arena.units import code_version

__all__ = ["report_of", "statistics_values", "strata", "tables_of"]

_MEANS: Final = ("sales", "purchases", "produced", "stock", "shortfall_units", "shortfall", "storage", "bankruptcies")
_COSTS: Final = ("decision_ms", "day_ms", "world_seconds")


def report_of(evaluation: Evaluation) -> dict[str, Any]:
    """Return the whole result in plain values for JSON.

    It rests on the worlds up to the one at which each answer was clear, so it is the same whatever was played beyond
    and wherever; only what stands under ``cpu`` depends on the machine.
    """
    plan = evaluation.plan
    rules = {name: getattr(plan.rules, name) for name in plan.rules.__dataclass_fields__}
    return {
        "focal": plan.focal.name,
        "block": plan.block.name,
        "worlds": plan.worlds,
        "lead": plan.lead,
        "stop_early": plan.stop_early,
        "alpha": plan.alpha,
        "rules": {name: list(value) if isinstance(value, tuple) else value for name, value in rules.items()},
        "code": {who.name: code_version(who.spec) for who in (plan.focal, *plan.against)},
        "agents": {name: _agent(units) for name, units in _units(evaluation).items() if units},
        "comparisons": [_comparison(evaluation, other.name) for other in plan.against if evaluation.shared(other.name)],
        "failed": [{"agent": name, "world": index, "reason": why} for (name, index), why in evaluation.failed.items()],
    }


def _units(evaluation: Evaluation) -> dict[str, list[Unit]]:
    """Return the units that count, by name: the focal agent's in the longest comparison, the others' in their own."""
    plan = evaluation.plan
    sides = {other.name: evaluation.pairs(other.name) for other in plan.against}
    longest = max((own for own, _ in sides.values()), key=len, default=[])
    if not plan.against:
        played = evaluation.units.get(plan.focal.name, {})
        longest = [played[index] for index in sorted(played)]
    return {plan.focal.name: longest} | {name: other for name, (_, other) in sides.items()}


def _agent(units: Sequence[Unit]) -> dict[str, Any]:
    scores = np.array([unit["score"] for unit in units])
    counted = [unit["interventions"] for unit in units if unit["interventions"] is not None]
    return {
        "scores": {name: statistics_values(summarize(scores[places])) for name, places in strata(units).items()},
        "facts": {name: float(np.mean([unit[name] for unit in units])) for name in _MEANS}
        | {"bankrupt": float(np.mean([unit["bankrupt_on"] is not None for unit in units]))}
        | {"errors": sum(unit["n_errors"] for unit in units)}
        | {"interventions": float(np.mean(counted)) if counted else None},
        "cpu": {name: float(np.mean([unit["cpu"][name] for unit in units])) for name in _COSTS}
        | {"longest_decision_ms": max(unit["cpu"]["longest_decision_ms"] for unit in units)},
        "messages": sorted({text for unit in units for text in unit["errors"]})[:5],
    }


def _comparison(evaluation: Evaluation, name: str) -> dict[str, Any]:
    own, other = evaluation.pairs(name)
    first, second = (np.array([unit["score"] for unit in side]) for side in (own, other))
    parts = strata(own).items()
    verdict = asdict(evaluation.verdict(name))
    return {
        "against": name,
        "verdict": {key: _finite(value) for key, value in verdict.items()},
        "difference": {
            part: statistics_values(paired_difference(first[places], second[places])) for part, places in parts
        },
    }


def statistics_values(statistics: Summary | PairedDifference) -> dict[str, Any]:
    """Return plain values of statistics whose observations are worlds."""
    return {"worlds" if name == "count" else name: value for name, value in asdict(statistics).items()}


def strata(units: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    """Return the indices of the units in every stratum: all, each level, each length; empty ones are left out."""
    indices: dict[str, list[int]] = {"all": list(range(len(units)))}
    for level in ("first", "middle", "last"):
        indices[level] = [index for index, unit in enumerate(units) if unit["level"] == level]
    for days in sorted({int(unit["n_days"]) for unit in units}):
        indices[f"{days} days"] = [index for index, unit in enumerate(units) if unit["n_days"] == days]
    return {name: members for name, members in indices.items() if members}


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def tables_of(report: Mapping[str, Any]) -> Group:
    """Return the tables for people: scores, what explains them, and the comparisons."""
    return Group(_scores(report), _facts(report), *([_comparisons(report)] if report["comparisons"] else []))


def _scores(report: Mapping[str, Any]) -> Table:
    rows = report["agents"]
    parts = [part for part in next(iter(rows.values()))["scores"] if part != "all"] if rows else []
    title = f"scores, {report['rules']['mix']} mix, block {report['block']}, {report['rules']['engine']} engine"
    table = _table(title, "agent", "worlds", "mean", "truncated", "5 %", "worst", *parts)
    for name, agent in rows.items():
        every = agent["scores"]["all"]
        numbers = [every[key] for key in ("mean", "truncated", "low_tail", "worst")]
        means = [agent["scores"][part]["mean"] if part in agent["scores"] else None for part in parts]
        table.add_row(name, str(every["worlds"]), *(_number(value) for value in [*numbers, *means]))
    return table


def _facts(report: Mapping[str, Any]) -> Table:
    columns = ("sales/day", "stock", "shortfall", "storage", "bankrupt", "errors", "L1", "ms/decision", "ms/day")
    table = _table("how they played", "agent", *columns)
    for name, agent in report["agents"].items():
        facts, cpu = agent["facts"], agent["cpu"]
        counted = "–" if facts["interventions"] is None else f"{facts['interventions']:.1f}"
        table.add_row(
            name,
            f"{facts['sales']:.2f}",
            f"{facts['stock']:.1f}",
            *(f"{100 * facts[key]:.1f} %" for key in ("shortfall", "storage", "bankrupt")),
            str(facts["errors"]),
            counted,
            f"{cpu['decision_ms']:.2f}",
            f"{cpu['day_ms']:.1f}",
        )
    return table


def _comparisons(report: Mapping[str, Any]) -> Table:
    title = f"{comparison_title(report)}; more than {report['lead']:+g}?"
    table = _table(title, "minus", "difference", "95 % interval", "any time", "won", "worlds", "answer")
    for row in report["comparisons"]:
        every, verdict = row["difference"]["all"], row["verdict"]
        table.add_row(
            row["against"],
            f"{every['mean']:+.4f}",
            _interval(every["low"], every["high"]),
            _interval(verdict["low"], verdict["high"]),
            f"{100 * every['won']:.0f} %",
            str(every["worlds"]),
            _answer(verdict),
        )
    return table


def _answer(verdict: Mapping[str, Any]) -> str:
    if verdict["answer"] != "open":
        return str(verdict["answer"])
    return "open" if verdict["needed"] is None else f"open: about {verdict['needed']} worlds more"


def _table(title: str, first: str, *columns: str) -> Table:
    table = Table(first, title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(low: float | None, high: float | None) -> str:
    return "too few worlds" if low is None or high is None else f"{low:+.3f} … {high:+.3f}"
