"""What an evaluation is: the options of ``lita arena``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from tyro.conf import Positional

from apexrl.configuration import configuration
from apexrl.execution import ExecutionOptions
from litaagent_std.policy.parameters import LEVELS, Level

__all__ = ["ArenaConfig"]

Count = Annotated[int, Field(ge=1)]


@configuration
class ArenaConfig(ExecutionOptions):
    """Compare an agent with others in the same worlds and seats with the same randomness; only the agent changes.

    Worlds are played until every answer is clear, at most --worlds. The same command resumes where it stopped, and
    every evaluation in a folder uses the finished worlds of the others.
    """

    agent: Annotated[str, Positional] = "lita"
    """The agent: lita, a name of lita competitors, or a class path; parameters as JSON behind a colon:
    lita:{"l4": "greedy"}."""

    against: tuple[str, ...] = ("HorizonAwareAgent",)
    """Whom it is compared with: like AGENT, class names of finalists, and groups such as finalists-2026."""

    opponents: tuple[str, ...] = ("finalists-2024", "finalists-2025", "finalists-2026")
    """Who may sit in the other competitors' seats."""

    mix: Literal["official", "finalists"] = "official"
    """official: 2 to 4 competitors among the league's default agents; finalists: opponents in all other seats."""

    worlds: Count = 300
    """Worlds at most."""

    days: tuple[Count, ...] = (50, 100, 200)
    """Lengths of the worlds, drawn with equal probability."""

    levels: Annotated[int, Field(ge=2)] | None = None
    """Production levels. Default: drawn from the official range, 2 to 4."""

    places: Annotated[tuple[Level, ...], Field(min_length=1)] = LEVELS
    """Levels of the seat that they play. For agents that differ at some levels alone: worlds with the seat elsewhere,
    where both would end alike, are left out."""

    block: str = "tuning"
    """Seeds: tuning, gate:NAME (fresh ones for every name), verdict or verdict:NAME."""

    open_verdict: bool = False
    """Allow --block verdict, whose worlds are for the final table alone."""

    lead: float = 0.0
    """The question is whether the mean difference is above this."""

    stop_early: bool = True
    """End a comparison as soon as its answer is clear; --no-stop-early plays all worlds."""

    as_shipped: bool = False
    """Let agents of scml-agents play as shipped. By default their offers are cast to whole numbers, without which
    negmas 0.16 drops many of them."""

    isolate: bool = False
    """Let all agents play in processes of their own, with limits and without network; a name with the prefix isolated:
    asks for one agent. Results of agents that keep the rules are the same."""

    inventory: Literal["as_shipped", "depleting"] = "as_shipped"
    """Whether production consumes input stock; scml as shipped does not."""

    engine: Literal["fast", "scml"] = "fast"
    """Engine of the worlds: the fast one, or scml's own; both give the same scores."""

    output_dir: Path = Path("arena_results")
    """Folder of the finished worlds and of the reports."""

    quiet: bool = False
    """Show no progress, only the tables."""
