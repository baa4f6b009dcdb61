"""Playing a known world again with our agent's log on, to see why it did what it did.

A world comes from a tournament's folder, from an evaluation of the arena, or is drawn from a seed. Worlds repeat
exactly, so the log of a second run explains the first, as long as the agent's code is the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from apexrl.configuration import from_mapping
from apexrl.runs.errors import ConfigurationError
from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.arena.seeds import seed_block
from litaagent_std.arena.worlds import Rules, draw
from litaagent_std.policy.brain import DecisionRecord
from litaagent_std.policy.observation import Observation
from litaagent_std.records.manifest import Manifest
from litaagent_std.records.reader import RECORDS_FOLDER
from litaagent_std.tournament.competitors.names import read_agent, resolve_one
from litaagent_std.tournament.config import TournamentConfig
from litaagent_std.tournament.plan import make_plan
from litaagent_std.tournament.play import WorldTask, make_setup
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.reproducible.silence import silence
from litaagent_std.world.rules.settlement import Inventory
from litaagent_std.world.setup import OFFICIAL_DAYS, OFFICIAL_LEVELS, WorldSetup, official_setup

__all__ = ["Explained", "Replay", "explain", "from_arena", "from_seed", "from_source", "from_tournament"]

_REPORT: Final = "report.json"


@dataclass(frozen=True, slots=True)
class Replay:
    """A world that can be played again.

    Attributes:
        setup: The world.
        inventory: Its rule of inventory.
        origin: Where it comes from, in words.
        recorded_digest: Digest of the setup as a record names it, whose class paths may be those of an older release;
            None where there is no record.
    """

    setup: WorldSetup
    inventory: Inventory
    origin: str
    recorded_digest: str | None = None

    @property
    def seats(self) -> tuple[int, ...]:
        """Seats of our agent and of agents derived from it."""
        return tuple(
            seat
            for seat, spec in enumerate(self.setup.agents)
            if spec.competitor and issubclass(spec.load(), LitaAgentHRL)
        )


@dataclass(frozen=True, slots=True)
class Explained:
    """Why one agent did what it did with one partner on one day.

    Attributes:
        agent: Our agent's id.
        seat: Its seat.
        obs: Its morning.
        regime: The inventory regime as it knew it.
        records: Its decisions in that thread, in order.
    """

    agent: str
    seat: int
    obs: Observation
    regime: str
    records: tuple[DecisionRecord, ...]


def from_seed(seed: int, agent: str = "lita", days: int | None = None, levels: int | None = None) -> Replay:
    """Draws an official world in which an agent sits in every competitor's seat.

    Args:
        seed: The seed.
        agent: The agent, as ``lita arena`` names it.
        days: Days; drawn from the official range when None.
        levels: Production levels; drawn from the official range when None.
    """
    competitor = resolve_one(agent)
    setup = official_setup(
        seed,
        [competitor.spec],
        n_days=OFFICIAL_DAYS if days is None else days,
        n_levels=OFFICIAL_LEVELS if levels is None else levels,
    )
    return Replay(setup, "as_shipped", f"an official world of seed {seed}")


def from_source(folder: Path, world: int) -> Replay:
    """Find a world of a tournament's folder or of an arena's evaluation.

    Raises:
        ConfigurationError: If the folder is neither, or has no such world.
    """
    if (folder / _REPORT).is_file():
        return from_arena(folder, world)
    if (folder / RECORDS_FOLDER).is_dir():
        return from_tournament(folder, world)
    raise ConfigurationError(
        f"{str(folder)!r} is neither a tournament nor an evaluation of the arena",
        f"a tournament's folder holds {RECORDS_FOLDER}/, an evaluation's folder {_REPORT}",
        "name such a folder, or leave --source out to draw an official world from its seed",
    )


def from_tournament(folder: Path, world: int) -> Replay:
    """Find a world of a tournament.

    Raises:
        UserFacingError: If there is no such tournament or world.
    """
    source = Manifest.read(folder / RECORDS_FOLDER).source
    played = {name: value for name, value in source["played"].items() if name != "files"}
    texts = tuple(played["competitors"])
    config = from_mapping(TournamentConfig, played, f"the tournament {str(folder)!r}")
    plan = make_plan(config, len(texts))
    if not 0 <= world < len(plan.worlds):
        raise ConfigurationError(
            f"there is no world {world}", f"{str(folder)!r} has worlds 0 to {len(plan.worlds) - 1}", "name one of them"
        )
    kind = (config.steps, config.levels, config.inventory, config.engine, False)
    spec, names = plan.worlds[world], tuple(source["names"])
    setup, _ = make_setup(WorldTask(spec, names, tuple(map(read_agent, texts)), *kind))
    written = tuple(read_agent(text, as_written=True) for text in texts)
    recorded, _ = make_setup(WorldTask(spec, names, written, *kind))
    return Replay(setup, config.inventory, f"world {world} of {folder}", recorded.digest)


def from_arena(folder: Path, world: int) -> Replay:
    """Find a world of an arena's evaluation, with the focal agent in its seat.

    Raises:
        ConfigurationError: If there is no such world, or the evaluation is a verdict.
    """
    report: dict[str, Any] = json.loads((folder / _REPORT).read_text(encoding="utf-8"))
    if report["block"] == "verdict":
        raise ConfigurationError(
            f"{str(folder)!r} is a verdict",
            "its worlds judge the final agent, so nobody looks into them",
            "explain a world of an evaluation on another block",
        )
    if not 0 <= world < report["worlds"]:
        raise ConfigurationError(
            f"there is no world {world}", f"{str(folder)!r} has worlds 0 to {report['worlds'] - 1}", "name one of them"
        )
    name, brace, params = str(report["focal"]).partition("{")
    focal = resolve_one(f"{name}:{brace}{params}" if brace else name)
    plain: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in report["rules"].items()
    }
    rules = Rules(**plain)
    drawn = draw(rules, seed_block(report["block"]).seed(world))
    return Replay(drawn.with_agent(focal.spec), rules.inventory, f"world {world} of {folder}")


def explain(replay: Replay, day: int, partner: str, seat: int | None = None) -> Explained:
    """Plays a world up to a day, and returns why our agent did what it did with a partner.

    Args:
        replay: The world.
        day: The day.
        partner: The partner's id.
        seat: Our agent's seat, where several of ours deal with that partner.

    Raises:
        ConfigurationError: If no agent of ours plays there, or the day or the partner does not exist.
    """
    setup = replay.setup
    seats = _seats(replay, seat)
    if not 0 <= day < setup.n_days:
        raise ConfigurationError(
            f"there is no day {day}", f"{replay.origin} has days 0 to {setup.n_days - 1}", "name one of them"
        )
    logged = {one: replace(setup.agents[one], params={**setup.agents[one].params, "keep_log": True}) for one in seats}
    world = FastWorld(setup.with_agents(logged), inventory=replay.inventory, defaults="native")
    with silence():
        while world.current_step <= day and world.step_day():
            pass
    found = [_explained(world.seats[one].agent, one, day, partner) for one in seats]
    fitting = [one for one in found if one is not None and one.records]
    if len(fitting) == 1:
        return fitting[0]
    _refuse(world, seats, day, partner, [one.seat for one in fitting])
    raise AssertionError("unreachable")


def _seats(replay: Replay, seat: int | None) -> tuple[int, ...]:
    ours = replay.seats
    if not ours:
        raise ConfigurationError(
            f"no agent of ours plays in {replay.origin}",
            "only LitaAgentHRL and agents derived from it keep a log of their reasons",
            "choose a world where one has a seat",
        )
    if seat is not None and seat not in ours:
        raise ConfigurationError(
            f"seat {seat} is not ours", f"in {replay.origin} ours are {_listed(ours)}", "name one of them"
        )
    return ours if seat is None else (seat,)


def _explained(agent: LitaAgentHRL, seat: int, day: int, partner: str) -> Explained | None:
    brain = agent.brain
    records = tuple(one for one in brain.log if one.day == day and one.partner == partner)
    if not records or brain.obs.day != day:
        return None
    return Explained(agent.id, seat, brain.obs, brain.memory.regime.value, records)


def _refuse(world: FastWorld, seats: tuple[int, ...], day: int, partner: str, fitting: list[int]) -> None:
    if fitting:
        raise ConfigurationError(
            f"{partner!r} negotiated with several of ours on day {day}",
            f"they sit in seats {_listed(fitting)}",
            "add --seat with one of them",
        )
    known = {}
    for seat in seats:
        log = world.seats[seat].agent.brain.log
        names = sorted({record.partner for record in log if record.day == day})
        known[f"seat {seat} ({world.seats[seat].id})"] = ", ".join(names) or "nobody"
    listed = "; ".join(f"{who}: {names}" for who, names in known.items())
    raise ConfigurationError(
        f"no agent of ours negotiated with {partner!r} on day {day}",
        f"those it negotiated with were, by seat: {listed}",
        "name one of them",
    )


def _listed(numbers: tuple[int, ...] | list[int]) -> str:
    return ", ".join(map(str, numbers))
