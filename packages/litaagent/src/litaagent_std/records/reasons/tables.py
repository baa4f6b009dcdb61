"""Why our agent decided as it did: its log as tables of the record, and back.

A recorder that keeps reasons switches on the log of every brain in the world and takes it at the end of each day. The
tables are optional: `schema.REASON_TABLES` says what they hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from litaagent_std.policy.arrays import Floats, Ints
from litaagent_std.policy.brain import Brain, Decision, DecisionRecord
from litaagent_std.policy.observation import Offer
from litaagent_std.policy.plan import Bounds, Goals
from litaagent_std.records.assembly import from_rows
from litaagent_std.records.columns import REJECT, WorldColumns, ints
from litaagent_std.records.schema import REASON_TABLES
from litaagent_std.records.storage.segment import Tables

__all__ = ["TURN_REASONS", "ReasonLog", "SeatReasons", "seat_reasons", "turn_decisions", "turn_reasons"]

_KINDS: Final = ("accept", "reject", "end")
_GOALS: Final = ("q_buy", "p_buy", "q_sell", "p_sell", "hold", "unit_value", "u_buy", "u_sell")
_BOUNDS: Final = ("lines", "covered", "spare", "buy")
_NO_OFFER: Final = (None, None, None)

TURN_REASONS: Final = ("reservation", "acceptance", "alpha", "urgency", "log_probability")
"""Numbers of a decision that `turn_reasons` gives; see the table ``reasons``."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SeatReasons:
    """The reasons of one seat in one world.

    Attributes:
        layers: Which version of L2, L3 and L4 played.
        regimes: What the agent knew of the inventory rule, by day.
        interventions: How often L1 changed what the layers wanted, by day.
        decisions: Every decision in order.
    """

    layers: tuple[str, str, str]
    regimes: tuple[str, ...]
    interventions: tuple[int, ...]
    decisions: tuple[DecisionRecord, ...]


class ReasonLog:
    """Takes the logs of a world's brains day by day.

    Args:
        agents: The agents in seat order; those without a `Brain` have no reasons.
    """

    def __init__(self, agents: Sequence[object]) -> None:
        brains = {seat: getattr(agent, "brain", None) for seat, agent in enumerate(agents)}
        self._brains = {seat: brain for seat, brain in brains.items() if isinstance(brain, Brain)}
        self._interventions = dict.fromkeys(self._brains, 0)
        self._days: list[tuple[Any, ...]] = []
        self._goals: dict[tuple[int, int, Goals, Bounds], int] = {}  # their numbers
        self._decisions: list[tuple[Any, ...]] = []  # day, seat, partner's id, buying, then the other columns
        for brain in self._brains.values():
            brain.keep_log = True

    def take_day(self, day: int) -> None:
        """Take and clear the logs of a day that has ended."""
        for seat, brain in self._brains.items():
            total = brain.interventions
            layers, regime = brain.playing, brain.memory.regime.value
            self._days.append((day, seat, layers.l2, layers.l3, layers.l4, regime, total - self._interventions[seat]))
            self._interventions[seat] = total
            for record in brain.log:
                number = self._goals.setdefault((day, seat, record.goals, record.bounds), len(self._goals))
                self._decisions.append(_decision_row(seat, record, number))
            brain.log.clear()

    def tables(self, world: int, seats: Mapping[str, int], negotiations: Ints) -> dict[str, pa.Table]:
        """Return the tables.

        Args:
            world: Number of the world.
            seats: Seats by the factories' ids.
            negotiations: Day, number, buyer and seller of every negotiation of the world, [negotiations, 4].
        """
        numbers = {(day, buyer, seller): number for day, number, buyer, seller in negotiations.tolist()}
        decisions = []
        for day, seat, name, buying, *rest in self._decisions:
            partner = seats[name]
            pair = (seat, partner) if buying else (partner, seat)
            decisions.append((day, numbers[day, *pair], seat, partner, buying, *rest))
        goals = [
            (
                number,
                day,
                seat,
                *(getattr(goals, name) for name in _GOALS),
                *(getattr(bounds, name) for name in _BOUNDS),
            )
            for (day, seat, goals, bounds), number in self._goals.items()
        ]
        rows = {"reason_days": self._days, "reason_goals": goals, "reasons": decisions}
        return {name: from_rows(name, world, rows[name]) for name in REASON_TABLES}


def _values(item: object, names: Sequence[str]) -> list[Any]:
    return [getattr(item, name) for name in names]


def _decision_row(seat: int, record: DecisionRecord, goals: int) -> tuple[Any, ...]:
    decision = record.decision
    return (
        record.day,
        seat,
        record.partner,
        record.buying,
        record.round,
        goals,
        *(record.received or _NO_OFFER),
        _KINDS.index(decision.kind),
        *(decision.offer or _NO_OFFER),
        *(record.proposed or _NO_OFFER),
        record.reservation,
        record.acceptance,
        record.alpha,
        record.types,
        record.urgency,
        [(*offer, chance) for offer, chance in record.alternatives],
        getattr(record, "residual", None),
        getattr(record, "log_probability", None),
    )


def seat_reasons(tables: Mapping[str, Sequence[Row]], factory: int, names: Sequence[str]) -> SeatReasons | None:
    """Return the reasons of a seat; None if the record has none.

    Args:
        tables: Rows of one world by table; see `schema.REASON_TABLES`.
        factory: The seat.
        names: Ids of the world's factories, in seat order.
    """
    days = sorted((row for row in tables["reason_days"] if row["factory"] == factory), key=lambda row: row["day"])
    if not days:
        return None
    goals = {row["goals"]: _goals_and_bounds(row) for row in tables["reason_goals"] if row["factory"] == factory}
    own = [row for row in tables["reasons"] if row["factory"] == factory]
    return SeatReasons(
        layers=(days[0]["l2"], days[0]["l3"], days[0]["l4"]),
        regimes=tuple(row["regime"] for row in days),
        interventions=tuple(row["interventions"] for row in days),
        decisions=tuple(_decision_record(row, *goals[row["goals"]], names[row["partner"]]) for row in own),
    )


def turn_reasons(tables: Tables, world: WorldColumns) -> dict[str, Floats]:
    """Return `TURN_REASONS` of the decision behind each turn of a world, ``[turns]``; NaN where there is none.

    Args:
        tables: The world's tables.
        world: Its negotiations.
    """
    columns = {name: np.full(len(world.thread), np.nan) for name in TURN_REASONS}
    turns, rows = _decided_turns(tables, world)
    for name, values in columns.items():
        if len(turns):
            values[turns] = np.asarray(tables["reasons"][name].to_numpy(), np.float64)[rows]
    return columns


def turn_decisions(tables: Tables, world: WorldColumns) -> tuple[Ints, Ints]:
    """Return the decision that the reasons name for each turn: operations ``[turns]``, counter-offers ``[turns, 3]``.

    An agent whose decisions are labelled by a teacher does something else than its reasons say. Both are -1 where
    there is none; a counter-offer is quantity, delivery day and unit price.

    Args:
        tables: The world's tables.
        world: Its negotiations.
    """
    op, offer = np.full(len(world.thread), -1), np.full((len(world.thread), 3), -1)
    turns, rows = _decided_turns(tables, world)
    if len(turns):
        table = tables["reasons"]
        op[turns] = ints(table["decision"])[rows]
        for column, name in enumerate(("quantity", "time", "unit_price")):
            offer[turns, column] = np.nan_to_num(np.asarray(table[name].to_numpy(), np.float64), nan=-1.0)[rows]
        offer[op != REJECT] = -1
    return op, offer


def _decided_turns(tables: Tables, world: WorldColumns) -> tuple[Ints, Ints]:
    """Return the turns that have reasons, and the rows of these."""
    nothing = np.zeros(0, np.int64)
    if "reasons" not in tables or not len(world.thread):
        return nothing, nothing
    table, n = tables["reasons"], tables["negotiations"]
    # number of the negotiation in its world, from day and number within the day
    known = ints(n["day"]) << 32 | ints(n["negotiation"])
    thread = np.searchsorted(known, ints(table["day"]) << 32 | ints(table["negotiation"]))
    # an agent decides once per negotiation and round
    seats, rounds = int(world.factory.max()) + 1, world.n_rounds + 1
    turn = (world.thread * seats + world.factory) * rounds + world.round
    decided = (thread * seats + ints(table["factory"])) * rounds + ints(table["round"])
    order = np.argsort(turn)
    found = order[np.minimum(np.searchsorted(turn[order], decided), len(turn) - 1)]
    taken = turn[found] == decided  # a decision whose negotiation ended before has no turn
    return found[taken], np.flatnonzero(taken)


def _goals_and_bounds(row: Row) -> tuple[Goals, Bounds]:
    goals, bounds = ([_plain(row[name]) for name in names] for names in (_GOALS, _BOUNDS))
    return Goals(*goals), Bounds(*bounds)


def _plain(value: Any) -> Any:  # noqa: ANN401 - a number, or a list of numbers
    return tuple(value) if isinstance(value, list) else value


def _decision_record(row: Row, goals: Goals, bounds: Bounds, partner: str) -> DecisionRecord:
    alternatives = tuple(
        (Offer(other["quantity"], other["time"], other["unit_price"]), other["probability"])
        for other in row["alternatives"]
    )
    return DecisionRecord(
        day=row["day"],
        round=row["round"],
        partner=partner,
        buying=row["buying"],
        received=_offer(row, "received_"),
        decision=Decision(_KINDS[row["decision"]], _offer(row, "")),
        proposed=_offer(row, "proposed_"),
        goals=goals,
        bounds=bounds,
        reservation=row["reservation"],
        acceptance=row["acceptance"],
        alternatives=alternatives,
        alpha=row["alpha"],
        types=_plain(row["types"]),
        urgency=row["urgency"],
    )


def _offer(row: Row, prefix: str) -> Offer | None:
    if row[f"{prefix}quantity"] is None:
        return None
    return Offer(row[f"{prefix}quantity"], row[f"{prefix}time"], row[f"{prefix}unit_price"])
