"""The training record for people: Markdown, and HTML with curves."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from apexrl.runs.digest import differences
from litaagent_std.hrl_xf.training.evaluation.tables import losers, scores
from litaagent_std.hrl_xf.training.record import RECORD_NAME, TrainingRecord, curves
from litaagent_std.hrl_xf.training.svg import calibration_chart, line_chart

__all__ = ["as_html", "compare_runs", "list_runs", "show_run"]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _number(value: Any) -> str:  # noqa: ANN401 - a value of the record
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def list_runs(folder: Path) -> str:
    """Return a table of all runs in a folder, newest first."""
    found = sorted(folder.glob(f"*/{RECORD_NAME}"), key=lambda path: path.stat().st_mtime, reverse=True)
    rows = []
    for path in found:
        content = TrainingRecord.read(path.parent).content
        phases = ", ".join(f"{name} {phase['epochs']}" for name, phase in content["phases"].items()) or "–"
        state = "finished" if content["finished"] else "unfinished"
        digest = str(content["dataset"].get("digest", "–"))[:12]
        rows.append([path.parent.name, state, phases, digest, _headline(content)])
    if not rows:
        return f"no training runs under {folder}"
    return _table(["run", "state", "phases and epochs", "data", "validation loss"], rows)


def _headline(content: Mapping[str, Any]) -> str:
    phases = content["phases"].items()
    return ", ".join(f"{n} {p['losses']['val/loss']:.4f}" for n, p in phases if "val/loss" in p["losses"]) or "–"


def show_run(folder: Path) -> str:
    """Return all that the record says of a run."""
    content = TrainingRecord.read(folder).content
    state = "finished" if content["finished"] else "unfinished: run the same command again to go on"
    parts = [f"# {folder.name}", f"State: {state}. Log: `{content['log']}`.", "## Data"]
    parts.append(_table(["", "value"], [[k, _number(v)] for k, v in content["dataset"].items()]))
    for name, phase in content["phases"].items():
        parts += [f"## {name}", _phase(phase)]
    for split, found in content["evaluation"].items():
        parts += [f"## Evaluation on {split}", _evaluation(found)]
    weights = ", ".join(f"`{file}`" for file in content["weights"]) or "none yet"
    parts += ["## Weights for play", weights, "## Parameters"]
    parts.append(_table(["parameter", "value"], [[f"`{k}`", f"`{v}`"] for k, v in content["config"].items()]))
    return "\n\n".join(parts)


def _phase(phase: Mapping[str, Any]) -> str:
    facts = (
        f"{phase['epochs']} epochs{' (stopped early)' if phase['stopped_early'] else ''}, best {phase['best_epoch']}; "
        f"{phase['rows']} rows, batches of {phase['batch_size']}, {phase['rows_per_second']:.0f} rows per CPU second; "
        f"weights `{phase['weights']}` (sha256 {phase['weights_digest'][:12]})"
    )
    names = sorted({name for stage in phase["stages"] for name in stage["losses"]})
    rows = [
        [f"{s['from']}–{s['to']}", f"{s['lr']:g}", *(_number(s["losses"].get(name, "–")) for name in names)]
        for s in phase["stages"]
    ]
    table = _table(["epochs", "learning rate", *names], rows)
    found = ", ".join(f"{name} {_number(value)}" for name, value in phase["evaluation"].items())
    return "\n\n".join([facts, table, f"Eval: {found}" if found else "Eval: –"])


def _evaluation(found: Mapping[str, Any]) -> str:
    parts = []
    for what, table in scores(found).items():
        measures = list(table["network"])
        rows = [[name, *(f"{values[m]:.4f}" for m in measures)] for name, values in table.items()]
        parts += [f"### {what}", _table(["predictor", *measures], rows)]
    if "l4" in found:
        parts += ["### L4", _table(["measure", "value"], [[k, _number(v)] for k, v in found["l4"].items()])]
    lost = losers(found)
    verdict = "Every network beats every baseline." if not lost else "Not beaten: " + "; ".join(lost) + "."
    return "\n\n".join([*parts, verdict])


def compare_runs(folders: Sequence[Path]) -> str:
    """Return what differs between runs, and their losses and measures side by side."""
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
    known = [scores(c["evaluation"][split]) if split in c["evaluation"] else {} for c in contents]
    labels = list(dict.fromkeys((what, m) for table in known for what in table for m in table[what]["network"]))
    return [
        [f"{what} {m}", *(_number(table[what]["network"][m]) if what in table else "–" for table in known)]
        for what, m in labels
    ]


def as_html(markdown: str, folders: Sequence[Path]) -> str:
    """Return a page of its own: the text, and the curves of the runs."""
    charts = []
    phases = list(dict.fromkeys(p for folder in folders for p in TrainingRecord.read(folder).content["phases"]))
    for phase in phases:
        lines: dict[str, list[tuple[float, float]]] = {}
        for folder in folders:
            epochs = curves(folder, phase)
            for key in ("train/loss", "val/loss"):
                points = [(float(e["step"]), float(e[key])) for e in epochs if key in e]
                if points:
                    lines[f"{folder.name} {key}" if len(folders) > 1 else key] = points
        if lines:
            charts.append(line_chart(f"{phase}: loss by epoch", lines))
    for folder in folders:
        for split, found in TrainingRecord.read(folder).content["evaluation"].items():
            if found.get("acceptance", {}).get("calibration"):
                title = f"{folder.name}: calibration of acceptance on {split}"
                charts.append(calibration_chart(title, found["acceptance"]["calibration"]))
    style = (
        "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
        "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2rem .6rem;text-align:left}"
        "figure{display:inline-block;margin:.5rem}"
    )
    title = html.escape(markdown.splitlines()[0].lstrip("# "))
    body = "".join(charts) + _markup(markdown)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{style}</style></head><body>{body}</body></html>\n"
    )


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
