"""Options of ``lita distill``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field
from tyro.conf import Positional

from apexrl.configuration import configuration
from apexrl.execution import EXECUTION_FIELDS, ExecutionOptions
from litaagent_std.hrl_xf.online.config import Count, Layer, PoolConfig, Positive

__all__ = ["FREE_FIELDS", "DistillConfig"]

FREE_FIELDS = (*EXECUTION_FIELDS, "quiet", "output_dir")
"""Options that may change when a distillation is resumed."""


@configuration
class DistillConfig(ExecutionOptions):
    """Distil trained layers into smaller networks, and measure their accuracy and speed.

    The teacher plays worlds; the student learns its outputs by regression and is evaluated in worlds of other
    configurations. The same command resumes a distillation that was stopped.
    """

    teacher: Annotated[Path, Positional]
    """Folder of a run of lita train or lita train-online, or of its weights."""

    layers: tuple[Layer, ...] = ()
    """Layers of the student, all of the teacher's if empty; the others are the heuristics. L2 is always one of them. A
    student of l2 alone makes no decisions in rounds, which saves the most time."""

    dim: Annotated[int, Field(ge=2, multiple_of=2)] = 8
    """Width of the student's networks; they have one attention block."""

    worlds: Annotated[int, Field(ge=2)] = 24
    """Worlds to learn from, played with the teacher's exploration. Raising it improves the fit."""

    held_out: Count = 8
    """Worlds for the evaluation, of other configurations, played without exploration."""

    days: tuple[Count, ...] = (50,)
    """Lengths of the worlds in days, drawn with equal probability."""

    levels: Annotated[int, Field(ge=2)] | None = None
    """Production levels. Default: drawn from the official range, 2 to 4."""

    pool: PoolConfig = PoolConfig()
    """Opponents."""

    epochs: Count = 100
    """Epochs at most."""

    patience: Count = 10
    """Epochs without a better validation error before early stopping."""

    learning_rate: Positive = 2e-3
    """Adam's step size."""

    seed: Annotated[int, Field(ge=0, lt=1 << 20)] = 0
    """Seed of worlds, exploration and networks."""

    output_dir: Path = Path("distillations/default")
    """Folder of the distillation; the folder student and report.json appear in it."""

    time_limit: Positive = 1800.0
    """Seconds that a world may take before it is played again."""

    quiet: bool = False
    """Show no progress."""
