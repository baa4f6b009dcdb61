"""Sphinx extension: generate a card for every file of weights or tuned parameters of the package.

The cards are generated when the pages are built, from metadata in or beside the files. A file without its origin and
its measurements fails the build.
"""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "packages" / "litaagent" / "src"
GENERATED = Path(__file__).parents[1] / "_generated" / "model_cards.md"
WEIGHTS = frozenset({".npz", ".pt", ".pth", ".onnx", ".safetensors"})
CARD = {
    "command": "made by",
    "seed": "seed",
    "data": "data",
    "commit": "commit",
    "measured": "measured",
    "intended_use": "intended use",
    "limits": "limits",
}
"""Keys that ``NAME.card.json`` beside a file of weights must have, with their labels on the page."""


class CardError(Exception):
    """A shipped file lacks metadata."""


def shipped_files(source: Path) -> list[Path]:
    """Return the files of weights and of tuned parameters below a folder of sources."""
    weights = [path for path in source.rglob("*") if path.suffix in WEIGHTS]
    return sorted([*weights, *source.rglob("tuned/*.json")])


def markdown(source: Path) -> str:
    """Return the cards of all shipped files below a folder of sources."""
    files = shipped_files(source)
    parts = [_nothing_shipped(files), *(_card(path, source) for path in files)]
    return "\n\n".join(part for part in parts if part) + "\n"


def parameter_values() -> str:
    """Return the shipped parameters of the heuristic layers as a table."""
    from litaagent_std.policy.parameters import Parameters

    shipped = Parameters()
    rows = [
        f"| `{parameter.name}` | {getattr(shipped, parameter.name):g} | {parameter.metadata['range'][0]:g} to "
        f"{parameter.metadata['range'][1]:g} | {parameter.metadata['meaning']} |"
        for parameter in fields(Parameters)
        if "range" in parameter.metadata
    ]
    return "\n".join(["| parameter | shipped | range | meaning |", "|---|---:|---|---|", *rows]) + "\n"


def _nothing_shipped(files: list[Path]) -> str:
    lines = []
    if not any(path.suffix in WEIGHTS for path in files):
        lines.append("**No learned weights are shipped.** Every layer of the agent plays its heuristic version.")
    if all(path.suffix in WEIGHTS for path in files):
        lines.append("**No tuned parameters are shipped** beside the defaults below.")
    return "\n\n".join(lines)


def _card(path: Path, source: Path) -> str:
    facts = _weights_facts(path) if path.suffix in WEIGHTS else _tuned_facts(path)
    rows = [f"| {name} | {' '.join(str(value).replace('|', '/').split())} |" for name, value in facts.items()]
    return "\n".join([f"### `{path.relative_to(source).as_posix()}`", "", "| | |", "|---|---|", *rows])


def _weights_facts(path: Path) -> dict[str, Any]:
    beside = path.with_suffix(".card.json")
    if not beside.is_file():
        raise CardError(f"{path.name} has no card; write {beside.name} beside it with {', '.join(CARD)}")
    card = json.loads(beside.read_text(encoding="utf-8"))
    missing = [key for key in CARD if not card.get(key) and card.get(key) != 0]
    if missing:
        raise CardError(f"{beside.name} lacks {', '.join(missing)}; a card has {', '.join(CARD)}")
    return {label: card[key] for key, label in CARD.items()}


def _tuned_facts(path: Path) -> dict[str, Any]:
    content = json.loads(path.read_text(encoding="utf-8"))
    missing = [key for key in ("command", "commit", "seeds", "levels", "gate") if key not in content]
    if missing:
        raise CardError(f"{path.name} lacks {', '.join(missing)}; use files as lita tune wrote them")
    changed = [level for level, result in content["levels"].items() if result["kept"]]
    return {
        "made by": f"`{content['command']}`",
        "seed": content["seeds"]["search"],
        "data": f"worlds of the seed block {content['seeds']['worlds']}",
        "commit": f"`{content['commit']}`",
        "levels changed": ", ".join(changed) or "none",
        "measured": _measured(content["gate"]),
        "intended use": f"""`lita arena 'lita:{{"parameters": "{path.stem}"}}'`, and a start for further tuning""",
        "limits": "evaluated with the opponents that the command names; other opponents need a gate of their own",
    }


def _measured(gate: dict[str, Any] | None) -> str:
    if gate is None:
        return "**not evaluated by a gate**"
    results = []
    for comparison in gate["comparisons"]:
        verdict = comparison["verdict"]
        ends = " … ".join("open" if verdict[end] is None else f"{verdict[end]:+.3f}" for end in ("low", "high"))
        results.append(
            f"minus {comparison['against']}: {verdict['mean']:+.3f} ({ends} at any time, 95 %), "
            f"{verdict['worlds']} worlds, {verdict['answer']}"
        )
    return f"on {gate['block']}: " + "; ".join(results)


def write(target: Path = GENERATED, source: Path = SOURCE) -> None:
    """Write the included parts of the page if they have changed."""
    from benchmark_figures import write_if_new

    write_if_new(target, markdown(source))
    write_if_new(target.with_name("parameters.md"), parameter_values())


def setup(app: Any) -> dict[str, Any]:  # noqa: ANN401 - Sphinx's application; the tests need no Sphinx
    """Register with Sphinx."""
    app.connect("builder-inited", lambda _: write())
    return {"parallel_read_safe": True}
