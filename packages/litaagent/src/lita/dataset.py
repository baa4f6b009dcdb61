"""``lita dataset build``, ``stats`` and ``export``: datasets from records."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from tyro.conf import Positional

from apexrl.configuration import configuration

if TYPE_CHECKING:
    from litaagent_std.hrl_xf.data_pipeline.stats import Statistics


@configuration
class BuildConfig:
    """Turn records into a dataset for training L2 and L3.

    A dataset that is there already, made from the same records with the same code and options, is not built again; a
    stopped build resumes.
    """

    path: Annotated[Path, Positional]
    """A tournament's folder, or a folder that holds several."""

    output_dir: Path | None = None
    """Where the dataset goes. Default: a folder named after its digest in PATH/datasets."""

    agent_name: str = "PenguinAgent"
    """Whose samples: class names of agents begin with it. An empty name takes every factory."""

    top: Annotated[int, Field(ge=1)] | None = None
    """Only the best so many agents of each tournament, by mean score."""

    min_score: float | None = None
    """Only factories that ended with at least this score."""

    labels: Literal["intention", "deals"] = "intention"
    """L2's goals: what the agent first asked for, within its need, or what it agreed on that day."""

    horizon: Annotated[int, Field(ge=1)] | None = None
    """Delivery days after today to make room for; beyond the league's they are masked. Default: the league's."""

    split_seed: int = 0
    """Seed of the assignment of configurations to train, val and test."""

    ratios: tuple[float, float, float] = (0.85, 0.10, 0.05)
    """Shares of configurations in train, val and test."""

    num_workers: Annotated[int, Field(ge=1)] | None = None
    """Processes that parse. Default: one per CPU."""


def build(config: BuildConfig) -> int:
    """Build the dataset and say where it is."""
    import time

    from litaagent_std.hrl_xf.data_pipeline.build import build_dataset
    from litaagent_std.hrl_xf.data_pipeline.options import DatasetOptions

    options = DatasetOptions(
        agent_name=config.agent_name,
        top=config.top,
        min_score=config.min_score,
        labels=config.labels,
        horizon=config.horizon,
        split_seed=config.split_seed,
        ratios=config.ratios,
    )
    started = time.monotonic()
    data = build_dataset(config.path, config.output_dir, options, num_workers=config.num_workers, on_progress=print)
    counts = data.manifest["counts"]
    print(
        f"{data.folder}: {counts['mornings']} mornings and {counts['actions']} actions of {counts['worlds']} worlds, "
        f"{counts['configs']} configurations; {time.monotonic() - started:.1f} s"
    )
    return 0


_WIDTH = 160


@configuration
class StatsConfig:
    """Show counts, and quantiles of prices, quantities and delivery, and operations, by role and level."""

    path: Annotated[Path, Positional]
    """A dataset's folder."""

    as_json: bool = False
    """Print JSON instead of tables."""


def stats(config: StatsConfig) -> int:
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


@configuration
class ExportConfig:
    """Write a dataset as macro.parquet and micro.parquet with a README.md that explains them."""

    path: Annotated[Path, Positional]
    """A dataset's folder."""

    output_dir: Path | None = None
    """Where to. Default: the folder ``parquet`` in the dataset."""


def export(config: ExportConfig) -> int:
    """Export the dataset."""
    from litaagent_std.hrl_xf.data_pipeline.dataset import OfflineData
    from litaagent_std.hrl_xf.data_pipeline.export import export_parquet

    data = OfflineData.open(config.path, check=False)
    folder = export_parquet(data, config.output_dir or config.path / "parquet")
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    print(f"{folder}: {len(data.macro)} mornings, {len(data.micro)} actions, {size:.1f} MB")
    return 0
