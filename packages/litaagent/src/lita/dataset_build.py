"""``lita dataset build``: a dataset from records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from tyro.conf import Positional

from apexrl.configuration import configuration


@configuration
class Config:
    """Turn records into a dataset for training L2 and L3.

    A dataset that is there already, made from the same records with the same code and options, is not built again; a
    stopped build goes on.
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


def run(config: Config) -> int:
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
    data = build_dataset(config.path, config.output_dir, options, num_workers=config.num_workers, say=print)
    counts = data.manifest["counts"]
    print(
        f"{data.folder}: {counts['mornings']} mornings and {counts['actions']} actions of {counts['worlds']} worlds, "
        f"{counts['configs']} configurations; {time.monotonic() - started:.1f} s"
    )
    return 0
