"""``lita info``: what is installed and what this machine is."""

import importlib.metadata
import importlib.util
import json
import os
import platform

from rich.console import Console
from rich.table import Table

from apexrl.configuration import configuration

_PACKAGES = ("litaagent", "torch", "numpy", "gymnasium", "pettingzoo", "scml", "negmas", "scml-agents", "pyarrow")
_EXTRAS = {"ray": "ray", "docs": "sphinx", "dev": "pytest"}


@configuration
class Config:
    """Show the versions of what the project stands on, the machine, and which optional features are installed."""

    json: bool = False
    """Print JSON instead of a table."""


def collect() -> dict[str, dict[str, str]]:
    """Versions, machine and extras as plain text values."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    machine = {"python": platform.python_version(), "system": platform.platform(), "cores": str(os.cpu_count())}
    extras = {
        extra: "yes" if importlib.util.find_spec(module) else f"no (pip install 'litaagent[{extra}]')"
        for extra, module in _EXTRAS.items()
    }
    return {"versions": versions, "machine": machine, "extras": extras}


def run(config: Config) -> int:
    """Print what :func:`collect` found."""
    facts = collect()
    if config.json:
        print(json.dumps(facts, indent=2))
        return 0
    for title, rows in facts.items():
        table = Table(title=title, title_justify="left", show_header=False)
        for key, value in rows.items():
            table.add_row(key, value)
        Console().print(table)
    return 0
