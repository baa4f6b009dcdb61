"""What a tuning run is: the options of ``lita tune``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from tyro.conf import Positional

from apexrl.configuration import configuration
from apexrl.execution import EXECUTION_FIELDS, ExecutionOptions
from litaagent_std.policy.parameters import LEVELS, Level

__all__ = ["FREE", "TuneConfig"]

Count = Annotated[int, Field(ge=1)]

FREE = (
    "generations",
    "validation_worlds",
    "gate_worlds",
    *EXECUTION_FIELDS,
    "output_dir",
    "quiet",
)
"""Options that may change from start to start: what is finished stays what it is."""


@configuration
class TuneConfig(ExecutionOptions):
    """Optimise the agent's parameters, level by level, by CMA-ES in races on worlds of the tuning block.

    A result is kept for a level only where it proves better in worlds that the search has not seen, and all of it
    is judged against the start on a gate. The same command resumes where it stopped, with the same result.
    """

    agent: Annotated[str, Positional] = "lita"
    """The agent to start from: lita, with parameters as JSON behind a colon where wanted:
    lita:{"parameters": "FILE"}."""

    levels: tuple[Level, ...] = LEVELS
    """Levels of the chain to tune, each by itself."""

    names: tuple[str, ...] = ()
    """Parameters to tune. Default: all that have a range."""

    generations: Count = 30
    """Generations per level; more of them continue the same search."""

    population: Annotated[int, Field(ge=4)] | None = None
    """Candidates per generation. Default: 4 + 3 ln n, at n parameters."""

    worlds: Count = 24
    """Worlds per generation that the best candidates play; fresh ones for every generation."""

    rungs: Count = 3
    """Stages of a generation's race: after each, the better half of the candidates plays twice as many worlds."""

    step: Annotated[float, Field(gt=0, le=1)] = 0.15
    """Initial step of the search, relative to each parameter's range."""

    covariance: Literal["diagonal", "full"] = "diagonal"
    """What the search learns of the parameters: their scales, which takes few generations, or how they hang together
    as well."""

    seed: int = 0
    """Seed of the search."""

    opponents: tuple[str, ...] = ("finalists-2024", "finalists-2025", "finalists-2026")
    """Who may sit in the other competitors' seats."""

    mix: Literal["official", "finalists"] = "official"
    """official: 2 to 4 competitors among the league's default agents; finalists: opponents in all other seats."""

    days: tuple[Count, ...] = (50, 100, 200)
    """Lengths of the worlds, drawn with equal probability."""

    n_levels: Annotated[int, Field(ge=2)] | None = None
    """Production levels. Default: drawn from the official range, 2 to 4."""

    inventory: Literal["as_shipped", "depleting"] = "as_shipped"
    """Whether production consumes input stock; scml as shipped does not."""

    validation_worlds: Count = 100
    """Worlds per level, of the tuning block but unseen by the search, that decide whether its result is kept."""

    gate: str = "tune"
    """The gate on which the result is judged: seeds of the block gate:NAME."""

    gate_worlds: Annotated[int, Field(ge=0)] = 300
    """Worlds of the gate at most; the judgement ends when it is clear. 0 leaves it out."""

    against: tuple[str, ...] = ()
    """Whom the result is compared with on the gate, beside the start."""

    output_dir: Path = Path("training_runs/tune")
    """Folder of the run: its log, and parameters.json, the result."""

    quiet: bool = False
    """Show no progress, only the result."""
