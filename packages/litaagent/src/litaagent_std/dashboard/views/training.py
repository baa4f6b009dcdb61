"""A training: its progress, its curves beside those of others, and its parameters."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from apexrl.charts import Chart, Series, color_of
from apexrl.runs.errors import MetricError, ReadFailedError, RunDirError
from apexrl.runs.reading import YAML_LIMIT, contained, open_regular, parse_yaml, read_bytes
from apexrl.runs.run_dir import RunRecord
from litaagent_std.dashboard.curves import Curve, read_curves, thinned
from litaagent_std.dashboard.history import History, ItemKind, NotHereError, grows, mark_of, phase_files
from litaagent_std.dashboard.page import Filter, Link, Page, Table, number
from litaagent_std.dashboard.views.online import OnlineOverview, is_online, online_overview, shown_by

__all__ = ["METRIC_FILES", "curves_in", "metric_charts", "training_page"]

METRIC_FILES: Final[dict[ItemKind, str]] = {"training": "metrics.jsonl", "hmasd": "logs/metrics.jsonl"}
_MOST_CURVES: Final = 24
_LOG_BYTES: Final = 65_536
_FIRST: Final = ("episode/mean_reward", "eval", "Eval", "gate", "monitor", "val", "Rewards/Episode", "episode", "train")
"""Prefixes of the metrics that are shown first."""


def training_page(history: History, kind: ItemKind, name: str, query: Mapping[str, str]) -> Page:
    """Return the page of a training.

    Args:
        history: Where other trainings to compare with are.
        kind: ``training`` or ``hmasd``.
        name: Its name in addresses.
        query: Choices: ``compare``, names of others with commas between them, and ``group``, a group of metrics.
    """
    folder = history.find(kind, name)
    others = [other for other in query.get("compare", "").split(",") if other and other != name]
    curves, errors = _read_all(history, kind, [name, *others])
    metrics = _ordered({metric for run in curves.values() for metric in run})
    group = query.get("group", "all")
    shown = [metric for metric in metrics if group in {"all", metric.split("/")[0]}]
    online = OnlineOverview()
    if is_online(curves.get(name, {})) and group == "all":
        online = online_overview(folder, curves[name])
        shown = shown if others else [metric for metric in shown if not shown_by(metric)]
    note, parameters = _parameters(folder, kind)
    context = {
        "facts": _facts(folder, curves.get(name, {})),
        "errors": errors,
        "filters": _filters(history, kind, name, others, metrics, group),
        "n_metrics": len(shown),
        "nothing_logged": not metrics,
        "online": online,
        "online_charts": online.charts,
        "charts": metric_charts(curves, shown[:_MOST_CURVES]),
        "last_values": _last_values(curves, metrics),
        "parameter_note": note,
        "parameters": parameters,
    }
    live = grows(mark_of(folder, kind) or folder)
    return Page(template="training", title=name, context=context, trail=[Link("all", "/")], live=live)


def _read_all(history: History, kind: ItemKind, names: Sequence[str]) -> tuple[dict[str, dict[str, Curve]], list[str]]:
    """Return the curves of each training, and messages about those that cannot be read."""
    curves, errors = {}, []
    for name in names:
        try:
            curves[name] = curves_in(history.find(kind, name), kind)
        except (MetricError, NotHereError) as error:
            errors.append(str(error))
    return curves, errors


def _filters(
    history: History, kind: ItemKind, name: str, others: Sequence[str], metrics: Sequence[str], group: str
) -> list[Filter]:
    known = [(item.name, item.name) for item in history.items() if item.kind == kind and item.name != name]
    groups = sorted({metric.split("/")[0] for metric in metrics})
    return [
        Filter("compare", "compare with", known, ",".join(others), several=True),
        Filter("group", "metrics", [("all", "all metrics"), *((text, text) for text in groups)], group),
    ]


def curves_in(folder: Path, kind: ItemKind) -> dict[str, Curve]:
    """Return every metric of a training; with phases, the phase precedes the metric's name.

    Raises:
        MetricError: If a line is damaged.
    """
    phases = {} if (folder / METRIC_FILES[kind]).exists() or kind == "hmasd" else phase_files(folder)
    if not phases:
        return read_curves(folder / METRIC_FILES[kind])
    return {f"{phase}/{name}": curve for phase, file in phases.items() for name, curve in read_curves(file).items()}


def metric_charts(curves: Mapping[str, Mapping[str, Curve]], metrics: Sequence[str]) -> list[Chart]:
    """Return a chart per metric with a line per run; long ones are thinned."""
    charts = []
    for metric in metrics:
        series = []
        for index, (run, own) in enumerate(curves.items()):
            if metric in own:
                steps, values = thinned(own[metric])
                label = run if len(curves) > 1 else ""
                series.append(Series(name=label, x=steps, y=values, color=color_of(index)))
        safe = "".join(letter if letter.isalnum() else "_" for letter in metric)
        charts.append(Chart(name=safe, title=metric, series=series, x_title="step", height=260))
    return charts


def _ordered(metrics: set[str]) -> list[str]:
    def rank(metric: str) -> tuple[int, bool, str]:
        first = next((index for index, start in enumerate(_FIRST) if metric.startswith(start)), len(_FIRST))
        return first, metric.endswith("/lr"), metric

    return sorted(metrics, key=rank)


def _facts(folder: Path, curves: Mapping[str, Curve]) -> list[tuple[str, str]]:
    steps = max((steps[-1] for steps, _ in curves.values()), default=0)
    checkpoints = sorted([*folder.glob("checkpoints/*.pt"), *folder.glob("models/*.pth"), *folder.glob("*.pt")])
    return [
        ("step", str(steps)),
        ("metrics", str(len(curves))),
        ("folder", folder.name),
        ("checkpoints", str(len(checkpoints))),
    ]


def _last_values(curves: Mapping[str, Mapping[str, Curve]], metrics: Sequence[str]) -> Table:
    rows = [
        [metric, *(_value(own[metric][1][-1]) if metric in own else "–" for own in curves.values())]
        for metric in metrics
    ]
    return Table("Last values", ["metric", *curves], rows)


def _value(value: float) -> str:
    """Format a metric: four decimals, or four digits if it is too small for them."""
    return f"{value:.4g}" if 0.0 < abs(value) < 0.001 else number(value, 4)


Note = tuple[str, str] | None
"""Tone and text of a message in place of the parameters."""


def _parameters(folder: Path, kind: ItemKind) -> tuple[Note, list[Table]]:
    """Return a message, if the parameters cannot be shown, and tables of every start and of the configuration."""
    if kind == "hmasd":
        return None, _log_end(folder)
    try:
        record = RunRecord.read(folder)
    except RunDirError as error:
        return _config_file(folder, error)
    starts = [
        [str(start.get("time")), " ".join(map(str, start.get("command", ()))), str(start.get("commit"))]
        for start in record.starts
    ]
    flat = [[key, value] for key, value in _flat(record.config)]
    table = Table("Parameters", ["parameter", "value"], [["seed", str(record.seed)], *flat], n_texts=2)
    return None, [Table("Starts", ["time", "command", "commit"], starts, n_texts=3), table]


def _config_file(folder: Path, error: RunDirError) -> tuple[Note, list[Table]]:
    path = folder / "config.yaml"
    if (folder / "run.json").exists():
        return ("error", str(error)), []
    if not path.exists():
        return ("note", "this run keeps its parameters in its checkpoints: `lita checkpoint` shows them"), []
    try:
        values = parse_yaml(read_bytes(contained(folder, path.name), YAML_LIMIT).decode(errors="replace"))
    except (OSError, ReadFailedError) as damage:
        return ("error", f"config.yaml cannot be read: {damage}"), []
    rows = [[key, value] for key, value in _flat(values if isinstance(values, dict) else {})]
    return None, [Table("Parameters", ["parameter", "value"], rows, n_texts=2)]


def _log_end(folder: Path) -> list[Table]:
    try:
        with open_regular(contained(folder, "logs/train.log")) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_BYTES))
            lines = file.read(_LOG_BYTES).decode(errors="replace").splitlines()[-12:]
    except FileNotFoundError:
        return []
    except (OSError, ReadFailedError) as error:
        lines = [str(error)]
    return [Table("End of the log", ["line"], [[line] for line in lines], n_texts=1)]


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for key, value in values.items():
        if isinstance(value, dict):
            pairs += _flat(value, f"{prefix}{key}.")
        else:
            pairs.append((f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))
    return pairs
