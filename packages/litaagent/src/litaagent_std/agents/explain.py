"""Why our agent decided as it did: from a record that holds its reasons, or from a world played again with the log on.

A world comes from a tournament's folder, from an evaluation of the arena, or is drawn from a seed. Worlds repeat
exactly, so the log of a second run explains the first, as long as the agent's code is the same. `records.reasons`
puts a decision into words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
from litaagent_std.records.reader import RECORDS_FOLDER, WorldKey, open_records
from litaagent_std.records.storage.manifest import Manifest
from litaagent_std.tournament.competitors.names import read_agent, resolve_one
from litaagent_std.tournament.config import TournamentConfig
from litaagent_std.tournament.plan import make_plan
from litaagent_std.tournament.play import WorldTask, make_setup
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.reproducible.silence import silence
from litaagent_std.world.rules.settlement import Inventory
from litaagent_std.world.setup import OFFICIAL_DAYS, OFFICIAL_LEVELS, WorldSetup, official_setup

__all__ = [
    "Explanation",
    "Replay",
    "explain",
    "from_arena",
    "from_record",
    "from_seed",
    "from_source",
    "from_tournament",
]

_REPORT: Final = "report.json"


@dataclass(frozen=True, slots=True)
class Replay:
    """A world that can be played again.

    Attributes:
        setup: The world.
        inventory: Its inventory rule.
        origin: Where it comes from, in words.
    """

    setup: WorldSetup
    inventory: Inventory
    origin: str

    @property
    def seats(self) -> tuple[int, ...]:
        """Seats of our agent and of agents derived from it."""
        return tuple(
            seat
            for seat, spec in enumerate(self.setup.agents)
            if spec.competitor and issubclass(spec.load(), LitaAgentHRL)
        )


@dataclass(frozen=True, slots=True)
class Explanation:
    """Reasons of one agent's decisions with one partner on one day.

    Attributes:
        origin: Where the world comes from, in words.
        agent: Our agent's id.
        seat: Its seat.
        obs: The day's observation.
        regime: The inventory regime as far as it was known.
        records: Its decisions in that thread, in order.
    """

    origin: str
    agent: str
    seat: int
    obs: Observation
    regime: str
    records: tuple[DecisionRecord, ...]


def from_seed(seed: int, agent: str = "lita", days: int | None = None, levels: int | None = None) -> Replay:
    """Draw an official world in which an agent sits in every competitor's seat.

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
    return Replay(setup, config.inventory, f"world {world} of {folder}")


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


def explain(replay: Replay, day: int, partner: str, seat: int | None = None) -> Explanation:
    """Play a world up to a day, and return the reasons of our agent's decisions with a partner.

    Args:
        replay: The world.
        day: The day.
        partner: The partner's id.
        seat: Our agent's seat, where several of ours deal with that partner.

    Raises:
        ConfigurationError: If no agent of ours plays there, or the day or the partner does not exist.
    """
    setup = replay.setup
    ours = replay.seats
    if not ours:
        raise ConfigurationError(
            f"no agent of ours plays in {replay.origin}",
            "only LitaAgentHRL and agents derived from it keep a log of their reasons",
            "choose a world where one has a seat",
        )
    _check(replay.origin, day, setup.n_days, seat, ours)
    seats = ours if seat is None else (seat,)
    logged = {
        index: replace(setup.agents[index], params={**setup.agents[index].params, "keep_log": True}) for index in seats
    }
    world = FastWorld(setup.with_agents(logged), inventory=replay.inventory, defaults="native")
    with silence():
        while world.current_step <= day and world.step_day():
            pass
    agents = {index: world.seats[index].agent for index in seats}
    chosen = _choose({index: (agent.id, agent.brain.log) for index, agent in agents.items()}, day, partner)
    brain = agents[chosen].brain
    records = _of_thread(brain.log, day, partner)
    return Explanation(replay.origin, agents[chosen].id, chosen, brain.obs, brain.memory.regime.value, records)


def from_record(folder: Path, world: int, day: int, partner: str, seat: int | None = None) -> Explanation | None:
    """Return the reasons that a tournament's record holds; None if it holds none of this world.

    Args:
        folder: The tournament's folder.
        world: The world.
        day: The day.
        partner: The partner's id.
        seat: Our agent's seat, where several of ours deal with that partner.

    Raises:
        ConfigurationError: If the day, the partner or the seat has none.
    """
    if not (folder / RECORDS_FOLDER).is_dir():
        return None
    records = open_records(folder / RECORDS_FOLDER)
    if WorldKey(0, world) not in records.keys:
        return None
    record = records.world(WorldKey(0, world))
    reasons = {ours: found for ours in range(len(record.names)) if (found := record.reasons(ours)) is not None}
    if not reasons:
        return None
    origin = f"world {world} of {folder}, as recorded"
    _check(origin, day, record.facts["n_days"], seat, tuple(reasons))
    wanted = reasons if seat is None else {seat: reasons[seat]}
    logs = {ours: (record.names[ours], found.decisions) for ours, found in wanted.items()}
    chosen = _choose(logs, day, partner)
    decisions = _of_thread(reasons[chosen].decisions, day, partner)
    obs, regime = record.observations(chosen)[day], reasons[chosen].regimes[day]
    return Explanation(origin, record.names[chosen], chosen, obs, regime, decisions)


def _check(origin: str, day: int, n_days: int, seat: int | None, ours: tuple[int, ...]) -> None:
    if not 0 <= day < n_days:
        raise ConfigurationError(f"there is no day {day}", f"{origin} has days 0 to {n_days - 1}", "name one of them")
    if seat is not None and seat not in ours:
        listed = f"in {origin} ours are {_listed(ours)}"
        raise ConfigurationError(f"seat {seat} is not ours", listed, "name one of them")


def _of_thread(log: Sequence[DecisionRecord], day: int, partner: str) -> tuple[DecisionRecord, ...]:
    return tuple(record for record in log if record.day == day and record.partner == partner)


def _choose(logs: Mapping[int, tuple[str, Sequence[DecisionRecord]]], day: int, partner: str) -> int:
    """Return the one seat that negotiated with a partner on a day.

    Args:
        logs: Our agents' ids and decisions by seat.
        day: The day.
        partner: The partner's id.

    Raises:
        ConfigurationError: If several of ours did, or none.
    """
    fitting = [seat for seat, (_, log) in logs.items() if _of_thread(log, day, partner)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise ConfigurationError(
            f"{partner!r} negotiated with several of ours on day {day}",
            f"they sit in seats {_listed(fitting)}",
            "add --seat with one of them",
        )
    known = {}
    for seat, (name, log) in logs.items():
        partners = sorted({record.partner for record in log if record.day == day})
        known[f"seat {seat} ({name})"] = ", ".join(partners) or "nobody"
    listed = "; ".join(f"{who}: {partners}" for who, partners in known.items())
    raise ConfigurationError(
        f"no agent of ours negotiated with {partner!r} on day {day}",
        f"those it negotiated with were, by seat: {listed}",
        "name one of them",
    )


def _listed(numbers: tuple[int, ...] | list[int]) -> str:
    return ", ".join(map(str, numbers))
