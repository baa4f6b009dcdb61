"""The turns of a world, from the flat numbers that a recorder heard to columns ordered by negotiation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from litaagent_std.policy.arrays import Indices, Ints, Ints32
from litaagent_std.records.assembly import as_rows

__all__ = ["TURN_WIDTH", "TurnColumns", "order_of", "turn_columns"]

TURN_WIDTH: Final = 7
_DECISION_WIDTH: Final = 2
_SEAT: Final = 2


@dataclass(frozen=True, slots=True)
class TurnColumns:
    """All turns of a world, ordered by day and negotiation; one array per fact.

    Attributes:
        day: The day.
        place: Place in the day's order of turns.
        decided: Turns that the day had had when the turn was decided.
        rows: The rows as they were heard: negotiation, round, seat, response, quantity, delivery day, unit price.
    """

    day: Ints32
    place: Ints32
    decided: Ints32
    rows: Ints32

    def counts(self, day: Ints32, negotiation: Ints32) -> Ints:
        """Return the number of turns of each negotiation; days and negotiations are in order."""
        keys = self.day.astype(np.int64) << 32 | self.rows[:, 0]
        wanted = day.astype(np.int64) << 32 | negotiation
        return np.searchsorted(keys, wanted, "right") - np.searchsorted(keys, wanted, "left")


def turn_columns(turns: list[int], day_starts: Sequence[int], decisions: list[int]) -> TurnColumns:
    """Put turns in order.

    Args:
        turns: All turns as they were heard, flat.
        day_starts: Length of `turns` in the morning of each day.
        decisions: Flat pairs: length of `turns` at a decision about all partners, and the seat that made it.
    """
    rows = as_rows(turns, TURN_WIDTH)
    starts = np.array([*day_starts, len(turns)], np.int32) // TURN_WIDTH
    lengths = np.diff(starts)
    day = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    morning = np.repeat(starts[:-1], lengths)
    place = np.arange(len(rows), dtype=np.int32)
    decided = _decided(rows[:, _SEAT], morning, place, as_rows(decisions, _DECISION_WIDTH))
    order = order_of(day, rows[:, 0])
    return TurnColumns(day[order], (place - morning)[order], (decided - morning)[order], rows[order])


def order_of(day: Ints32, negotiation: Ints32) -> Indices:
    """Return the order by day, then by negotiation, otherwise as it was; numpy sorts 16 bits by radix."""
    inner = np.argsort(negotiation.astype(np.uint16), kind="stable")
    return inner[np.argsort(day.astype(np.uint16)[inner], kind="stable")]


def _decided(seat: Ints32, morning: Ints32, place: Ints32, decisions: Ints32) -> Ints32:
    """Return how many turns had been taken when each turn was decided, counted from the first day.

    That is the turn's own place, unless its seat has decided about all its partners before, on the same day.
    """
    if not len(decisions):
        return place
    deciding, row = np.unique(decisions[:, 1], return_inverse=True)
    taken = decisions[:, 0] // TURN_WIDTH
    latest = np.full((len(deciding) + 1, len(seat) + 1), -1, np.int32)  # the last row is of seats that never do
    latest[row, taken] = taken
    np.maximum.accumulate(latest, axis=1, out=latest)
    row_of = np.full(max(int(seat.max(initial=0)), int(deciding[-1])) + 1, len(deciding))
    row_of[deciding] = np.arange(len(deciding))
    found = latest[row_of[seat], place]
    return np.where(found >= morning, found, place)
