"""``lita info`` and ``lita checkpoint``: what is installed, and whether a checkpoint is sound."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
from pathlib import Path
from typing import Annotated

from rich.table import Table
from tyro.conf import Positional

from apexrl.configuration import configuration
from apexrl.runs.checkpoints.checkpoint import Checkpoint, load_checkpoint
from apexrl.runs.checkpoints.tensors import read_tensors
from apexrl.runs.errors import CheckpointDamagedError, CheckpointMissingError
from lita.console import plain_console

_PACKAGES = (
    "litaagent",
    "apexrl",
    "hmasd",
    "torch",
    "numpy",
    "gymnasium",
    "pettingzoo",
    "scml",
    "negmas",
    "scml-agents",
    "pyarrow",
)
_FEATURES = {
    "the league's agents as opponents": (("scml_agents",), "pip install --no-deps scml-agents"),
    "browser and reports (lita serve, lita report)": (
        ("flask", "jinja2", "duckdb", "plotly"),
        "pip install 'litaagent[dashboard]'",
    ),
    "figures (PNG, SVG)": (("matplotlib",), "pip install 'apexrl[charts]'"),
    "skill discovery (lita hmasd)": (("hmasd",), "pip install --find-links dist 'litaagent[hmasd]'"),
    "clusters (--executor ray)": (("ray",), "pip install 'litaagent[ray]'"),
    "export as ONNX": (("onnx", "onnxruntime", "onnxscript"), "pip install 'apexrl[onnx]'"),
    "Weights & Biases": (("wandb",), "pip install 'apexrl[wandb]'"),
}
"""What can be missing: what for, the modules that it needs, and how to install them."""


@configuration
class InfoConfig:
    """Show the versions of the packages that the project uses, the machine, and the optional features."""

    json: bool = False
    """Print JSON instead of a table."""


def _facts() -> dict[str, dict[str, str]]:
    """Return versions, machine and optional features as text."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    machine = {"python": platform.python_version(), "system": platform.platform(), "cores": str(os.cpu_count())}
    features = {}
    for feature, (modules, install) in _FEATURES.items():
        missing = [module for module in modules if importlib.util.find_spec(module) is None]
        features[feature] = f"no: {', '.join(missing)} missing; {install}" if missing else "yes"
    return {"versions": versions, "machine": machine, "features": features}


def info(config: InfoConfig) -> int:
    """Print versions, machine, and which optional features are there or what they miss."""
    facts = _facts()
    if config.json:
        print(json.dumps(facts, indent=2))
        return 0
    for title, rows in facts.items():
        table = Table(title=title, title_justify="left", show_header=False)
        for key, value in rows.items():
            table.add_row(key, value)
        plain_console().print(table)
    return 0


_ENDINGS = (".pt", ".pth")


@configuration
class CheckpointConfig:
    """Verify a checkpoint file, or every file of checkpoints and torch weights in a folder, and show what is inside.

    Nothing stored in a file is executed. The exit status is 1 when a file is damaged.
    """

    path: Annotated[Path, Positional]
    """A checkpoint file, or a folder that holds some."""


def _checkpoint_files(path: Path) -> list[Path]:
    """Return the path itself if it is a file, or the checkpoint files of a run or folder, sorted by name.

    Raises:
        CheckpointMissingError: There is none.
    """
    if path.is_dir():
        folders = (path, path / "checkpoints", path / "models")
        inside = (file for folder in folders if folder.is_dir() for file in folder.iterdir())
        files = sorted(file for file in inside if file.suffix in _ENDINGS)
    else:
        files = [path] if path.exists() else []
    if not files:
        raise CheckpointMissingError(
            f"there is no checkpoint at {str(path)!r}",
            f"The path must name a checkpoint file or a folder with files that end in {' or '.join(_ENDINGS)}",
            "Correct the path",
        )
    return files


def checkpoint(config: CheckpointConfig) -> int:
    """Print a line per file; return 1 if any file is damaged."""
    table = Table("file", "state", "schema", "step", "metrics")
    damaged = []
    for file in _checkpoint_files(config.path):
        try:
            table.add_row(file.name, "sound", *_content(file))
        except CheckpointDamagedError as error:
            damaged.append(str(error))
            table.add_row(file.name, "damaged", "", "", "")
    plain_console().print(table)
    for reason in damaged:
        print(reason)
    return 1 if damaged else 0


def _content(file: Path) -> tuple[str, str, str]:
    """Return schema, step and metrics of a sound file.

    Raises:
        CheckpointDamagedError: If it is damaged, or neither a checkpoint nor weights.
    """
    content = read_tensors(file)
    if isinstance(content, dict) and isinstance(content.get("meta"), dict) and "model" in content:
        return f"weights of {content['meta'].get('kind', 'a network')}", "", ""
    return _columns(load_checkpoint(file))


def _columns(checkpoint: Checkpoint) -> tuple[str, str, str]:
    metrics = ", ".join(f"{name}={value:.4g}" for name, value in checkpoint.metrics.items())
    return str(checkpoint.schema), str(checkpoint.step), metrics
