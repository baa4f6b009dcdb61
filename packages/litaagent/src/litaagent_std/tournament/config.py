"""What a tournament is: the part of a command's options that determines its worlds, and the part that does not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from apexrl.configuration import configuration
from apexrl.execution import ExecutionOptions, ExecutorName
from apexrl.runs.errors import ConfigurationError

__all__ = ["FREE", "TournamentConfig", "executor_name"]

Count = Annotated[int, Field(ge=1)]
Parallelism = Literal["serial", "loky", "parallel", "ray"]

_ALIASES: Final[dict[Parallelism, ExecutorName]] = {
    "serial": "inline",
    "loky": "processes",
    "parallel": "processes",
    "ray": "ray",
}

FREE: Final = (
    "output_dir",
    "executor",
    "parallelism",
    "workers",
    "address",
    "ray",
    "engine",
    "time_limit",
    "retries",
    "foreground",
    "quiet",
    "resumable",
    "fresh",
    "retry_failed",
    "publish_to",
    "csv",
)
"""Options that may change between two starts of a tournament: the records come out the same."""


@configuration
class TournamentConfig(ExecutionOptions):
    """A tournament of the Standard league: every competitor in every seat, with complete records.

    It resumes where it stopped: run the same command again.
    """

    competitors: tuple[str, ...] = ()
    """Who plays: groups such as top-2025, top-2024:3 or finalists-2026, built-ins such as RandomStd, or class paths.
    The default roster: the LitaAgent family of 2025, the best of 2025 and of 2024, RandomStd
    and SyncRandomStd."""

    max_top_2025: Annotated[int, Field(ge=0)] = 5
    """How many of the best of 2025 are in the default roster."""

    max_top_2024: Annotated[int, Field(ge=0)] = 5
    """How many of the best of 2024 are in the default roster."""

    integer_offers: bool = True
    """Let agents of scml-agents offer whole numbers only; negmas 0.16 silently drops fractions, and with them the
    play of agents written for older versions."""

    isolate: bool = False
    """Let every competitor play in a process of its own, with limits of time, memory and files and without network; a
    name with the prefix isolated: asks for one competitor. Results of agents that keep the rules are the same."""

    configs: Count = 20
    """Configurations of the market to draw."""

    runs: Count = 2
    """Runs of each configuration and assignment, each with another seed."""

    max_worlds_per_config: Count | None = None
    """Worlds per configuration and run, at most; a multiple of the number of competitors is used. Default: the number
    of competitors, so that each plays once in every seat."""

    n_competitors_per_world: Count | None = None
    """Competitors' seats in a world. Default: all competitors."""

    official_mix: bool = False
    """Give competitors 2 to 4 seats among the league's default agents, as the official tournament does."""

    round_robin: bool = False
    """Let every set of competitors meet that a world has seats for."""

    target_worlds: Count | None = None
    """Draw as many whole configurations as it takes to reach this number of worlds, instead of --configs."""

    steps: Count | None = None
    """Days of every world. Default: drawn from the official range, 50 to 200."""

    levels: Annotated[int, Field(ge=2)] | None = None
    """Production levels of every world. Default: drawn from the official range, 2 to 4."""

    inventory: Literal["as_shipped", "depleting"] = "as_shipped"
    """Whether production consumes input stock; scml as shipped does not."""

    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of everything random."""

    shard_size: Count = 100
    """Worlds per file of the records."""

    reasons: bool = False
    """Also record why our agent decided as it did: goals, bounds, what L1 changed, probabilities, alternatives."""

    publish_to: str | None = None
    """Address in object storage, such as s3://bucket/tournament, to which records are uploaded as they are completed,
    shard by shard; readers see only what is whole."""

    output_dir: Path | None = None
    """Folder of the tournament. Default: the newest unfinished one of the same tournament, or else a new one."""

    executor: ExecutorName | None = None  # type: ignore[assignment]  # None: --parallelism may name it
    """How worlds are run: one after the other here, in processes, or on a Ray cluster. Default: processes."""

    parallelism: Parallelism | None = None
    """The older name of --executor: serial is inline, loky and parallel are processes."""

    engine: Literal["fast", "scml"] = "fast"
    """Engine of the worlds: the fast one, or scml's own; both give the same records."""

    time_limit: Annotated[float, Field(gt=0)] = 3600.0
    """Seconds that a world may take; a longer one is given up, as are worlds whose agents hang."""

    retries: Annotated[int, Field(ge=0)] = 2
    """Further attempts at a world that crashed, hung or lost its process, before it is recorded as failed."""

    foreground: bool = False
    """Show every finished world; otherwise they go to run.log in the folder and one status line is shown."""

    quiet: bool = False
    """Show nothing but errors and the result."""

    resumable: bool = True
    """Resume an unfinished tournament. --no-resumable refuses a folder that holds one."""

    fresh: bool = False
    """Start a new folder although an unfinished tournament could be resumed."""

    retry_failed: bool = False
    """Play the worlds again that were recorded as failed."""

    csv: bool = True
    """Also write logs/WORLD/negotiations.csv and others in scml's own form; lita export-scml writes them later."""


def executor_name(config: TournamentConfig) -> ExecutorName:
    """Return the executor that is asked for, by either name.

    Raises:
        ConfigurationError: If the two names contradict each other, or an address is given without Ray.
    """
    alias = None if config.parallelism is None else _ALIASES[config.parallelism]
    if alias is not None and config.executor is not None and alias != config.executor:
        raise ConfigurationError(
            f"--parallelism {config.parallelism} means --executor {alias}, but --executor is {config.executor}",
            "the two are names of one option",
            "leave one of them out",
        )
    name = config.executor or alias or "processes"
    if config.address is not None and name != "ray":
        raise ConfigurationError(
            f"--address {config.address} is for Ray, but the executor is {name}",
            "only Ray has a cluster to connect to",
            "add --executor ray, or leave --address out",
        )
    return name
