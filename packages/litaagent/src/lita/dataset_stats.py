"""``lita dataset stats``: counts and distributions of a dataset."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional

from apexrl.configuration import configuration

if TYPE_CHECKING:
    from litaagent_std.hrl_xf.data_pipeline.stats import Statistics

_WIDTH = 160


@configuration
class Config:
    """Show counts, and quantiles of prices, quantities and delivery, and operations, by role and level."""

    path: Annotated[Path, Positional]
    """A dataset's folder."""

    as_json: bool = False
    """Print JSON instead of tables."""


def run(config: Config) -> int:
    """Print the figures."""
    from dataclasses import asdict

    from litaagent_std.hrl_xf.data_pipeline.dataset import OfflineData
    from litaagent_std.hrl_xf.data_pipeline.stats import dataset_statistics

    statistics = dataset_statistics(OfflineData.open(config.path, check=False))
    if config.as_json:
        print(json.dumps(asdict(statistics), indent=1))
    else:
        _show(statistics)
    return 0


def _show(statistics: Statistics) -> None:
    from rich.console import Console
    from rich.table import Table

    from litaagent_std.hrl_xf.data_pipeline.stats import QUANTILES

    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    counts = Table("count", "value")
    for key, value in statistics.counts.items():
        counts.add_row(key.replace("_", " "), str(value))
    values = Table("what", "role", "level", "n", "min", "max", "mean", "std", *(f"p{q * 100:02.0f}" for q in QUANTILES))
    for d in statistics.distributions:
        numbers = (d.low, d.high, d.mean, d.std, *d.quantiles)
        values.add_row(d.what, d.role, d.level, str(d.n), *(f"{number:.4g}" for number in numbers))
    operations = Table("role", "level", "accept", "reject", "end", "counter-offers taken")
    for o in statistics.operations:
        total = o.accept + o.reject + o.end
        shares = (f"{n} ({n / total:.1%})" for n in (o.accept, o.reject, o.end))
        operations.add_row(o.role, o.level, *shares, "–" if o.taken is None else f"{o.taken:.1%}")
    for table in (counts, values, operations):
        console.print(table)
