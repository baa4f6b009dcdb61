"""Why one seat of our agent did what it did: L2's goals, L1's interventions and L4's choices, from a replay."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from litaagent_std.dashboard.decisions import Choice, SeatDecisions, Terms
from litaagent_std.dashboard.page import Block, Facts, Filter, Filters, Link, Rows, Text, number
from litaagent_std.dashboard.replays import Asked, shared_replays
from litaagent_std.dashboard.views.decision_charts import decision_charts
from litaagent_std.dashboard.views.world import chosen_number
from litaagent_std.dashboard.warehouse import Row, Warehouse

__all__ = ["decision_blocks", "is_ours"]

_OURS: Final = "litaagent_std.hrl_xf."
_MOST_SEATS: Final = 200
_MOST_ROWS: Final = 400
_SEATS: Final = """
    SELECT f.world, f.factory, f.name, f.level, f.score, f.agent_type
    FROM factories f WHERE f.competitor = ? ORDER BY f.world, f.factory
"""
_HEADING: Final = "Why it did so: L2, L1 and L4 in one world"


@dataclass(frozen=True, slots=True)
class _Seat:
    world: int
    seat: int
    row: Row

    @property
    def value(self) -> str:
        """Its name in an address."""
        return f"{self.world}-{self.seat}"


def is_ours(agent_type: str) -> bool:
    """Whether a class keeps a log of its reasons, by its path."""
    return agent_type.startswith(_OURS)


def decision_blocks(
    store: Warehouse, folder: Path, name: str, query: Mapping[str, str], *, wait: bool = False
) -> tuple[list[Block], bool]:
    """Return what the page of an agent shows of its reasons, and whether more is to come.

    Args:
        store: The tournament's records.
        folder: The tournament's folder.
        name: Its name in addresses.
        query: The ``agent``; its ``seat`` as ``WORLD-SEAT``; ``replay`` to start the replay; and the ``day``.
        wait: Whether to wait for the replay, as a report does; a page never does.
    """
    seats = [
        _Seat(int(row["world"]), int(row["factory"]), row)
        for row in store.ask(_SEATS, ["factories"], [query.get("agent", "")])
    ]
    heading = Text(_HEADING, "heading")
    agent_type = str(seats[0].row["agent_type"]) if seats else ""
    if not is_ours(agent_type):
        return [heading, Text(_not_ours(agent_type), "note")], False
    chosen = next((one for one in seats if one.value == query.get("seat")), None)
    blocks: list[Block] = [heading, _intro(), Filters([_seat_filter(seats, chosen)])]
    if chosen is None:
        return blocks, False
    found = _found(store, folder, chosen, started=query.get("replay") == "yes", wait=wait)
    if found.decisions is None:
        return [*blocks, *_pending(found, name, query)], found.state == "running"
    return [*blocks, *_shown(found.decisions, query)], False


def _not_ours(agent_type: str) -> str:
    return (
        f"Its class {agent_type or '(unknown)'} is not ours: records hold what an agent did, not why, and only "
        "LitaAgentHRL and its variants can be asked again by a replay. For an agent of your own on our layers, "
        "lita explain WORLD DAY PARTNER --source FOLDER does it."
    )


def _intro() -> Text:
    return Text(
        "Records hold what an agent did. Why, a replay tells: the world is played again with the agent's log on, "
        "and compared with the record turn by turn. Choose one of its seats.",
        "note",
    )


def _seat_filter(seats: Sequence[_Seat], chosen: _Seat | None) -> Filter:
    listed = list(seats[:_MOST_SEATS])
    if chosen is not None and chosen not in listed:
        listed.append(chosen)
    choices = [
        (one.value, f"world {one.world}, {one.row['name']} (level {one.row['level']}, score {one.row['score']:.3f})")
        for one in listed
    ]
    return Filter("seat", "world and factory", choices, "" if chosen is None else chosen.value)


def _found(store: Warehouse, folder: Path, chosen: _Seat, *, started: bool, wait: bool) -> Asked:
    replays = shared_replays()
    arguments = (folder, chosen.world, chosen.seat, _recorded_digest(store, chosen.world))
    if wait:
        return replays.wait(*arguments)
    return replays.ask(*arguments) if started else replays.look(*arguments)


def _recorded_digest(store: Warehouse, world: int) -> str:
    """Digest of what the record says of a world: how it was set up, and every contract of it."""
    rows: list[Any] = store.ask("SELECT setup_digest FROM worlds", ["worlds"], world=world)
    rows += store.ask("SELECT * FROM contracts ORDER BY day, turn, negotiation", ["contracts"], world=world)
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def _pending(found: Asked, name: str, query: Mapping[str, str]) -> list[Block]:
    if found.state == "running":
        return [Text("The world is being played again. This page shows the result as soon as it is there.", "warning")]
    if found.state == "failed":
        return [Text(f"The world could not be played again: {found.why}", "error")]
    again = {"name": name, "agent": query.get("agent", ""), "seat": query.get("seat", ""), "replay": "yes"}
    return [
        Facts([("not replayed yet", Link("replay this world", "/agent", again))]),
        Text("It takes about as long as the world took to play: seconds to a few minutes. The result is kept.", "note"),
    ]


def _shown(decisions: SeatDecisions, query: Mapping[str, str]) -> list[Block]:
    day = chosen_number(query, "day", decisions.n_days - 1)
    days = [(str(one), f"day {one}") for one in range(decisions.n_days)]
    over, of_day = decision_charts(decisions, day)
    return [
        _verdict(decisions),
        _facts(decisions),
        *over,
        Filters([Filter("day", "day of decision", days, str(day))]),
        *of_day,
        _table(decisions, day),
    ]


def _verdict(decisions: SeatDecisions) -> Text:
    if decisions.faithful:
        return Text("The replay is the record, turn by turn: these are the reasons of what was recorded.", "note")
    if not decisions.same_world:
        what = "the world is drawn otherwise than when it was recorded"
    else:
        what = f"from day {decisions.first_difference} on, someone acts otherwise than in the record"
    return Text(
        f"The replay differs from the record: {what}. The code, the parameters or the weights of an agent have changed "
        "since then. What follows is what the present agent does in this world, not the reasons of what was recorded.",
        "warning",
    )


def _facts(decisions: SeatDecisions) -> Facts:
    l2, l3, l4 = decisions.layers
    return Facts(
        [
            ("world", str(decisions.world)),
            ("factory", decisions.agent),
            ("class", decisions.agent_class),
            ("L2, L3, L4", f"{l2}, {l3}, {l4}"),
            ("decisions", str(len(decisions.choices))),
            ("contracts", str(len(decisions.deals))),
            ("interventions of L1", str(sum(decisions.interventions))),
        ]
    )


def _table(decisions: SeatDecisions, day: int) -> Rows:
    own = [choice for choice in decisions.choices if choice.day == day]
    rows = [
        [
            str(one.round),
            one.partner,
            "buys" if one.buying else "sells",
            _told(one.received),
            number(one.limit, 1),
            _did(one),
            f"from {_told(one.proposed)}" if one.clipped else "–",
            number(one.alpha, 2),
            one.because,
        ]
        for one in own[:_MOST_ROWS]
    ]
    more = f" (the first {_MOST_ROWS} of {len(own)})" if len(own) > _MOST_ROWS else ""
    columns = ["round", "partner", "it", "received", "limit", "did", "clipped by L1", "α", "because"]
    return Rows(f"Decisions of day {day}{more}", columns, rows, n_texts=len(columns))


def _did(choice: Choice) -> str:
    return f"offers {_told(choice.offer)}" if choice.kind == "reject" else choice.kind


def _told(terms: Terms | None) -> str:
    return "–" if terms is None else f"{terms[0]} at {terms[2]} for day {terms[1]}"
