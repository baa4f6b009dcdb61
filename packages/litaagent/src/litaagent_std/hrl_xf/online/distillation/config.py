"""What a distillation is: the options of ``lita distill``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from tyro.conf import Positional

from apexrl.configuration import configuration
from litaagent_std.agents.online.steering import Layer
from litaagent_std.hrl_xf.online.config import Count, PoolConfig, Positive

__all__ = ["FREE_FIELDS", "DistillConfig"]

FREE_FIELDS = ("executor", "workers", "address", "time_limit", "quiet", "output_dir")
"""Options that may change when a distillation goes on."""


@configuration
class DistillConfig:
    """Teach a compact model what a policy of lita train-online does, and measure how well and how fast it does it.

    The teacher plays worlds; the student learns its numbers by regression and is measured in worlds of other
    configurations. The same command goes on with a distillation that was stopped.
    """

    teacher: Annotated[Path, Positional]
    """Weights of lita train-online, or the folder of its run: its best.npz, else its newest weights."""

    layers: tuple[Layer, ...] = ()
    """Layers that the student keeps, all of the teacher's when empty. Others put out zeros; without l3 and l4 rounds
    are no decisions of the student's, which saves the most time."""

    hidden: tuple[Count, ...] = ()
    """Widths of the student's hidden layers; none makes it linear, which is fitted exactly."""

    worlds: Annotated[int, Field(ge=2)] = 24
    """Worlds to learn from, played with the teacher's exploration. Raising it makes the fit better."""

    held_out: Count = 8
    """Worlds to measure in, of other configurations, played without exploration."""

    days: tuple[Count, ...] = (50,)
    """Lengths of the worlds, drawn with equal probability."""

    levels: Annotated[int, Field(ge=2)] | None = None
    """Production levels. Default: drawn from the official range, 2 to 4."""

    pool: PoolConfig = PoolConfig()
    """Opponents."""

    epochs: Count = 300
    """Passes over the samples at most, of a student with hidden layers."""

    patience: Count = 30
    """Epochs without a better validation after which its fit ends."""

    learning_rate: Positive = 2e-3
    """Adam's step size for it."""

    seed: Annotated[int, Field(ge=0, lt=1 << 20)] = 0
    """Seed of worlds, exploration and networks."""

    output_dir: Path = Path("distillations/default")
    """Folder of the distillation; student.npz and report.json appear in it."""

    executor: Literal["inline", "processes", "ray"] = "processes"
    """How worlds are played: one after the other here, in processes, or on a Ray cluster."""

    workers: Count | None = None
    """Worlds at once. Default: one per available CPU."""

    address: str | None = None
    """The Ray cluster, such as auto or ray://host:10001."""

    time_limit: Positive = 1800.0
    """Seconds that a world may take before it is played again."""

    quiet: bool = False
    """Show no progress."""
