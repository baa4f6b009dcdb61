"""``lita dataset build``, ``stats`` and ``export``: datasets from records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from tyro.conf import Positional

from apexrl.configuration import configuration
from apexrl.execution import ExecutionOptions
from lita.console import plain_console

if TYPE_CHECKING:
    from litaagent_std.hrl_xf.data_pipeline.stats import Statistics


@configuration
class BuildConfig(ExecutionOptions):
    """Turn records into a dataset for training L2 and L3.

    A dataset of the same records, code and options is not built again; a stopped build resumes.
    """

    path: Annotated[Path, Positional]
    """A tournament's folder, a folder that holds several, or an address in object storage such as s3://bucket/path."""

    output_dir: Path | None = None
    """Folder of the dataset. Default: a folder named after its digest in PATH/datasets."""

    agent_name: str = "PenguinAgent"
    """Take samples of agents whose class names begin with this. An empty name takes every factory."""

    top: Annotated[int, Field(ge=1)] | None = None
    """Only this many agents of each tournament, the best by mean score."""

    min_score: float | None = None
    """Only factories that ended with at least this score."""

    labels: Literal["intention", "deals"] = "intention"
    """L2's goals: the agent's first proposals, within its need (intention), or its agreements of the day (deals)."""

    decisions: Literal["taken", "reasons"] = "taken"
    """L3's labels: the decisions that were taken, or those that the recorded reasons name (of a teacher)."""

    horizon: Annotated[int, Field(ge=1)] | None = None
    """Delivery days after today in each sample; those beyond the league's are masked. Default: the league's."""

    split_seed: int = 0
    """Seed of the assignment of configurations to train, val and test."""

    ratios: tuple[float, float, float] = (0.85, 0.10, 0.05)
    """Shares of configurations in train, val and test."""

    reasons: bool = False
    """Add the recorded reasons of the agents to their actions (records of lita collect --reasons)."""

    num_workers: Annotated[int, Field(ge=1)] | None = None
    """The older name of --workers."""


def build(config: BuildConfig) -> int:
    """Build the dataset, and print its folder and counts."""
    import time

    from litaagent_std.hrl_xf.data_pipeline.build import build_dataset
    from litaagent_std.hrl_xf.data_pipeline.options import DatasetOptions

    options = DatasetOptions(
        agent_name=config.agent_name,
        top=config.top,
        min_score=config.min_score,
        labels=config.labels,
        decisions=config.decisions,
        horizon=config.horizon,
        split_seed=config.split_seed,
        ratios=config.ratios,
        reasons=config.reasons,
    )
    started = time.monotonic()
    where = replace(config, workers=config.workers or config.num_workers)
    data = build_dataset(config.path, config.output_dir, options, execution=where, on_progress=print)
    counts = data.manifest["counts"]
    print(
        f"{data.folder}: {counts['mornings']} days and {counts['actions']} actions of {counts['worlds']} worlds, "
        f"{counts['configs']} configurations; {time.monotonic() - started:.1f} s"
    )
    return 0


_WIDTH = 160


@configuration
class StatsConfig:
    """Show counts, quantiles of prices, quantities and delivery days, and operations, by role and level."""

    path: Annotated[Path, Positional]
    """A dataset's folder."""

    as_json: bool = False
    """Print JSON instead of tables."""


def stats(config: StatsConfig) -> int:
    """Print the statistics."""
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
    from rich.table import Table

    from litaagent_std.hrl_xf.data_pipeline.stats import QUANTILES

    console = plain_console(_WIDTH)
    counts = Table("count", "value")
    for key, value in statistics.counts.items():
        counts.add_row(key.replace("mornings", "days").replace("_", " "), str(value))
    values = Table("what", "role", "level", "n", "min", "max", "mean", "std", *(f"p{q * 100:02.0f}" for q in QUANTILES))
    for distribution in statistics.distributions:
        figures = (
            distribution.low,
            distribution.high,
            distribution.mean,
            distribution.std,
            *distribution.quantiles,
        )
        labels = (distribution.what, distribution.role, distribution.level, str(distribution.n))
        values.add_row(*labels, *(f"{figure:.4g}" for figure in figures))
    operations = Table("role", "level", "accept", "reject", "end", "counter-offers taken")
    for row in statistics.operations:
        total = row.accept + row.reject + row.end
        shares = (f"{n} ({n / total:.1%})" for n in (row.accept, row.reject, row.end))
        operations.add_row(row.role, row.level, *shares, "–" if row.taken is None else f"{row.taken:.1%}")
    for table in (counts, values, operations):
        console.print(table)


@configuration
class ExportConfig:
    """Write a dataset as macro.parquet and micro.parquet with a README.md that explains them."""

    path: Annotated[Path, Positional]
    """A dataset's folder."""

    output_dir: Path | None = None
    """Folder to write to. Default: the folder parquet in the dataset."""


def export(config: ExportConfig) -> int:
    """Export the dataset."""
    from litaagent_std.hrl_xf.data_pipeline.dataset import OfflineData
    from litaagent_std.hrl_xf.data_pipeline.export import export_parquet

    data = OfflineData.open(config.path, check=False)
    folder = export_parquet(data, config.output_dir or config.path / "parquet")
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    print(f"{folder}: {len(data.macro)} days, {len(data.micro)} actions, {size:.1f} MB")
    return 0
