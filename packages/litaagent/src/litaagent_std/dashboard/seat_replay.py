"""Plays a recorded world again to see what the layers of our agent decided in one seat.

The dashboard runs ``python -m litaagent_std.dashboard.seat_replay FOLDER WORLD SEAT OUTPUT`` in a process of its own,
because a world needs fixed hashing and takes up to minutes. A record is data and must not choose code to run,
so only agents that this project or the league ships are seated.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from apexrl.runs.atomic import write_bytes
from apexrl.runs.errors import UserFacingError
from litaagent_std.agents.explain import Replay, from_tournament, goal_of, reason
from litaagent_std.dashboard.decisions import Choice, Deal, Goal, SeatDecisions, Terms, decisions_text
from litaagent_std.policy.brain import Brain, DecisionRecord
from litaagent_std.policy.observation import Offer
from litaagent_std.records.manifest import Manifest
from litaagent_std.records.reader import RECORDS_FOLDER, WorldKey, open_records
from litaagent_std.records.recorder import Recorder, WorldFacts
from litaagent_std.records.world import WorldRecord
from litaagent_std.tournament.competitors.integer_offers import original_path
from litaagent_std.tournament.competitors.names import read_agent
from litaagent_std.tournament.competitors.registry import BUILT_IN, LITA_2025, all_paths
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing
from litaagent_std.world.reproducible.silence import silence

__all__ = ["ReplayRefusedError", "main", "replay_seat"]

_OURS: Final = ("litaagent_std.agents.", "litaagent_std.hrl_xf.")  # today's module paths and older ones
_COMPARED: Final = {"turns": ("day", "negotiation", "turn"), "contracts": ("day", "negotiation", "turn")}


class ReplayRefusedError(UserFacingError):
    """A world cannot be played again here."""


def replay_seat(folder: Path, world: int, seat: int) -> SeatDecisions:
    """Play a world of a tournament again, with the log of one seat on.

    Args:
        folder: The tournament's folder.
        world: The world.
        seat: The seat, one of ours.

    Raises:
        ReplayRefusedError: If the record seats an agent that is not shipped, or the seat is not ours.
    """
    _refuse_foreign(folder)
    recorded = open_records(folder).world(WorldKey(0, world))
    replay = from_tournament(folder, world)
    if seat not in replay.seats:
        raise ReplayRefusedError(
            f"seat {seat} of world {world} is not ours",
            "only LitaAgentHRL and agents derived from it keep a log of their reasons",
            f"ours are {', '.join(map(str, replay.seats)) or 'none'} in this world",
        )
    recorder = Recorder(replay.setup, _facts(recorded, world))
    brain, agent_class, interventions = _play(replay, seat, recorder)
    played = recorder.tables()
    return SeatDecisions(
        world=world,
        seat=seat,
        agent=recorded.names[seat],
        agent_class=agent_class,
        layers=(brain.layers.l2, brain.layers.l3, brain.layers.l4),
        n_days=replay.setup.n_days,
        first_difference=_first_difference(recorded.tables, played),
        same_world=recorded.facts["setup_digest"] == replay.recorded_digest,
        interventions=interventions,
        goals=_goals(brain.log),
        choices=tuple(map(_choice, brain.log)),
        deals=_deals(played["contracts"], recorded.names, seat, brain.log),
    )


def _refuse_foreign(folder: Path) -> None:
    competitors = Manifest.read(folder / RECORDS_FOLDER).source["played"]["competitors"]
    paths = [original_path(read_agent(text).path) for text in competitors]
    known = {*BUILT_IN.values(), *LITA_2025.values()}
    foreign = [path for path in paths if path not in known and not path.startswith(_OURS)]
    if any(path.startswith("scml_agents.") for path in foreign):
        shipped = set(all_paths())
        foreign = [path for path in foreign if path not in shipped]
    if foreign:
        raise ReplayRefusedError(
            f"this tournament seats {', '.join(repr(path) for path in foreign[:3])}",
            "a record is data: the dashboard runs only agents that this project, scml or scml-agents ship",
            "if you know that code, lita explain WORLD DAY PARTNER --source FOLDER replays the world with it",
        )


def _facts(recorded: WorldRecord, world: int) -> WorldFacts:
    row = recorded.facts
    competitors = tuple(factory["competitor"] for factory in recorded.factories)
    return WorldFacts(
        world, row["config"], row["run"], row["rotation"], row["config_seed"], competitors, row["inventory"]
    )


def _play(replay: Replay, seat: int, recorder: Recorder) -> tuple[Brain, str, tuple[int, ...]]:
    """Play the world; return the brain with its log, the class of the agent, and L1's interventions by day."""
    spec = replay.setup.agents[seat]
    logged = {seat: replace(spec, params={**spec.params, "keep_log": True})}
    world = FastWorld(replay.setup.with_agents(logged), [recorder], inventory=replay.inventory, defaults="native")
    agent = world.seats[seat].agent
    totals = [0]  # interventions of L1 up to the end of each day
    with silence():
        while world.step_day():
            totals.append(agent.brain.interventions)
    totals.append(agent.brain.interventions)
    by_day = tuple(late - early for early, late in pairwise(totals))
    return agent.brain, type(agent).__name__, by_day


def _first_difference(recorded: dict[str, pa.Table], played: dict[str, pa.Table]) -> int | None:
    """Return the first day on which anyone did something else than in the record."""
    days = []
    for name, order in _COMPARED.items():
        keys = [(key, "ascending") for key in order]
        before, now = recorded[name].sort_by(keys), played[name].sort_by(keys)
        if not before.equals(now):
            days += [_differing_day(before, now)]
    return min(days, default=None)


def _differing_day(before: pa.Table, now: pa.Table) -> int:
    """Return the day of the first row in which two ordered tables differ."""
    old, new = before.to_pylist(), now.to_pylist()
    for recorded, played in zip(old, new, strict=False):
        if recorded != played:
            return int(min(recorded["day"], played["day"]))
    return int(max(old, new, key=len)[min(len(old), len(new))]["day"])


def _goals(log: Sequence[DecisionRecord]) -> tuple[Goal, ...]:
    first: dict[tuple[int, bool], Goal] = {}
    for record in log:
        if (record.day, record.buying) not in first:
            goals = record.goals
            units, prices = (goals.q_buy, goals.p_buy) if record.buying else (goals.q_sell, goals.p_sell)
            first[record.day, record.buying] = Goal(
                day=record.day, buying=record.buying, units=tuple(map(int, units)), prices=tuple(map(float, prices))
            )
    return tuple(first.values())


def _choice(record: DecisionRecord) -> Choice:
    return Choice(
        day=record.day,
        round=record.round,
        partner=record.partner,
        buying=record.buying,
        received=_terms(record.received),
        kind=record.decision.kind,
        offer=_terms(record.decision.offer),
        proposed=_terms(record.proposed),
        limit=None if record.reservation is None else float(record.reservation),
        chance=None if record.acceptance is None else float(record.acceptance),
        alpha=None if record.alpha is None else float(record.alpha),
        because=reason(record),
    )


def _terms(offer: Offer | None) -> Terms | None:
    return None if offer is None else (int(offer.quantity), int(offer.time), int(offer.price))


def _deals(contracts: pa.Table, names: Sequence[str], seat: int, log: Sequence[DecisionRecord]) -> tuple[Deal, ...]:
    latest = {(record.day, record.partner): record for record in log}
    own = contracts.filter(pc.or_(pc.equal(contracts["buyer"], seat), pc.equal(contracts["seller"], seat)))
    deals = []
    for row in own.to_pylist():
        buying = row["buyer"] == seat
        partner = names[row["seller" if buying else "buyer"]]
        record = latest.get((row["day"], partner))
        deals.append(
            Deal(
                day=row["day"],
                buying=buying,
                partner=partner,
                quantity=row["quantity"],
                time=row["time"],
                price=row["unit_price"],
                goal_price=None if record is None else float(goal_of(record, row["time"])[1]),
            )
        )
    return tuple(deals)


def main(arguments: Sequence[str]) -> int:
    """Replay, and write the decisions; if it fails, the last line on standard error says why."""
    folder, world, seat, output = arguments
    try:
        write_bytes(Path(output), decisions_text(replay_seat(Path(folder), int(world), int(seat))))
    except UserFacingError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    restart_with_fixed_hashing()
    sys.exit(main(sys.argv[1:]))
