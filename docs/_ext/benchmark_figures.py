"""Sphinx extension: the figures of the benchmarks, from ``benchmarks/results/*.json``, whenever the pages are built.

No figure of the page is typed by hand. A benchmark without a full result is listed as such; results of ``--quick`` are
never shown.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
GENERATED = Path(__file__).parents[1] / "_generated" / "benchmarks.md"


def benchmark_names(folder: Path) -> list[str]:
    """Names of the benchmarks that a folder defines: modules that make a ``Benchmark``."""
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
    results = {path.stem: path for path in (folder / "results").glob("*.json") if not path.stem.endswith(".quick")}
    parts = [_overview(folder, names, results)]
    parts += [_result(path) for _, path in sorted(results.items())]
    return "\n\n".join(parts) + "\n"


def _overview(folder: Path, names: list[str], results: dict[str, Path]) -> str:
    lines = ["| command | measures | full result |", "|---|---|---|"]
    for name in names:
        state = _state(_read(results[name])["figures"]) if name in results else "**not run in full yet**"
        command = f"make bench-{name.replace('_', '-')}"
        lines.append(f"| `{command}` | {_cell(summary_of(folder / f'{name}.py'))} | {state} |")
    return "\n".join(lines)


def _state(figures: list[dict[str, Any]]) -> str:
    goals = [figure for figure in figures if figure["goal"] is not None and figure["value"] is not None]
    met = sum(bool(figure["ok"]) for figure in goals)
    missing = sum(figure["value"] is None for figure in figures)
    said = f"{met} of {len(goals)} goals met" if goals else "no goals, figures only"
    return f"{said}; **{missing} of {len(figures)} figures not computed yet**" if missing else said


def _result(path: Path) -> str:
    result = _read(path)
    machine = result["machine"]
    seeds = ", ".join(map(str, result["seeds"])) or "see the command"
    lines = [
        f"### {path.stem}",
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
    """Return a text that stays within its cell and is no markup."""
    return re.sub(r"([\\|<>*_\[\]$`])", r"\\\1", " ".join(text.split()))


def _read(path: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result


def write(target: Path = GENERATED, folder: Path = ROOT / "benchmarks") -> None:
    """Write the page's part, unless it is there already as it should be."""
    write_if_new(target, markdown(folder))


def write_if_new(target: Path, text: str) -> None:
    """Write a text, unless it stands there already: Sphinx reads again what has changed."""
    if not target.is_file() or target.read_text(encoding="utf-8") != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:  # noqa: ANN401 - Sphinx's application; the tests need no Sphinx
    """Register with Sphinx."""
    app.connect("builder-inited", lambda _: write())
    return {"parallel_read_safe": True}
