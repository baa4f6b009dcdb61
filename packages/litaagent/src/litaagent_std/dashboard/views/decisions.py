"""Why our agent decided as it did in one seat: L2's goals, L1's interventions and L4's choices, from a replay."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from apexrl.charts import Picture
from litaagent_std.dashboard.decisions import Choice, SeatDecisions, Terms
from litaagent_std.dashboard.page import Filter, Link, Table, number
from litaagent_std.dashboard.replays import Asked, shared_replays
from litaagent_std.dashboard.views.decision_charts import decision_charts
from litaagent_std.dashboard.views.world import chosen_number
from litaagent_std.dashboard.warehouse import Row, Warehouse

__all__ = ["Reasons", "is_ours", "reasons_of"]

_OURS: Final = ("litaagent_std.agents.", "litaagent_std.hrl_xf.")  # today's module paths and older ones
_MOST_SEATS: Final = 200
_MOST_ROWS: Final = 400
_SEATS: Final = """
    SELECT f.world, f.factory, f.name, f.level, f.score, f.agent_type
    FROM factories f WHERE f.competitor = ? ORDER BY f.world, f.factory
"""


@dataclass(frozen=True, slots=True)
class _Seat:
    world: int
    seat: int
    row: Row

    @property
    def value(self) -> str:
        """Its name in an address."""
        return f"{self.world}-{self.seat}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reasons:
    """What the template ``reasons.html`` shows.

    Attributes:
        agent_type: Path of the agent's class.
        is_ours: Whether that class keeps a log of its reasons.
        seats: The choice of a seat.
        state: State of the replay: ``none``, ``running``, ``done`` or ``failed``; empty if no seat is chosen.
        why: Why it failed.
        replay_link: Starts the replay.
        difference: How the replay differs from the record; empty if it does not.
        facts: World, seat and layers.
        charts: Charts of the whole world.
        days: The choice of a day.
        day_charts: Charts of that day.
        decisions: Table of that day's decisions.
    """

    agent_type: str
    is_ours: bool
    seats: list[Filter] = field(default_factory=list)
    state: str = ""
    why: str = ""
    replay_link: Link | None = None
    difference: str = ""
    facts: list[tuple[str, str]] = field(default_factory=list)
    charts: list[Picture] = field(default_factory=list)
    days: list[Filter] = field(default_factory=list)
    day_charts: list[Picture] = field(default_factory=list)
    decisions: Table | None = None


def is_ours(agent_type: str) -> bool:
    """Whether a class keeps a log of its reasons, by its path."""
    return agent_type.startswith(_OURS)


def reasons_of(store: Warehouse, folder: Path, name: str, query: Mapping[str, str], *, wait: bool = False) -> Reasons:
    """Return what the page of an agent shows of its reasons.

    Args:
        store: The tournament's records.
        folder: The tournament's folder.
        name: Its name in addresses.
        query: The ``agent``; its ``seat`` as ``WORLD-SEAT``; ``replay`` to start the replay; and the ``day``.
        wait: Whether to wait for the replay, as a report does; the server never does.
    """
    agent = query.get("agent", "")
    seats = [_Seat(int(row["world"]), int(row["factory"]), row) for row in store.ask(_SEATS, ["factories"], [agent])]
    agent_type = str(seats[0].row["agent_type"]) if seats else ""
    if not is_ours(agent_type):
        return Reasons(agent_type=agent_type, is_ours=False)
    chosen = next((seat for seat in seats if seat.value == query.get("seat")), None)
    common: dict[str, Any] = {"agent_type": agent_type, "is_ours": True, "seats": [_seat_filter(seats, chosen)]}
    if chosen is None:
        return Reasons(**common)
    replay = _replay(store, folder, chosen, start=query.get("replay") == "yes", wait=wait)
    if replay.decisions is not None:
        return Reasons(**common, state="done", **_decided(replay.decisions, query))
    again = {"name": name, "agent": agent, "seat": query.get("seat", ""), "replay": "yes"}
    link = Link("replay this world", "/agent", again)
    return Reasons(**common, state=replay.state, why=replay.why, replay_link=link)


def _seat_filter(seats: Sequence[_Seat], chosen: _Seat | None) -> Filter:
    listed = list(seats[:_MOST_SEATS])
    if chosen is not None and chosen not in listed:
        listed.append(chosen)
    choices = [
        (
            seat.value,
            f"world {seat.world}, {seat.row['name']} (level {seat.row['level']}, score {seat.row['score']:.3f})",
        )
        for seat in listed
    ]
    return Filter("seat", "world and factory", choices, "" if chosen is None else chosen.value)


def _replay(store: Warehouse, folder: Path, chosen: _Seat, *, start: bool, wait: bool) -> Asked:
    replays = shared_replays()
    arguments = (folder, chosen.world, chosen.seat, _recorded_digest(store, chosen.world))
    if wait:
        return replays.wait(*arguments)
    return replays.ask(*arguments) if start else replays.look(*arguments)


def _recorded_digest(store: Warehouse, world: int) -> str:
    """Return the digest of a world's record: its setup, and every contract."""
    rows: list[Any] = store.ask("SELECT setup_digest FROM worlds", ["worlds"], world=world)
    rows += store.ask("SELECT * FROM contracts ORDER BY day, turn, negotiation", ["contracts"], world=world)
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def _decided(decisions: SeatDecisions, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of `Reasons` that a finished replay fills."""
    day = chosen_number(query, "day", decisions.n_days - 1)
    days = [(str(index), f"day {index}") for index in range(decisions.n_days)]
    charts, day_charts = decision_charts(decisions, day)
    return {
        "difference": _difference(decisions),
        "facts": _facts(decisions),
        "charts": charts,
        "days": [Filter("day", "day of decision", days, str(day))],
        "day_charts": day_charts,
        "decisions": _table(decisions, day),
    }


def _difference(decisions: SeatDecisions) -> str:
    if decisions.faithful:
        return ""
    if not decisions.same_world:
        return "the world is drawn otherwise than when it was recorded"
    return f"from day {decisions.first_difference} on, someone acts otherwise than in the record"


def _facts(decisions: SeatDecisions) -> list[tuple[str, str]]:
    l2, l3, l4 = decisions.layers
    return [
        ("world", str(decisions.world)),
        ("factory", decisions.agent),
        ("class", decisions.agent_class),
        ("L2, L3, L4", f"{l2}, {l3}, {l4}"),
        ("decisions", str(len(decisions.choices))),
        ("contracts", str(len(decisions.deals))),
        ("interventions of L1", str(sum(decisions.interventions))),
    ]


def _table(decisions: SeatDecisions, day: int) -> Table:
    own = [choice for choice in decisions.choices if choice.day == day]
    rows = [
        [
            str(choice.round),
            choice.partner,
            "buys" if choice.buying else "sells",
            _terms_text(choice.received),
            number(choice.limit, 1),
            _action_text(choice),
            f"from {_terms_text(choice.proposed)}" if choice.clipped else "–",
            number(choice.alpha, 2),
            choice.because,
        ]
        for choice in own[:_MOST_ROWS]
    ]
    more = f" (the first {_MOST_ROWS} of {len(own)})" if len(own) > _MOST_ROWS else ""
    columns = ["round", "partner", "it", "received", "limit", "did", "clipped by L1", "α", "because"]
    return Table(f"Decisions of day {day}{more}", columns, rows, n_texts=len(columns))


def _action_text(choice: Choice) -> str:
    return f"offers {_terms_text(choice.offer)}" if choice.kind == "reject" else choice.kind


def _terms_text(terms: Terms | None) -> str:
    return "–" if terms is None else f"{terms[0]} at {terms[2]} for day {terms[1]}"
