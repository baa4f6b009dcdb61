"""Options of a training run from the command line; light to import."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from apexrl.configuration import configuration
from litaagent_std.hrl_xf.data_pipeline.options import DEFAULT_AGENT, Labels
from litaagent_std.hrl_xf.training.config import FREE, TrainConfig

__all__ = ["RUN_FREE", "TrainRunConfig"]

RUN_FREE: Final = (*FREE, "num_workers", "log_dir", "eval_max_rows")
"""Options that may change between two starts of a run."""


@configuration
class TrainRunConfig(TrainConfig):
    """Train the four layers from records of tournaments.

    Builds the dataset, trains the phases, measures every network beside trivial baselines and linear models, and
    exports weights for play. It goes on where it stopped: run the same command again.
    """

    data_dir: Path = Path("tournament_history")
    """Records to learn from: a tournament's folder, or one that holds several."""

    dataset_dir: Path | None = None
    """Folder of the dataset. Default: one under data_dir, named by what it is made from."""

    agent_name: str = DEFAULT_AGENT
    """Whom to learn from: agents whose class names begin so; the empty string takes every factory."""

    labels: Labels = "intention"
    """L2's goals from intentions (first proposals, within needs) or from the day's deals."""

    split_seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the assignment of configurations to train, val and test."""

    split_ratios: tuple[float, float, float] = (0.85, 0.10, 0.05)
    """Shares of configurations in train, val and test."""

    num_workers: Annotated[int, Field(ge=0)] = 0
    """Worlds to parse at once; 0 is as many as there are CPUs."""

    l2_path: Path | None = None
    """Weights of L2 (l2_bc.pt) for phases after it. Default: those of the run's own folder."""

    l3_path: Path | None = None
    """Weights of L3 (l3_bc.pt) for awr alone. Default: those of the run's own folder."""

    log_dir: Path = Path("diagnose_logs")
    """Folder of logs, one file for each start."""

    eval_max_rows: Annotated[int, Field(ge=1)] = 100_000
    """Decisions to measure on in each split, at most."""
