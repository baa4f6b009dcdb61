"""A training: its curves beside those of others, what it was made from, and how far it has come."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from apexrl.charts import Chart, Series, color_of
from apexrl.runs.errors import MetricError, RunDirError
from apexrl.runs.run_dir import RunRecord
from litaagent_std.dashboard.curves import Curve, read_curves, thinned
from litaagent_std.dashboard.history import History, ItemKind, NotHereError, grows, mark_of, phase_files
from litaagent_std.dashboard.page import Block, Cell, Facts, Filter, Filters, Link, Page, Rows, Text, number
from litaagent_std.dashboard.views.online import is_online, online_blocks, shown_by

__all__ = ["METRIC_FILES", "curves_of", "training_page"]

METRIC_FILES: Final[dict[ItemKind, str]] = {"training": "metrics.jsonl", "hmasd": "logs/metrics.jsonl"}
_MOST_CURVES: Final = 24
_FIRST: Final = ("episode/mean_reward", "eval", "Eval", "gate", "monitor", "val", "Rewards/Episode", "episode", "train")
"""Beginnings of the names of metrics that people look for first."""


def training_page(history: History, kind: ItemKind, name: str, query: Mapping[str, str]) -> Page:
    """Return the page of a training.

    Args:
        history: Where other trainings to compare with are.
        kind: ``training`` or ``hmasd``.
        name: Its name in addresses.
        query: Choices: ``compare``, names of others with commas between them, and ``group``, a group of metrics.
    """
    folder = history.find(kind, name)
    others = [one for one in query.get("compare", "").split(",") if one and one != name]
    curves, troubles = {}, []
    for one in [name, *others]:
        try:
            curves[one] = curves_in(history.find(kind, one), kind)
        except (MetricError, NotHereError) as error:
            troubles.append(Text(str(error), "error"))
    metrics = _ordered({metric for some in curves.values() for metric in some})
    groups = sorted({metric.split("/")[0] for metric in metrics})
    group = query.get("group", "all")
    shown = [metric for metric in metrics if group in {"all", metric.split("/")[0]}]
    known = [(item.name, item.name) for item in history.items() if item.kind == kind and item.name != name]
    choices = [
        Filter("compare", "compare with", known, ",".join(others), several=True),
        Filter("group", "metrics", [("all", "all metrics"), *((one, one) for one in groups)], group),
    ]
    blocks: list[Block] = [_state(folder, curves.get(name, {})), *troubles, Filters(choices)]
    if not shown:
        blocks.append(Text("nothing has been logged yet; this page looks again by itself", "warning"))
    if is_online(curves.get(name, {})) and group == "all":
        blocks += online_blocks(folder, curves[name])
        shown = shown if others else [metric for metric in shown if not shown_by(metric)]
    if len(shown) > _MOST_CURVES:
        blocks.append(Text(f"the first {_MOST_CURVES} of {len(shown)} metrics; choose a group for the others", "note"))
    blocks += curves_of(curves, shown[:_MOST_CURVES])
    blocks += [_last_values(curves, metrics), *_parameters(folder, kind)]
    return Page(title=name, blocks=blocks, trail=[Link("all", "/")], live=grows(mark_of(folder, kind) or folder))


def curves_in(folder: Path, kind: ItemKind) -> dict[str, Curve]:
    """Every metric of a training; of one with phases, the phase stands before the metric's name.

    Raises:
        MetricError: If a line is damaged.
    """
    phases = {} if (folder / METRIC_FILES[kind]).exists() or kind == "hmasd" else phase_files(folder)
    if not phases:
        return read_curves(folder / METRIC_FILES[kind])
    return {f"{phase}/{name}": curve for phase, file in phases.items() for name, curve in read_curves(file).items()}


def curves_of(curves: Mapping[str, Mapping[str, Curve]], metrics: Sequence[str]) -> list[Chart]:
    """Return a chart per metric with a line per run; long ones are thinned for the eye."""
    charts = []
    for metric in metrics:
        series = []
        for place, (run, own) in enumerate(curves.items()):
            if metric in own:
                steps, values = thinned(own[metric])
                label = run if len(curves) > 1 else ""
                series.append(Series(name=label, x=steps, y=values, color=color_of(place)))
        safe = "".join(letter if letter.isalnum() else "_" for letter in metric)
        charts.append(Chart(name=safe, title=metric, series=series, x_title="step", height=260))
    return charts


def _ordered(metrics: set[str]) -> list[str]:
    def rank(metric: str) -> tuple[int, str]:
        return next((place for place, start in enumerate(_FIRST) if metric.startswith(start)), len(_FIRST)), metric

    return sorted(metrics, key=rank)


def _state(folder: Path, curves: Mapping[str, Curve]) -> Facts:
    steps = max((steps[-1] for steps, _ in curves.values()), default=0)
    pairs: list[tuple[str, Cell]] = [("step", str(steps)), ("metrics", str(len(curves))), ("folder", folder.name)]
    checkpoints = sorted([*folder.glob("checkpoints/*.pt"), *folder.glob("models/*.pth"), *folder.glob("*.pt")])
    pairs.append(("checkpoints", str(len(checkpoints))))
    return Facts(pairs)


def _last_values(curves: Mapping[str, Mapping[str, Curve]], metrics: Sequence[str]) -> Rows:
    rows = [
        [metric, *(number(own[metric][1][-1], 4) if metric in own else "–" for own in curves.values())]
        for metric in metrics
    ]
    return Rows("Last values", ["metric", *curves], rows)


def _parameters(folder: Path, kind: ItemKind) -> list[Block]:
    """Return what the run was made from: the record of every start, and its configuration."""
    if kind == "hmasd":
        return _tail(folder / "logs" / "train.log")
    try:
        record = RunRecord.read(folder)
    except RunDirError as error:
        return _config_file(folder, error)
    starts = [
        [str(start.get("time")), " ".join(map(str, start.get("command", ()))), str(start.get("commit"))]
        for start in record.starts
    ]
    flat = [[key, value] for key, value in _flat(record.config)]
    table = Rows("Parameters", ["parameter", "value"], [["seed", str(record.seed)], *flat], n_texts=2)
    return [Rows("Starts", ["time", "command", "commit"], starts, n_texts=3), table]


def _config_file(folder: Path, error: RunDirError) -> list[Block]:
    path = folder / "config.yaml"
    if (folder / "run.json").exists():
        return [Text(str(error), "error")]
    if not path.exists():
        return [Text("this run keeps its parameters in its checkpoints: `lita checkpoint` shows them", "note")]
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as trouble:
        return [Text(f"config.yaml cannot be read: {trouble}", "error")]
    rows = [[key, value] for key, value in _flat(values if isinstance(values, dict) else {})]
    return [Rows("Parameters", ["parameter", "value"], rows, n_texts=2)]


def _tail(path: Path) -> list[Block]:
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-12:]
    return [Rows("End of the log", ["line"], [[line] for line in lines], n_texts=1)]


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in values.items():
        if isinstance(value, dict):
            found += _flat(value, f"{prefix}{key}.")
        else:
            found.append((f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))
    return found
