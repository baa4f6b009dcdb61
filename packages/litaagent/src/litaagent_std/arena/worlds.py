"""The arena's worlds: drawn once, played by every agent in the same seat, with the facts that explain a score."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np

from litaagent_std.arena.stopwatch import Reading, start, stop, timed_path
from litaagent_std.tournament.competitors.names import read_agent
from litaagent_std.world.events import AgentError, Settlement, WorldObserver, WorldStart
from litaagent_std.world.reproducible.silence import silence
from litaagent_std.world.reproducible.streams import numpy_stream
from litaagent_std.world.rules.settlement import Inventory
from litaagent_std.world.run import Engine, run_world
from litaagent_std.world.setup import OFFICIAL_LEVELS, AgentSpec, WorldSetup, official_setup

__all__ = ["ArenaWorld", "Mix", "Rules", "draw", "play_unit"]

Mix = Literal["official", "finalists"]
_FILL: Final[dict[Mix, Literal["defaults", "competitors"]]] = {"official": "defaults", "finalists": "competitors"}


@dataclass(frozen=True, slots=True)
class Rules:
    """What all worlds of an evaluation share.

    Attributes:
        opponents: Who may sit in the other competitors' seats, as `competitors.names.agent_text` writes agents.
        mix: ``official``: 2 to 4 competitors among the league's default agents; ``finalists``: opponents in all seats.
        days: Lengths to draw from, each as likely as the others.
        levels: Production levels; drawn from the official range when None.
        inventory: Whether production consumes input stock.
        engine: ``fast`` or ``scml``.
    """

    opponents: tuple[str, ...]
    mix: Mix = "official"
    days: tuple[int, ...] = (50, 100, 200)
    levels: int | None = None
    inventory: Inventory = "as_shipped"
    engine: Engine = "fast"


@dataclass(frozen=True, slots=True)
class ArenaWorld:
    """A world with an open seat.

    Attributes:
        setup: The world; an opponent sits in the open seat for now.
        seat: The focal seat.
        level: Its level in the chain: ``first``, ``middle`` or ``last``.
    """

    setup: WorldSetup
    seat: int
    level: str

    def with_agent(self, agent: AgentSpec) -> WorldSetup:
        """Return the world with an agent in the focal seat."""
        return self.setup.with_agents({self.seat: replace(agent, competitor=True)})


def draw(rules: Rules, seed: int) -> ArenaWorld:
    """Draw a world: a pure function of its arguments.

    Configuration and competitors' seats come from the official generator; the focal agent sits in any of these seats
    with equal probability, as it does in the tournament. Ids are neutral (see `WorldSetup`), so that exchanging the
    focal agent renames nobody.
    """
    rng = numpy_stream(seed, "arena")
    setup = official_setup(
        seed,
        [read_agent(text) for text in rules.opponents],
        fill=_FILL[rules.mix],
        n_days=int(rng.choice(rules.days)),
        n_levels=OFFICIAL_LEVELS if rules.levels is None else rules.levels,
    )
    setup = replace(setup, neutral_names=True)
    seat = int(rng.choice([seat for seat, agent in enumerate(setup.agents) if agent.competitor]))
    level = setup.factories[seat].level
    name = "first" if level == 0 else "last" if level == setup.n_levels - 1 else "middle"
    return ArenaWorld(setup, seat, name)


@dataclass(slots=True)
class _Watch(WorldObserver):
    """Records the focal agent's settlements and errors, and all bankruptcies."""

    seat: int
    agent: str = ""
    days: list[Settlement] = field(default_factory=list)
    bankrupt: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    n_errors: int = 0

    def on_world_start(self, event: WorldStart) -> None:
        self.agent = event.agents[self.seat]

    def on_settlement(self, event: Settlement) -> None:
        if event.agent == self.agent:
            self.days.append(event)

    def on_bankruptcy(self, day: int, agent: str, balance: float) -> None:
        self.bankrupt[agent] = day

    def on_error(self, event: AgentError) -> None:
        if event.agent == self.agent:
            self.n_errors += 1
            text = f"{event.kind} in {event.where}: {event.message}"
            if text not in self.errors and len(self.errors) < 3:
                self.errors.append(text)


def play_unit(rules: Rules, seed: int, agent: AgentSpec) -> dict[str, Any]:
    """Play one world with one agent in the focal seat; what a worker does.

    Returns:
        Plain values. What depends on the machine's speed is under ``cpu``; all else is the same wherever it is played.
    """
    began = time.process_time()
    world = draw(rules, seed)
    setup = world.with_agent(replace(agent, path=timed_path(agent.path)))
    watch = _Watch(world.seat)
    start()
    try:
        with silence():
            end = run_world(
                setup,
                engine=rules.engine,
                observers=[watch],
                inventory=rules.inventory,
                defaults="native" if rules.engine == "fast" else "hosted",
            )
    finally:
        reading = stop()
    facts = _facts(world, watch) | {"score": float(end.scores[watch.agent])}
    facts["interventions"] = getattr(getattr(reading.agent, "brain", None), "interventions", None)
    return facts | {"cpu": _costs(reading, setup.n_days, time.process_time() - began)}


def _facts(world: ArenaWorld, watch: _Watch) -> dict[str, Any]:
    setup, days = world.setup, watch.days
    balance, played = setup.factories[world.seat].balance, max(1, len(days))
    per_day = {
        "sales": sum(day.output_quantity for day in days) / played,
        "purchases": sum(day.input_quantity for day in days) / played,
        "produced": sum(day.produced for day in days) / played,
        "stock": float(np.mean([day.inventory_input for day in days])) if days else 0.0,
    }
    relative = {
        "shortfall": sum(day.shortfall_penalty for day in days) / balance,
        "storage": sum(day.storage_cost for day in days) / balance,
    }
    return {
        "setup": setup.digest,
        "seed": setup.seed,
        "n_days": setup.n_days,
        "n_levels": setup.n_levels,
        "seat": world.seat,
        "level": world.level,
        **per_day,
        "shortfall_units": sum(day.shortfall_quantity for day in days),
        **relative,
        "bankrupt_on": watch.bankrupt.get(watch.agent),
        "bankruptcies": len(watch.bankrupt),
        "n_errors": watch.n_errors,
        "errors": watch.errors,
    }


def _costs(reading: Reading, days: int, seconds: float) -> dict[str, float]:
    return {
        "world_seconds": seconds,
        "decision_ms": 1000 * reading.seconds / max(1, reading.calls),
        "longest_decision_ms": 1000 * reading.longest,
        "day_ms": 1000 * (reading.seconds + reading.daily_seconds) / days,
        "decisions": reading.calls,
    }
