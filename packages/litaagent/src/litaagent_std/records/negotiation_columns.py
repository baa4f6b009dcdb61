"""The negotiations of a world: from the flat integers of a recorder to columns of turns, ends and contracts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from litaagent_std.policy.arrays import Bools, Indices, Ints, Ints32
from litaagent_std.world.events import (
    ACCEPT,
    AGREEMENT,
    END,
    ENDED,
    ERROR,
    LEAVE,
    NOTHING,
    ROW_WIDTH,
    TIMEDOUT,
)

__all__ = [
    "DECIDED",
    "FAILED",
    "REASONS",
    "EndColumns",
    "NegotiationColumns",
    "TurnColumns",
    "negotiation_columns",
]

DECIDED: Final = 6
"""Code of a row that is a decision about all partners; its third integer is the seat."""

FAILED: Final = 7
"""Code of a row that is an exception in a negotiation; its third integer is the seat."""

REASONS: Final = ("accepted", "ended", "no_offer", "left", "rounds_over", "error")
"""Why a negotiation ended."""

_ACCEPTED, _ENDED, _NO_OFFER, _LEFT, _ROUNDS_OVER, _ERROR = range(len(REASONS))
_SEAT, _CODE, _QUANTITY = 2, 3, 4

_REASON_OF: Final = np.full(LEAVE + 2, _NO_OFFER, np.int32)  # [response] -1 is the last element
_REASON_OF[[ACCEPT, END, LEAVE]] = _ACCEPTED, _ENDED, _LEFT


@dataclass(frozen=True, slots=True)
class TurnColumns:
    """All turns of a world, ordered by day and negotiation; arrays of shape [turns] and [turns, 7].

    Attributes:
        day: The day.
        index: Position in the day's order of turns.
        decided: Turns that the day had had when the turn was decided.
        rows: The rows as they were emitted: negotiation, round, seat, response, quantity, delivery day, unit price.
    """

    day: Ints32
    index: Ints32
    decided: Ints32
    rows: Ints32


@dataclass(frozen=True, slots=True)
class EndColumns:
    """All negotiations of a world, ordered by day and number; arrays of shape [negotiations] and [negotiations, …].

    Attributes:
        day: The day.
        rows: The rows as they were emitted: negotiation, rounds, caller, code, buyer, seller, product, […, 7].
        status: Index of `events.STATUSES`.
        reason: Index of `REASONS`.
        ended_by: The seat whose turn ended it, or `NOTHING`.
        terms: Quantity, delivery day and unit price of the agreement, or `NOTHING`, [negotiations, 3].
        n_turns: Turns of the negotiation.
        last_turn: Position of its latest turn in the day's order of turns; valid where it has turns.
        concluded: Indices of those that ended in agreement, in the order in which they did.
    """

    day: Ints32
    rows: Ints32
    status: Ints32
    reason: Ints32
    ended_by: Ints32
    terms: Ints32
    n_turns: Ints
    last_turn: Ints32
    concluded: Indices


@dataclass(frozen=True, slots=True)
class NegotiationColumns:
    """Turns and ends of a world's negotiations."""

    turns: TurnColumns
    ends: EndColumns


def negotiation_columns(days: Sequence[Ints32]) -> NegotiationColumns:
    """Put turns and ends in order.

    Args:
        days: Turns, ends, decisions and failures of each day in their order, flat rows of `events.ROW_WIDTH` integers.
    """
    # [rows, 7] in the order of the world; [days] number of rows at which each day starts
    rows = np.concatenate(days).reshape(-1, ROW_WIDTH)
    day_starts = np.cumsum([0, *(len(numbers) for numbers in days)])[:-1] // ROW_WIDTH
    code = rows[:, _CODE]
    is_turn = code <= LEAVE
    # [rows] turns of the world before each row; [days + 1] turns of the world before each day
    taken = np.cumsum(is_turn, dtype=np.int32) - is_turn
    starts = np.append(taken, is_turn.sum(dtype=np.int32))[np.append(day_starts, len(rows))]
    lengths = np.diff(starts)
    # [turns] in the order of the world: day, and turns of the world before that day
    day = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    first = np.repeat(starts[:-1], lengths)
    played = rows[is_turn]
    position = np.arange(len(played), dtype=np.int32)
    is_decision = code == DECIDED
    decided = _decided(played[:, _SEAT], first, position, rows[is_decision, _SEAT], taken[is_decision])
    order = _order(day, played[:, 0])
    turns = TurnColumns(day[order], (position - first)[order], (decided - first)[order], played[order])
    return NegotiationColumns(turns, _ends(rows, day_starts, taken, starts, played, turns))


def _order(day: Ints32, negotiation: Ints32) -> Indices:
    """Return the order by day, then by negotiation, otherwise as it was; numpy sorts 16 bits by radix."""
    inner = np.argsort(negotiation.astype(np.uint16), kind="stable")
    return inner[np.argsort(day.astype(np.uint16)[inner], kind="stable")]


def _decided(seat: Ints32, first: Ints32, position: Ints32, deciding: Ints32, taken: Ints32) -> Ints32:
    """Return how many turns had been taken when each turn was decided, counted from the first day.

    That is the turn's own position, unless its seat has decided about all its partners before, on the same day.

    Args:
        seat: Seat of each turn.
        first: Turns before the turn's day.
        position: Turns before the turn.
        deciding: Seat of each decision.
        taken: Turns before the decision.
    """
    if not len(deciding):
        return position
    seats, row = np.unique(deciding, return_inverse=True)
    # [deciding seats + 1, turns + 1] turns taken at the seat's latest decision up to each position
    latest = np.full((len(seats) + 1, len(seat) + 1), -1, np.int32)  # the last row is of seats that never do
    latest[row, taken] = taken
    np.maximum.accumulate(latest, axis=1, out=latest)
    row_of = np.full(max(int(seat.max(initial=0)), int(seats[-1])) + 1, len(seats))
    row_of[seats] = np.arange(len(seats))
    # [turns] the latest decision of the turn's seat, unless that was on an earlier day
    decided = latest[row_of[seat], position]
    return np.where(decided >= first, decided, position)


def _ends(
    rows: Ints32, day_starts: Ints, taken: Ints32, starts: Ints32, played: Ints32, turns: TurnColumns
) -> EndColumns:
    at = np.flatnonzero(rows[:, _CODE] >= ENDED)  # [ends] rows in the order of the world
    day = np.searchsorted(day_starts, at, "right").astype(np.int32) - 1
    order = _order(day, rows[at, 0])
    at, day, ended = at[order], day[order], rows[at[order]]
    status = ended[:, _CODE] - ENDED
    reason, ended_by = _causes(rows, at, ended, status, taken[at], starts[day], played)
    # [ends + 1] boundaries of the negotiations among the ordered turns
    keys = turns.day.astype(np.int64) << 32 | turns.rows[:, 0]
    wanted = day.astype(np.int64) << 32 | ended[:, 0]
    begin, stop = np.searchsorted(keys, wanted, "left"), np.searchsorted(keys, wanted, "right")
    # [turns + 1] latest turn with an offer up to each; the last element stands for none
    offering = np.where(turns.rows[:, _QUANTITY] == NOTHING, -1, np.arange(len(keys)))
    latest = np.append(np.maximum.accumulate(offering) if len(keys) else offering, -1)
    terms = np.append(turns.rows, np.full((1, ROW_WIDTH), NOTHING, np.int32), axis=0)[latest[stop - 1], _QUANTITY:]
    agreed = status == AGREEMENT
    concluded = np.flatnonzero(agreed)
    return EndColumns(
        day=day,
        rows=ended,
        status=status,
        reason=reason,
        ended_by=ended_by,
        terms=np.where(agreed[:, None], terms, NOTHING),
        n_turns=stop - begin,
        last_turn=np.append(turns.index, NOTHING)[stop - 1],
        concluded=concluded[np.argsort(at[concluded])],
    )


def _causes(
    rows: Ints32, at: Indices, ended: Ints32, status: Ints32, taken: Ints32, first: Ints32, played: Ints32
) -> tuple[Ints32, Ints32]:
    """Return why each negotiation ended, and by which seat: the latest turn ended it, if that is one without an offer.

    Args:
        rows: All rows.
        at: Which of them are the ends.
        ended: These rows.
        status: How the negotiations ended.
        taken: Turns of the world before each end.
        first: Turns of the world before its day.
        played: All turns in the order of the world.
    """
    none = np.full((1, ROW_WIDTH), NOTHING, np.int32)
    latest = np.append(played, none, axis=0)[taken - 1]  # [ends, 7]
    silent: Bools = (taken > first) & (latest[:, 0] == ended[:, 0]) & (latest[:, -1] == NOTHING)
    reason = np.where(silent, _REASON_OF[latest[:, _CODE]], _NO_OFFER)
    ended_by = np.where(silent, latest[:, _SEAT], ended[:, _SEAT])  # else nothing was ever offered: the caller
    over, failure = status == TIMEDOUT, status == ERROR
    reason[over], ended_by[over] = _ROUNDS_OVER, NOTHING
    # the latest exception in a negotiation before the end
    failing = np.flatnonzero(rows[:, _CODE] == FAILED)
    seat = np.append(rows[failing, _SEAT], NOTHING)[np.searchsorted(failing, at) - 1]
    reason[failure], ended_by[failure] = _ERROR, seat[failure]
    return reason, ended_by
