"""Why our agent decided as it did in one seat: L2's goals, L1's interventions and L4's choices, from the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from apexrl.charts import Picture
from litaagent_std.dashboard.decisions import Choice, SeatDecisions, Terms, decisions_of
from litaagent_std.dashboard.page import Filter, Table, number
from litaagent_std.dashboard.views.decision_charts import decision_charts
from litaagent_std.dashboard.views.world import chosen_number
from litaagent_std.dashboard.warehouse import Row, Warehouse

__all__ = ["Reasons", "reasons_of"]

_MOST_SEATS: Final = 200
_MOST_ROWS: Final = 400
_SEATS: Final = """
    SELECT f.world, f.factory, f.name, f.level, f.score
    FROM factories f SEMI JOIN reason_days r ON r.world = f.world AND r.factory = f.factory
    WHERE f.competitor = ? ORDER BY f.world, f.factory
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
        seats: The choice of a seat; empty if the records hold no reasons of this agent.
        facts: World, seat and layers; empty if no seat is chosen.
        charts: Charts of the whole world.
        days: The choice of a day.
        day_charts: Charts of that day.
        decisions: Table of that day's decisions.
    """

    seats: list[Filter] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    charts: list[Picture] = field(default_factory=list)
    days: list[Filter] = field(default_factory=list)
    day_charts: list[Picture] = field(default_factory=list)
    decisions: Table | None = None


def reasons_of(store: Warehouse, query: Mapping[str, str]) -> Reasons:
    """Return what the page of an agent shows of its reasons.

    Args:
        store: The tournament's records.
        query: The ``agent``; its ``seat`` as ``WORLD-SEAT``; and the ``day``.
    """
    rows = store.ask(_SEATS, ["factories", "reason_days"], [query.get("agent", "")])
    seats = [_Seat(int(row["world"]), int(row["factory"]), row) for row in rows]
    if not seats:
        return Reasons()
    chosen = next((seat for seat in seats if seat.value == query.get("seat")), None)
    choice = [_seat_filter(seats, chosen)]
    decisions = None if chosen is None else decisions_of(store, chosen.world, chosen.seat)
    return Reasons(seats=choice) if decisions is None else Reasons(seats=choice, **_decided(decisions, query))


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


def _decided(decisions: SeatDecisions, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of `Reasons` that a chosen seat fills."""
    day = chosen_number(query, "day", decisions.n_days - 1)
    days = [(str(index), f"day {index}") for index in range(decisions.n_days)]
    charts, day_charts = decision_charts(decisions, day)
    return {
        "facts": _facts(decisions),
        "charts": charts,
        "days": [Filter("day", "day of decision", days, str(day))],
        "day_charts": day_charts,
        "decisions": _table(decisions, day),
    }


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
