"""Training worlds: official configurations with seats of ours, drawn from a plan of plain values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from apexrl.runs.errors import ConfigurationError
from litaagent_std.policy.parameters import Level, level_name
from litaagent_std.tournament.competitors.integer_offers import original_path
from litaagent_std.world.reproducible.streams import numpy_stream
from litaagent_std.world.setup import OFFICIAL_LEVELS, AgentSpec, WorldSetup, official_setup

__all__ = [
    "OURS",
    "TRAINING_SEEDS",
    "PlanSampler",
    "TrainingWorld",
    "WorldPlan",
    "class_name",
    "draw_world",
    "require_days",
    "training_seed",
    "training_world_of",
]

OURS: Final = "litaagent_std.hrl_xf.online.lockstep.LockstepAgent"
"""Class path of the agent in our seats."""
TRAINING_SEEDS: Final = 1 << 61
"""First training seed; no block of the arena (tuning, gates, verdict) contains a seed of this range."""
_WORLDS_PER_RUN: Final = 1 << 32


def require_days(days: tuple[int, ...], levels: int | None, option: str) -> None:
    """Refuse lengths of worlds in which a product cannot pass through all levels.

    Raises:
        ConfigurationError: If there is none, or one is too short.
    """
    most = max(OFFICIAL_LEVELS) if levels is None else levels
    if not days or min(days) <= most:
        raise ConfigurationError(
            f"{option} {' '.join(map(str, days))} will not do",
            f"a product needs more days than the levels it passes through, and worlds have up to {most}",
            f"use lengths of {most + 1} or more, or fewer --levels",
        )


def training_seed(run_seed: int, world: int) -> int:
    """Return the seed of a run's world; never a seed of the arena.

    Args:
        run_seed: Seed of the run.
        world: Index of the world within the run.

    Raises:
        ValueError: If the run's seed or the index is out of range.
    """
    if not (0 <= run_seed < 1 << 20 and 0 <= world < _WORLDS_PER_RUN):
        raise ValueError(f"run_seed={run_seed} must be below {1 << 20} and world={world} below {_WORLDS_PER_RUN}")
    return TRAINING_SEEDS | run_seed * _WORLDS_PER_RUN | world


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldPlan:
    """A world to play, as plain values that travel to any worker.

    Attributes:
        seed: Decides the configuration, the seats and all random streams.
        days: Lengths to draw from.
        levels: Number of production levels; if None, drawn from the official range.
        seats: Number of our seats.
        opponents: Other competitors; the remaining seats get the league's default agents in official proportion.
    """

    seed: int
    days: tuple[int, ...] = (50,)
    levels: int | None = None
    seats: int = 1
    opponents: tuple[AgentSpec, ...] = ()

    def __post_init__(self) -> None:
        if self.seats < 1:
            raise ValueError(f"seats={self.seats} leaves no seat to train; give at least 1")


class PlanSampler:
    """Samples plans of worlds for environments that draw their own.

    Args:
        run_seed: Run seed of all worlds, see `training_seed`.
        days: Lengths to draw from.
        levels: Number of production levels; if None, drawn from the official range.
        opponents: Class paths of other competitors.
        seats: Number of our seats.
    """

    def __init__(
        self, run_seed: int, days: tuple[int, ...], levels: int | None, opponents: tuple[str, ...], seats: int = 1
    ) -> None:
        agents = tuple(AgentSpec(path, competitor=True) for path in opponents)
        self._plan = WorldPlan(seed=0, days=tuple(days), levels=levels, seats=seats, opponents=agents)
        self._run_seed = run_seed

    def sample(self, rng: np.random.Generator) -> WorldPlan:
        """Return a plan with a random seed."""
        return replace(self._plan, seed=training_seed(self._run_seed, int(rng.integers(1 << 32))))


@dataclass(frozen=True, slots=True)
class TrainingWorld:
    """A world that is ready to be played.

    Attributes:
        setup: The world.
        seats: Indices of our seats.
        rivals: Names of the other competitors by seat.
        seat_levels: Level in the chain of each of our seats.
    """

    setup: WorldSetup
    seats: tuple[int, ...]
    rivals: dict[int, str]
    seat_levels: dict[int, Level]

    def kind(self, seat: int) -> str:
        """Return the kind of a seat, by which returns are scaled: number of levels and level in the chain."""
        return f"{self.setup.n_levels}-{self.seat_levels[seat]}"

    def with_ours(self, agent: AgentSpec) -> WorldSetup:
        """Return the world with an agent in all our seats."""
        return self.setup.with_agents({seat: replace(agent, competitor=True) for seat in self.seats})


def draw_world(plan: WorldPlan) -> TrainingWorld:
    """Draw the world of a plan: a pure function of the plan."""
    rng = numpy_stream(plan.seed, "online")
    ours = AgentSpec(OURS)
    setup = official_setup(
        plan.seed,
        [ours] * plan.seats + list(plan.opponents),
        n_days=int(rng.choice(plan.days)),
        n_levels=OFFICIAL_LEVELS if plan.levels is None else plan.levels,
        n_competitors=plan.seats + len(plan.opponents),
    )
    return training_world_of(replace(setup, neutral_names=True))


def class_name(path: str) -> str:
    """Return the name of an agent's class, with or without the wrapper that casts its offers."""
    return original_path(path).rpartition(".")[2]


def training_world_of(setup: WorldSetup) -> TrainingWorld:
    """Return the training world of a setup; our seats are those whose agent has the path `OURS`."""
    seats = tuple(seat for seat, agent in enumerate(setup.agents) if agent.path == OURS)
    rivals = {
        seat: agent.params.get("label") or class_name(agent.path)
        for seat, agent in enumerate(setup.agents)
        if agent.competitor and seat not in seats
    }
    seat_levels = {seat: level_name(setup.factories[seat].level, setup.n_levels) for seat in seats}
    return TrainingWorld(setup, seats, rivals, seat_levels)
