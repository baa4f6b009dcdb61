"""One world's record: its tables, its negotiations, and the observations and reasons of its factories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from litaagent_std.policy.observation import Observation, Offer, ThreadObservation
from litaagent_std.records.columns import WorldColumns
from litaagent_std.records.observations import WorldDays
from litaagent_std.records.reasons import SeatReasons, seat_reasons
from litaagent_std.records.schema import REASON_TABLES
from litaagent_std.records.threads import decisions

__all__ = ["Negotiation", "TurnRow", "WorldRecord"]

_RESPONSES = {0: "accepts", 1: "rejects", 2: "ends", 3: "does not answer", 5: "leaves"}


@dataclass(frozen=True, slots=True)
class TurnRow:
    """One turn of a negotiation; see the table ``turns``."""

    turn: int
    round: int
    relative_time: float
    factory: int
    response: int | None
    offer: Offer | None


@dataclass(frozen=True, slots=True)
class Negotiation:
    """A negotiation from its first turn to its end; see the table ``negotiations``."""

    day: int
    index: int
    buyer: str
    seller: str
    caller: str
    product: int
    rounds: int
    status: str
    reason: str
    ended_by: str | None
    agreement: Offer | None
    turns: tuple[TurnRow, ...]
    names: tuple[str, ...]

    @property
    def trace(self) -> list[tuple[int, str, Offer]]:
        """The offers as (round, proposer, offer)."""
        return [(t.round, self.names[t.factory], t.offer) for t in self.turns if t.offer is not None]

    def __str__(self) -> str:
        lines = [
            f"day {self.day}, negotiation {self.index}: {self.seller} sells product {self.product} to {self.buyer}; "
            f"{self.caller} proposes first"
        ]
        for turn in self.turns:
            parts = [] if turn.response is None else [_RESPONSES[turn.response]]
            if turn.offer is not None:
                parts.append(f"offers {turn.offer.quantity} at {turn.offer.price} for day {turn.offer.time}")
            lines.append(f"  round {turn.round:2}  {self.names[turn.factory]:<8} {' and '.join(parts)}")
        by = "" if self.ended_by is None else f" by {self.ended_by}"
        lines.append(f"  {self.status} after {self.rounds} rounds ({self.reason}{by})")
        return "\n".join(lines)


class WorldRecord:
    """A finished world.

    Args:
        tables: All its tables.
    """

    def __init__(self, tables: dict[str, pa.Table]) -> None:
        self.tables = tables

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Its row of the table ``worlds``."""
        facts: dict[str, Any] = self.tables["worlds"].to_pylist()[0]
        return facts

    @cached_property
    def factories(self) -> list[dict[str, Any]]:
        """Its rows of the table ``factories``, in seat order."""
        rows: list[dict[str, Any]] = self.tables["factories"].to_pylist()
        return rows

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Ids of the factories, in seat order."""
        return tuple(row["name"] for row in self.factories)

    @cached_property
    def columns(self) -> WorldColumns:
        """Its negotiations and turns as arrays."""
        return WorldColumns.of(self.tables)

    @cached_property
    def days(self) -> WorldDays:
        """What its factories saw at the start of their days, as arrays."""
        return WorldDays.of(self.tables)

    def observations(self, factory: int) -> list[Observation]:
        """Return a factory's days, each before its negotiations, equal to what its agent could see."""
        return self.days.observations(factory)

    def decisions(self, factory: int) -> Iterator[tuple[ThreadObservation, TurnRow]]:
        """Every turn of a factory with what it knew of that thread before it, in the order of play.

        The calendar in an observation holds the contracts that were concluded before the turn was decided. A
        synchronous agent decides about all its partners together, often before other turns are taken.
        """
        turns = self.tables["turns"].to_pylist()
        for thread, row in decisions(self.tables, self.columns, self.days, factory):
            yield thread, _turn(turns[row])

    def reasons(self, factory: int) -> SeatReasons | None:
        """Return why a factory's agent decided as it did; None if the record does not say."""
        if not REASON_TABLES.keys() <= self.tables.keys():
            return None
        own = {name: self.tables[name].filter(pc.field("factory") == factory).to_pylist() for name in REASON_TABLES}
        return seat_reasons(own, factory, self.names)

    def negotiation(self, day: int, index: int) -> Negotiation:
        """One negotiation with all its turns.

        Raises:
            KeyError: If there was no such negotiation.
        """
        rows = _where(self.tables["negotiations"], day, index).to_pylist()
        if not rows:
            raise KeyError(f"there was no negotiation {index} on day {day}")
        [row] = rows
        turns = _where(self.tables["turns"], day, index).to_pylist()
        names = self.names
        agreed = row["quantity"] is not None
        return Negotiation(
            day=day,
            index=index,
            buyer=names[row["buyer"]],
            seller=names[row["seller"]],
            caller=names[row["caller"]],
            product=row["product"],
            rounds=row["rounds"],
            status=row["status"],
            reason=row["reason"],
            ended_by=None if row["ended_by"] is None else names[row["ended_by"]],
            agreement=Offer(row["quantity"], row["time"], row["unit_price"]) if agreed else None,
            turns=tuple(_turn(turn) for turn in turns),
            names=names,
        )


def _where(table: pa.Table, day: int, index: int) -> pa.Table:
    return table.filter((pc.field("day") == day) & (pc.field("negotiation") == index))


def _turn(row: dict[str, Any]) -> TurnRow:
    offer = None if row["quantity"] is None else Offer(row["quantity"], row["time"], row["unit_price"])
    return TurnRow(row["turn"], row["round"], row["relative_time"], row["factory"], row["response"], offer)
