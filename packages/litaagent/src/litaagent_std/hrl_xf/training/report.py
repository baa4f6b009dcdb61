"""Reports of training runs: Markdown, and HTML with curves."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from apexrl.charts import Chart, calibration_chart, line_chart, svg_text
from apexrl.runs.digest import differences
from apexrl.runs.metrics.jsonl import read_jsonl
from apexrl.runs.run_dir import RunRecord
from litaagent_std.hrl_xf.training.evaluation.tables import losers, partner_details, scores
from litaagent_std.hrl_xf.training.record import RECORD_NAME, TrainingRecord, curves

__all__ = ["as_html", "compare_runs", "list_runs", "show_run"]

_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2rem .6rem;text-align:left}"
    "figure{display:inline-block;margin:.5rem}figure svg{max-width:30rem;height:auto}"
)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _number(value: Any) -> str:  # noqa: ANN401 - a value of the record
    if isinstance(value, dict):
        return ", ".join(f"{name} {_number(part)}" for name, part in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def list_runs(folder: Path) -> str:
    """Return a table of all runs in a folder, newest first."""
    offline = {path.parent for path in folder.glob(f"*/{RECORD_NAME}")}
    tournaments = {path.parent.parent for path in folder.glob("*/records/manifest.json")}
    online = {path.parent for path in folder.glob("*/run.json")} - offline - tournaments
    rows = {run: _offline_row(run) for run in offline} | {run: _online_row(run) for run in online}
    newest = sorted(rows, key=lambda run: (run / "run.json").stat().st_mtime if run in online else _written(run))
    if not rows:
        return f"no training runs under {folder}"
    header = ["run", "state", "phases and epochs", "device", "data", "validation loss of the weights"]
    return _table(header, [rows[run] for run in reversed(newest)])


def _written(run: Path) -> float:
    return (run / RECORD_NAME).stat().st_mtime


def _offline_row(run: Path) -> list[str]:
    content = TrainingRecord.read(run).content
    phases = ", ".join(f"{name} {phase['epochs']}" for name, phase in content["phases"].items()) or "–"
    state = "finished" if content["finished"] else "unfinished"
    devices = dict.fromkeys(phase.get("device", "–") for phase in content["phases"].values())
    digest = str(content["dataset"].get("digest", "–"))[:12]
    return [run.name, state, phases, ", ".join(devices) or "–", digest, _headline(content)]


def _online_row(run: Path) -> list[str]:
    """Describe a run without a record of phases: an online training, or another job in a run folder."""
    config = RunRecord.read(run).config
    metrics = run / "metrics.jsonl"
    steps = [int(row["step"]) for row in read_jsonl(metrics)] if metrics.exists() else []
    what = f"online, {config['method']}" if "method" in config else "no training of the layers"
    return [run.name, "–", f"{what}: {steps[-1] if steps else 0} updates", str(config.get("device", "–")), "–", "–"]


def _headline(content: Mapping[str, Any]) -> str:
    """Return the validation losses of the epochs whose weights were kept; older records have the last epoch's only."""
    losses = {name: phase.get("best_losses") or phase["losses"] for name, phase in content["phases"].items()}
    return ", ".join(f"{name} {loss['val/loss']:.4f}" for name, loss in losses.items() if "val/loss" in loss) or "–"


def show_run(folder: Path) -> str:
    """Return the whole record of a run."""
    record = TrainingRecord.read(folder)
    content = record.content
    state = "finished" if content["finished"] else "unfinished: run the same command again to resume"
    logs = ", ".join(f"`{path}`" for path in record.logs) or "–"
    parts = [f"# {folder.name}", f"State: {state}. Logs: {logs}.", "## Data"]
    parts.append(_table(["", "value"], [[k, _number(v)] for k, v in content["dataset"].items()]))
    for name, phase in content["phases"].items():
        parts += [f"## {name}", _phase(phase)]
    for split, tables in content["evaluation"].items():
        parts += [f"## Evaluation on {split}", _evaluation(tables)]
    weights = ", ".join(f"`{file}`" for file in content["weights"]) or "none yet"
    parts += ["## Weights for play", weights, "## Parameters"]
    parts.append(_table(["parameter", "value"], [[f"`{k}`", f"`{v}`"] for k, v in content["config"].items()]))
    return "\n\n".join(parts)


def _phase(phase: Mapping[str, Any]) -> str:
    facts = (
        f"{phase['epochs']} epochs{' (stopped early)' if phase['stopped_early'] else ''}, best {phase['best_epoch']}; "
        f"{phase['rows']} rows, batches of {phase['batch_size']}, {phase['rows_per_second']:.0f} rows per CPU second "
        f"on {phase.get('device', 'an unknown device')}; "
        f"weights `{phase['weights']}` (sha256 {phase['weights_digest'][:12]})"
    )
    names = sorted({name for stage in phase["stages"] for name in stage["losses"]})
    rows = [
        [f"{s['from']}–{s['to']}", f"{s['lr']:g}", *(_number(s["losses"].get(name, "–")) for name in names)]
        for s in phase["stages"]
    ]
    table = _table(["epochs", "learning rate", *names], rows)
    measures = ", ".join(f"{name} {_number(value)}" for name, value in phase["evaluation"].items())
    return "\n\n".join([facts, table, f"Eval: {measures}" if measures else "Eval: –"])


def _evaluation(tables: Mapping[str, Any]) -> str:
    parts = []
    for what, table in scores(tables).items():
        measures = list(table["network"])
        rows = [[name, *(f"{values[m]:.4f}" for m in measures)] for name, values in table.items()]
        parts += [f"### {what}", _table(["predictor", *measures], rows)]
    if "l4" in tables:
        parts += ["### L4", _table(["measure", "value"], [[k, _number(v)] for k, v in tables["l4"].items()])]
    for title, header, rows in partner_details(tables):
        parts += [f"### {title}", _table(header, rows)]
    lost = losers(tables)
    verdict = "Every network beats every baseline." if not lost else "Not beaten: " + "; ".join(lost) + "."
    return "\n\n".join([*parts, verdict])


def compare_runs(folders: Sequence[Path]) -> str:
    """Return the parameters that differ between runs, and their losses and measures side by side."""
    contents = [TrainingRecord.read(folder).content for folder in folders]
    names = [folder.name for folder in folders]
    parts = ["# " + " · ".join(names), "## Parameters that differ"]
    changed = sorted(
        {line.split(":")[0] for c in contents[1:] for line in differences(contents[0]["config"], c["config"])}
    )
    rows = [[f"`{name}`", *(f"`{c['config'].get(name, '–')}`" for c in contents)] for name in changed]
    data = [str(c["dataset"].get("digest", "–"))[:12] for c in contents]
    parts.append(_table(["parameter", *names], [*rows, ["data", *data]]))
    phases = list(dict.fromkeys(name for c in contents for name in c["phases"]))
    losses = [
        [f"{phase} {key}", *(_number(c["phases"].get(phase, {}).get("losses", {}).get(key, "–")) for c in contents)]
        for phase in phases
        for key in ("train/loss", "val/loss")
    ]
    parts += ["## Losses", _table(["", *names], losses)]
    for split in dict.fromkeys(split for c in contents for split in c["evaluation"]):
        parts += [f"## Evaluation on {split}", _table(["", *names], _measures(contents, split))]
    return "\n\n".join(parts)


def _measures(contents: Sequence[Mapping[str, Any]], split: str) -> list[list[str]]:
    tables = [scores(c["evaluation"][split]) if split in c["evaluation"] else {} for c in contents]
    labels = list(dict.fromkeys((what, m) for table in tables for what in table for m in table[what]["network"]))
    return [
        [f"{what} {m}", *(_number(table[what]["network"][m]) if what in table else "–" for table in tables)]
        for what, m in labels
    ]


def as_html(markdown: str, folders: Sequence[Path]) -> str:
    """Return a page without external files: the curves of the runs, and the text."""
    title = html.escape(markdown.splitlines()[0].lstrip("# "))
    body = "".join(f"<figure>{svg_text(chart)}</figure>" for chart in _pictures(folders)) + _markup(markdown)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body>{body}</body></html>\n"
    )


def _pictures(folders: Sequence[Path]) -> list[Chart]:
    """Return the loss curves of each phase, and the calibration of each run's acceptance model."""
    contents = {folder: TrainingRecord.read(folder).content for folder in folders}
    charts = []
    for phase in dict.fromkeys(phase for content in contents.values() for phase in content["phases"]):
        lines = _losses(phase, folders)
        if lines:
            title = f"{phase}: loss by epoch"
            charts.append(line_chart(lines, name=f"loss_{phase}", title=title, x_title="epoch", y_title="loss"))
    for folder, content in contents.items():
        for split, tables in content["evaluation"].items():
            bins = tables.get("acceptance", {}).get("calibration")
            if bins:
                title = f"{folder.name}: calibration of acceptance on {split}"
                charts.append(calibration_chart(bins, name=f"calibration_{folder.name}_{split}", title=title))
    return charts


def _losses(phase: str, folders: Sequence[Path]) -> dict[str, list[tuple[float, float]]]:
    """Return (epoch, loss) of training and validation, by name of the curve."""
    lines = {}
    for folder in folders:
        epochs = curves(folder, phase)
        for key in ("train/loss", "val/loss"):
            points = [(float(epoch["step"]), float(epoch[key])) for epoch in epochs if key in epoch]
            if points:
                lines[f"{folder.name} {key}" if len(folders) > 1 else key] = points
    return lines


def _markup(markdown: str) -> str:
    """Return the HTML of what this module writes: headings, tables, paragraphs and code."""
    out = []
    for block in markdown.split("\n\n"):
        heading = re.fullmatch(r"(#{1,3}) (.*)", block)
        if heading:
            level = len(heading[1])
            out.append(f"<h{level}>{_inline(heading[2])}</h{level}>")
        elif block.startswith("|"):
            out.append(_html_table(block.splitlines()))
        else:
            out.append(f"<p>{_inline(block)}</p>")
    return "".join(out)


def _html_table(lines: Sequence[str]) -> str:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not line.startswith("|---")]
    rows = []
    for number, row in enumerate(cells):
        tag = "th" if number == 0 else "td"
        rows.append("<tr>" + "".join(f"<{tag}>{_inline(cell)}</{tag}>" for cell in row) + "</tr>")
    return "<table>" + "".join(rows) + "</table>"


def _inline(text: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))
