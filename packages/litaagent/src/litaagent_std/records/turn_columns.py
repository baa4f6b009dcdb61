"""The turns of a world: from the flat integers of a recorder to columns ordered by negotiation."""

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
    """All turns of a world, ordered by day and negotiation; arrays of shape [turns] and [turns, 7].

    Attributes:
        day: The day.
        index: Position in the day's order of turns.
        decided: Turns that the day had had when the turn was decided.
        rows: The rows as they were recorded: negotiation, round, seat, response, quantity, delivery day, unit price.
    """

    day: Ints32
    index: Ints32
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
        turns: All turns as they were recorded, flat.
        day_starts: Length of `turns` at the start of each day.
        decisions: Flat pairs: length of `turns` at a decision about all partners, and the seat that made it.
    """
    # [turns, 7] in the order of the world
    rows = as_rows(turns, TURN_WIDTH)
    starts = np.array([*day_starts, len(turns)], np.int32) // TURN_WIDTH
    # [days] turns per day; [turns] day of each turn, first turn of that day, and position in the world
    lengths = np.diff(starts)
    day = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    first = np.repeat(starts[:-1], lengths)
    position = np.arange(len(rows), dtype=np.int32)
    decided = _decided(rows[:, _SEAT], first, position, as_rows(decisions, _DECISION_WIDTH))
    order = order_of(day, rows[:, 0])
    return TurnColumns(day[order], (position - first)[order], (decided - first)[order], rows[order])


def order_of(day: Ints32, negotiation: Ints32) -> Indices:
    """Return the order by day, then by negotiation, otherwise as it was; numpy sorts 16 bits by radix."""
    inner = np.argsort(negotiation.astype(np.uint16), kind="stable")
    return inner[np.argsort(day.astype(np.uint16)[inner], kind="stable")]


def _decided(seat: Ints32, first: Ints32, position: Ints32, decisions: Ints32) -> Ints32:
    """Return how many turns had been taken when each turn was decided, counted from the first day.

    That is the turn's own position, unless its seat has decided about all its partners before, on the same day.
    """
    if not len(decisions):
        return position
    deciding, row = np.unique(decisions[:, 1], return_inverse=True)
    taken = decisions[:, 0] // TURN_WIDTH  # [decisions] turns taken before each
    # [deciding seats + 1, turns + 1] turns taken at the seat's latest decision up to each position
    latest = np.full((len(deciding) + 1, len(seat) + 1), -1, np.int32)  # the last row is of seats that never do
    latest[row, taken] = taken
    np.maximum.accumulate(latest, axis=1, out=latest)
    row_of = np.full(max(int(seat.max(initial=0)), int(deciding[-1])) + 1, len(deciding))
    row_of[deciding] = np.arange(len(deciding))
    # [turns] the latest decision of the turn's seat, unless that was on an earlier day
    decided = latest[row_of[seat], position]
    return np.where(decided >= first, decided, position)
