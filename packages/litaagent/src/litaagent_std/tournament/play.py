"""One world of a tournament: what a worker plays."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Literal

from litaagent_std.records.recorder import Recorder, WorldFacts
from litaagent_std.records.scml_form import world_files
from litaagent_std.records.storage.segment import pack_world
from litaagent_std.records.world import WorldRecord
from litaagent_std.tournament.plan import WorldSpec
from litaagent_std.world.events import AgentError, WorldObserver
from litaagent_std.world.reproducible.silence import silence
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import OFFICIAL_DAYS, OFFICIAL_LEVELS, AgentSpec, WorldSetup, official_setup

__all__ = ["PlayedWorld", "WorldTask", "make_setup", "play_world", "time_days", "try_competitor"]

_FEW_DAYS = 12  # in the first few days agents have few contracts, and decide faster than later
_TRY_DAYS = 6
_PLACEHOLDER = AgentSpec("scml.std.agents.rand.RandomStdAgent")
_SUBSTITUTE = AgentSpec("scml.std.agents.greedy.GreedyStdAgent")


@dataclass(frozen=True, slots=True)
class WorldTask:
    """A world to play, small enough to send anywhere.

    Attributes:
        spec: The world.
        names: Names of the competitors in the order of their numbers.
        agents: The competitors themselves, in the same order.
        days: Days to run; drawn from the official range when None.
        levels: Production levels; drawn from the official range when None.
        inventory: The rule of inventory.
        engine: The engine.
        csv: Whether the logs in scml's form are made too.
        reasons: Whether the record holds the reasons of our agent.
        broken: Numbers of competitors that cannot play; a default agent takes their seats, and nobody is ranked there.
    """

    spec: WorldSpec
    names: tuple[str, ...]
    agents: tuple[AgentSpec, ...]
    days: int | None
    levels: int | None
    inventory: Literal["as_shipped", "depleting"]
    engine: Literal["fast", "scml"]
    csv: bool
    reasons: bool = False
    broken: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class PlayedWorld:
    """A world that was played.

    Attributes:
        world: Its number.
        packed: Its record; see `records.storage.segment`.
        files: Its logs in scml's form by name; empty when they were not asked for.
        days: Its days.
        cpu_seconds: CPU time that it took.
    """

    world: int
    packed: bytes
    files: dict[str, str]
    days: int
    cpu_seconds: float


def make_setup(task: WorldTask) -> tuple[WorldSetup, tuple[str | None, ...]]:
    """Draw a world's configuration and seat its competitors; also return their names by seat."""
    spec = task.spec
    setup = official_setup(
        spec.config_seed,
        [_PLACEHOLDER] * len(spec.seats),
        n_days=OFFICIAL_DAYS if task.days is None else task.days,
        n_levels=OFFICIAL_LEVELS if task.levels is None else task.levels,
        n_competitors=len(spec.seats),
    )
    open_seats = [seat for seat, agent in enumerate(setup.agents) if agent.competitor]
    seated = dict(zip(open_seats, spec.seats, strict=True))
    able = {seat: number for seat, number in seated.items() if number not in task.broken}
    agents = {seat: replace(task.agents[number], competitor=True) for seat, number in able.items()}
    agents |= {seat: _SUBSTITUTE for seat in seated.keys() - able.keys()}
    labels = tuple(task.names[able[seat]] if seat in able else None for seat in range(setup.n_seats))
    return setup.with_agents(agents).with_seed(spec.seed), labels


def play_world(task: WorldTask) -> PlayedWorld:
    """Play a world and return its complete record."""
    started = time.process_time()
    setup, labels = make_setup(task)
    spec = task.spec
    facts = WorldFacts(spec.world, spec.config, spec.run, spec.rotation, spec.config_seed, labels, task.inventory)
    recorder = Recorder(setup, facts, reasons=task.reasons)
    with silence():
        run_world(setup, task.engine, [recorder], task.inventory, defaults=_defaults(task.engine))
    tables = recorder.tables()
    files = world_files(WorldRecord(tables)) if task.csv else {}
    packed = pack_world(spec.world, tables)
    return PlayedWorld(spec.world, packed, files, setup.n_days, time.process_time() - started)


def try_competitor(agent: AgentSpec, engine: Literal["fast", "scml"]) -> None:
    """Load a competitor's class and play a short world with it; whatever is wrong with it, this raises or hangs."""
    agent.load()
    setup = official_setup(0, n_days=_TRY_DAYS, n_levels=3).with_agents({0: replace(agent, competitor=True)})
    lost = _Lost()
    with silence():
        run_world(setup, engine, [lost], defaults=_defaults(engine))
    if lost.why:
        raise RuntimeError(lost.why)


class _Lost(WorldObserver):
    """Notes why an isolated agent's process was lost."""

    why = ""

    def on_error(self, event: AgentError) -> None:
        """Note the reason."""
        if event.kind == "LostError":
            self.why = f"in {event.where}: {event.message}"


def time_days(task: WorldTask) -> tuple[float, int]:
    """Play the first days of a task's world, record included; return the seconds per day, and the days of the world."""
    setup, _ = make_setup(task)
    for agent in {agent.path: agent for agent in setup.agents}.values():
        agent.load()  # imports are no part of a day
    days = min(setup.n_days, _FEW_DAYS)
    started = time.perf_counter()
    play_world(replace(task, days=days))
    return (time.perf_counter() - started) / days, setup.n_days


def _defaults(engine: Literal["fast", "scml"]) -> Literal["hosted", "native"]:
    """Who plays the league's default agents: the fast engine has native ones, which play the same."""
    return "native" if engine == "fast" else "hosted"
