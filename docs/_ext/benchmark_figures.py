"""Sphinx extension: generate the tables of benchmark figures from ``benchmarks/results/*.json`` when pages are built.

A benchmark that has no full result is listed as such; results of ``--quick`` are never shown. Files without figures,
such as pinned results, are skipped.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
GENERATED = Path(__file__).parents[1] / "_generated" / "benchmarks.md"


def benchmark_names(folder: Path) -> list[str]:
    """Return the names of the benchmarks of a folder: modules that construct a ``Benchmark``."""
    modules = [path for path in folder.glob("*.py") if path.stem not in {"harness", "__init__"}]
    return sorted(path.stem for path in modules if re.search(r"\bBenchmark\(", path.read_text(encoding="utf-8")))


def summary_of(module: Path) -> str:
    """Return the first sentence of a module's docstring."""
    match = re.match(r'"""(.+?)(?:\n\n|""")', module.read_text(encoding="utf-8"), re.DOTALL)
    return " ".join(match[1].replace("`", "").split()) if match else ""


def markdown(folder: Path) -> str:
    """Return the figures of all benchmarks of a folder as Markdown.

    Args:
        folder: The folder with the modules, and in it ``results``.
    """
    names = benchmark_names(folder)
    results = _full_results(folder / "results")
    parts = [_overview(folder, names, results)]
    parts += [_section(name, result) for name, result in sorted(results.items())]
    return "\n\n".join(parts) + "\n"


def _full_results(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the results of full runs by name: files with figures that are not of ``--quick``."""
    paths = [path for path in folder.glob("*.json") if not path.stem.endswith(".quick")]
    contents = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    return {name: content for name, content in contents.items() if "figures" in content}


def _overview(folder: Path, names: list[str], results: dict[str, dict[str, Any]]) -> str:
    lines = ["| command | measures | full result |", "|---|---|---|"]
    for name in names:
        state = _state(results[name]["figures"]) if name in results else "**not run in full yet**"
        command = f"make bench-{name.replace('_', '-')}"
        lines.append(f"| `{command}` | {_cell(summary_of(folder / f'{name}.py'))} | {state} |")
    return "\n".join(lines)


def _state(figures: list[dict[str, Any]]) -> str:
    goals = [figure for figure in figures if figure["goal"] is not None and figure["value"] is not None]
    met = sum(bool(figure["ok"]) for figure in goals)
    missing = sum(figure["value"] is None for figure in figures)
    state = f"{met} of {len(goals)} goals met" if goals else "no goals, figures only"
    return f"{state}; **{missing} of {len(figures)} figures not computed yet**" if missing else state


def _section(name: str, result: dict[str, Any]) -> str:
    machine = result["machine"]
    seeds = ", ".join(map(str, result["seeds"])) or "see the command"
    lines = [
        f"### {name}",
        "",
        f"`{result['command']}` at `{result['commit']}`, on {machine['cpu']}, {machine['cores']} cores, Python "
        f"{machine['python']}; seeds: {seeds}. {_state(result['figures'])}.",
        "",
        "| figure | value | goal | | note |",
        "|---|---:|---:|---|---|",
    ]
    return "\n".join(lines + [_row(figure) for figure in result["figures"]])


def _row(figure: dict[str, Any]) -> str:
    unit = f" {figure['unit']}" if figure["unit"] else ""
    value = "not computed yet" if figure["value"] is None else f"{_number(figure['value'])}{unit}"
    goal = "–" if figure["goal"] is None else f"{figure['op']} {figure['goal']:g}{unit}"
    verdict = "" if figure["goal"] is None or figure["value"] is None else ("met" if figure["ok"] else "**missed**")
    return f"| {_cell(figure['name'])} | {_cell(value)} | {_cell(goal)} | {verdict} | {_cell(figure['note'])} |"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _cell(text: str) -> str:
    """Return a text on one line, with the characters of Markdown escaped."""
    return re.sub(r"([\\|<>*_\[\]$`])", r"\\\1", " ".join(text.split()))


def write(target: Path = GENERATED, folder: Path = ROOT / "benchmarks") -> None:
    """Write the included part of the page if it has changed."""
    write_if_new(target, markdown(folder))


def write_if_new(target: Path, text: str) -> None:
    """Write a text if the file does not hold it already, since Sphinx reads changed files again."""
    if not target.is_file() or target.read_text(encoding="utf-8") != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:  # noqa: ANN401 - Sphinx's application; the tests need no Sphinx
    """Register with Sphinx."""
    app.connect("builder-inited", lambda _: write())
    return {"parallel_read_safe": True}
