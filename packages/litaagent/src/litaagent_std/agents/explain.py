"""Why our agent decided as it did: a decision's record in words, and worlds played again with the log on.

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
from litaagent_std.policy.l3.heuristic import ARCHETYPES
from litaagent_std.policy.observation import Observation, Offer
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

__all__ = [
    "Explanation",
    "Replay",
    "explain",
    "from_arena",
    "from_seed",
    "from_source",
    "from_tournament",
    "goal_of",
    "offer_text",
    "reason",
    "types_text",
]

_REPORT: Final = "report.json"


@dataclass(frozen=True, slots=True)
class Replay:
    """A world that can be played again.

    Attributes:
        setup: The world.
        inventory: Its inventory rule.
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
class Explanation:
    """Reasons of one agent's decisions with one partner on one day.

    Attributes:
        agent: Our agent's id.
        seat: Its seat.
        obs: The day's observation.
        regime: The inventory regime as far as it was known.
        records: Its decisions in that thread, in order.
    """

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
    seats = _seats(replay, seat)
    if not 0 <= day < setup.n_days:
        raise ConfigurationError(
            f"there is no day {day}", f"{replay.origin} has days 0 to {setup.n_days - 1}", "name one of them"
        )
    logged = {
        ours: replace(setup.agents[ours], params={**setup.agents[ours].params, "keep_log": True}) for ours in seats
    }
    world = FastWorld(setup.with_agents(logged), inventory=replay.inventory, defaults="native")
    with silence():
        while world.current_step <= day and world.step_day():
            pass
    explanations = [_explained(world.seats[ours].agent, ours, day, partner) for ours in seats]
    fitting = [explanation for explanation in explanations if explanation is not None]
    if len(fitting) == 1:
        return fitting[0]
    raise _no_explanation(world, seats, day, partner, [explanation.seat for explanation in fitting])


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


def _explained(agent: LitaAgentHRL, seat: int, day: int, partner: str) -> Explanation | None:
    brain = agent.brain
    records = tuple(record for record in brain.log if record.day == day and record.partner == partner)
    if not records or brain.obs.day != day:
        return None
    return Explanation(agent.id, seat, brain.obs, brain.memory.regime.value, records)


def _no_explanation(
    world: FastWorld, seats: tuple[int, ...], day: int, partner: str, fitting: list[int]
) -> ConfigurationError:
    """Return the error for a partner with whom several agents of ours negotiated, or none."""
    if fitting:
        return ConfigurationError(
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
    return ConfigurationError(
        f"no agent of ours negotiated with {partner!r} on day {day}",
        f"those it negotiated with were, by seat: {listed}",
        "name one of them",
    )


def _listed(numbers: tuple[int, ...] | list[int]) -> str:
    return ", ".join(map(str, numbers))


def offer_text(offer: Offer | None) -> str:
    """Describe an offer in words."""
    return "–" if offer is None else f"{offer.quantity} at {offer.price} for day {offer.time}"


def types_text(record: DecisionRecord) -> str:
    """Describe the belief about the partner in words: its types by probability, those of 5 % and more."""
    if record.types is None:
        return "–"
    named = sorted(zip(record.types, ARCHETYPES, strict=True), reverse=True)
    return ", ".join(f"{name} {chance:.2f}" for chance, name in named if chance >= 0.05)


def goal_of(record: DecisionRecord, time: int) -> tuple[int, float]:
    """Return the goal's quantity and reservation price for a delivery day; 0 and 0 beyond the horizon."""
    goals, lead = record.goals, time - record.day
    quantities, prices = (goals.q_buy, goals.p_buy) if record.buying else (goals.q_sell, goals.p_sell)
    return (quantities[lead], prices[lead]) if 0 <= lead < len(quantities) else (0, 0.0)


def reason(record: DecisionRecord) -> str:
    """Return why a decision was taken, in one sentence."""
    kind = record.decision.kind
    if kind == "accept":
        return f"{_judged(record)}; it is among the offers that are worth most together"
    if kind == "end":
        return f"{_nothing_left(record)}, so the thread ends"
    opening = "it is ours to open" if record.received is None else _declined(record)
    return f"{opening}; {_proposal(record)}"


def _judged(record: DecisionRecord) -> str:
    price = record.received.price if record.received is not None else 0
    limit = 0.0 if record.reservation is None else record.reservation
    side = "at most" if record.buying else "at least"
    kept = price <= limit if record.buying else price >= limit
    return f"its price {price} {'keeps' if kept else 'misses'} our limit of {side} {limit:g}"


def _declined(record: DecisionRecord) -> str:
    offer, limit = record.received, record.reservation
    if offer is None:
        return "there is nothing to accept"
    if limit is None:
        return f"{offer_text(offer)} is outside the day's agenda"
    if (offer.price > limit) if record.buying else (offer.price < limit):
        return _judged(record)
    units, _ = goal_of(record, offer.time)
    if offer.quantity > units:
        return f"{offer.quantity} units are more than the goal of {units} for day {offer.time}"
    return "other offers are worth more together, or the same units are already on a table"


def _nothing_left(record: DecisionRecord) -> str:
    goals = record.goals.q_buy if record.buying else record.goals.q_sell
    verb = "buy" if record.buying else "sell"
    if not any(goals):
        return f"there is nothing to {verb}"
    if record.proposed is not None:
        return f"L1 leaves nothing of {offer_text(record.proposed)}"
    return f"nothing that may be offered here gains by it, though {sum(goals)} units are still to {verb}"


def _proposal(record: DecisionRecord) -> str:
    offer = record.decision.offer
    clipped = "" if record.proposed in (None, offer) else f" (L1 made it out of {offer_text(record.proposed)})"
    chance = "" if record.acceptance is None else f", taken with probability {record.acceptance:.2f}"
    chance += f", urgency {record.urgency:.2f}" if record.urgency else ""
    weight = "" if record.alpha is None else f", α {record.alpha:.2f}"
    return f"the best proposal is {offer_text(offer)}{clipped}{chance}{weight}"
