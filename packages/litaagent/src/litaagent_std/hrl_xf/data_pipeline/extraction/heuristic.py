"""What our heuristic agent would have done in a factory's place: the base of residuals, and L1's baseline.

The agent's brain is folded over the record in the order of play. It sees what the factory saw and remembers what the
factory did, so its decision at every turn is that of our agent with the same history. The fold of our own agent's
record gives its own decisions, up to the order in which simultaneous offers came, which the record does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from litaagent_std.policy.arrays import Floats32, Ints, true_rows
from litaagent_std.policy.brain import BatchBrain
from litaagent_std.policy.columns import BUY, SELL, CalendarBatch, ObservationBatch, ThreadBatch, ranks
from litaagent_std.policy.l1.safety import bounds
from litaagent_std.policy.l1.thread import DayPlan, day_start_plan
from litaagent_std.policy.l2.heuristic import heuristic_goals
from litaagent_std.policy.l2.residual import goal_base
from litaagent_std.policy.l3.learned import base_decisions
from litaagent_std.policy.layers import Layers
from litaagent_std.policy.parameters import ParameterColumns, Parameters
from litaagent_std.policy.partners.types import shipped_types
from litaagent_std.policy.plan import GoalsBatch, PlanBatch
from litaagent_std.records.columns import ACCEPT, REJECT, WorldColumns, ints
from litaagent_std.records.world import WorldRecord

__all__ = ["Heuristic", "History", "fold_heuristic"]


@dataclass(frozen=True, slots=True, eq=False)
class Heuristic:
    """The heuristic agent on B days and M turns of some factories.

    Attributes:
        goals: L2's goals of the days' starts by bucket, ``[B, 7·buckets + 1]``; see `policy.l2.residual.goal_base`.
        plans: L1's plans of the days, B rows.
        parameters: The parameters, B rows.
        op: Operation at each turn, ``[M]``.
        offer: Counter-offer at each turn: quantity, lead and unit price, ``[M, 3]``; see
            `policy.l3.learned.base_decisions`.
    """

    goals: Floats32
    plans: DayPlan
    parameters: ParameterColumns
    op: Ints
    offer: Ints


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """What some factories of a world knew and did.

    Attributes:
        record: The world.
        seats: The factories.
        obs: Their observations, as `WorldDays.batch` gives them, B rows.
        threads: What they knew before their turns (`records.threads.recorded_threads`), M rows.
        turns: The rows of these turns in the table ``turns``, ``[M]``.
    """

    record: WorldRecord
    seats: Sequence[int]
    obs: ObservationBatch
    threads: ThreadBatch
    turns: Ints

    @property
    def n_days(self) -> int:
        """Days of the world."""
        return self.record.days.n_days


def fold_heuristic(histories: Sequence[History]) -> list[Heuristic]:
    """Fold the heuristic agent over all days of some factories of worlds, those of all worlds as one batch.

    A batch decides as its members alone, so that a world's result does not depend on the worlds beside it.
    """
    n = sum(len(history.seats) for history in histories)
    n_days = np.repeat([history.n_days for history in histories], [len(history.seats) for history in histories])
    obs = ObservationBatch.joined([history.obs for history in histories])
    first = np.cumsum(n_days) - n_days  # [factory] row of its first day
    brain = BatchBrain(obs.take(first), [Parameters()] * n, Layers(), types=shipped_types())
    due = np.zeros((n, int(n_days.max()), 2), np.int64)  # [factory, day, side]
    owners = [(history, seat) for history in histories for seat in history.seats]
    for index, (history, seat) in enumerate(owners):
        due[index, : history.n_days] = _due(history.record, history.record.columns, seat)
    moments = _Moments(histories)
    op, offer = np.zeros(len(moments), np.int64), np.zeros((len(moments), 3), np.int64)
    plans, goals = [], []
    for day in range(due.shape[1]):
        here = true_rows(day < n_days)
        today = obs.take(first + np.minimum(day, n_days - 1))  # the last day again of worlds that are over
        brain.start_day(today.take(here), here)
        limits = bounds(today, today.calendar, brain.memory.now.persistent)
        goals.append(heuristic_goals(today, today.calendar, limits, brain.memory.now, brain.parameters))
        plans.append(day_start_plan(today, limits, goals[-1]))
        for rows, here_now, calendar in moments.of_day(brain, today, day):
            batch = moments.threads(rows, here_now)
            plan = brain.decide(batch, calendar, here_now, acted=moments.acted(rows))
            side = batch.selling.astype(np.int64)
            agenda, now = today.agenda[here_now[batch.seat], side], today.day[here_now[batch.seat]]
            op[rows], offer[rows] = base_decisions(plan, batch.offer, agenda, now, selling=batch.selling)
        moments.end_day(brain)
        brain.memory.note_due(due[here, day, BUY], due[here, day, SELL], here)
    # [B] rows of all factories' days in the order of the observations: each entry of a list holds one day of all
    at = np.concatenate([np.arange(days) * n + seat for seat, days in enumerate(n_days.tolist())])
    goals_of, plan_of = GoalsBatch.joined(goals).take(at), DayPlan.joined(plans).take(at)
    parameters = brain.parameters.take(np.repeat(np.arange(n), n_days))
    folded, day_row, row = [], 0, 0
    for history in histories:
        days, turns = slice(day_row, day_row + len(history.obs)), slice(row, row + len(history.turns))
        day_row, row = days.stop, turns.stop
        base = goal_base(goals_of.take(days), history.obs, history.record.columns.horizon)
        own = parameters.take(np.arange(days.start, days.stop))
        folded.append(Heuristic(base, plan_of.take(days), own, op[turns], offer[turns]))
    return folded


class _Moments:
    """The moments at which factories of worlds decided, day by day, with what had happened before.

    Args:
        histories: What they knew and did, M turns together.
    """

    def __init__(self, histories: Sequence[History]) -> None:
        seats, days, decided, orders, acts, ends = [], [], [], [], [], []
        seat = turn = 0
        for history in histories:
            record, threads = history.record, history.threads
            position, known = (ints(record.tables["turns"][name]) for name in ("turn", "decided"))
            seats.append(threads.seat // history.n_days + seat)
            days.append(threads.seat % history.n_days)
            decided.append(known[history.turns])
            orders.append(_asked(position[history.turns], threads, decided[-1]) + turn)
            acts.append(_acts(record.columns, history.turns))
            ends.append(_ends(record, history.seats, position))
            ends[-1][:, _SEAT] += seat
            seat, turn = seat + len(history.seats), turn + len(history.turns)
        self._seat, self._day, self._decided = (np.concatenate(parts) for parts in (seats, days, decided))
        self._order, self._acted = np.concatenate(orders), PlanBatch.joined(acts)
        self._threads = ThreadBatch.joined([history.threads for history in histories])
        self._ends = self._late = np.concatenate(ends)

    def __len__(self) -> int:
        return len(self._seat)

    def threads(self, rows: Ints, here: Ints) -> ThreadBatch:
        """Return threads before turns; their seats are indices of the factories `here`."""
        batch = self._threads.take(rows)
        batch.seat = np.searchsorted(here, self._seat[rows])
        return batch

    def acted(self, rows: Ints) -> PlanBatch:
        """Return what was done at turns."""
        return self._acted.take(rows)

    def of_day(
        self, brain: BatchBrain, today: ObservationBatch, day: int
    ) -> Iterator[tuple[Ints, Ints, CalendarBatch]]:
        """Yield the turns that factories decide at the same moment of theirs, these factories and their calendars.

        The brain is notified of the threads that ended before.
        """
        rows = self._order[self._day[self._order] == day]  # by factory, then in the order of play
        self._late = ends = self._ends[self._ends[:, _DAY] == day]
        if not len(rows):
            return
        seat, decided = self._seat[rows], self._decided[rows]
        fresh = np.concatenate(([True], (seat[1:] != seat[:-1]) | (decided[1:] != decided[:-1])))
        moment = np.cumsum(fresh) - 1  # [rows] number of the moment
        rank = ranks(seat[fresh])[moment]  # [rows] number of the moment among those of its factory
        told = np.zeros(len(ends), np.bool_)
        calendar = today.calendar.take(np.arange(len(today)))  # copies, to which the day's deals are added
        for step in range(int(rank.max()) + 1):
            some = true_rows(rank == step)
            here, index = np.unique(seat[some], return_index=True)
            until = np.zeros(len(today), np.int64)
            until[here] = decided[some][index]
            late = ~told & np.isin(ends[:, _SEAT], here) & (ends[:, _TURN] < until[ends[:, _SEAT]])
            _notify(brain, calendar, ends[late])
            told |= late
            self._late = ends[~told]
            yield rows[some], here, calendar.take(here)

    def end_day(self, brain: BatchBrain) -> None:
        """Notify the brain of the threads that ended after the last decision of their factory."""
        _notify(brain, None, self._late)


_DAY, _TURN, _SEAT, _PARTNER, _SELLING, _QUANTITY, _TIME, _PRICE = range(8)


def _notify(brain: BatchBrain, calendar: CalendarBatch | None, ends: Ints) -> None:
    """Notify a brain of the ends of threads ``[E, 8]``, and add their deals to the calendar."""
    for selling, side in enumerate(brain.sides):
        own = ends[ends[:, _SELLING] == selling]
        failed = own[:, _QUANTITY] < 0
        if failed.any():
            side.on_failures(own[failed, _SEAT], own[failed, _PARTNER])
        deals = own[~failed]
        if not len(deals):
            continue
        side.on_agreements(deals[:, _SEAT], deals[:, _PARTNER], deals[:, _QUANTITY:])
        if calendar is not None:
            units, value = (calendar.sold, calendar.sold_value) if selling else (calendar.bought, calendar.bought_value)
            lead = deals[:, _TIME] - deals[:, _DAY]
            deals, lead = deals[lead < units.shape[1]], lead[lead < units.shape[1]]
            np.add.at(units, (deals[:, _SEAT], lead), deals[:, _QUANTITY])
            np.add.at(value, (deals[:, _SEAT], lead), deals[:, _QUANTITY] * deals[:, _PRICE])


def _asked(position: Ints, threads: ThreadBatch, decided: Ints) -> Ints:
    """Return turns by day and factory, those of one decision in the order in which the factory was asked.

    An agent that decides about all its partners together collects their offers; the last one makes it decide, and is
    answered first, the others are answered in the order in which they came. Purchases come before sales, as in play.

    Args:
        position: Position of each turn in its day, ``[M]``.
        threads: The threads before the turns.
        decided: Turns of the day before the decision, ``[M]``.
    """
    played = np.lexsort((position, decided, threads.seat))
    seat, moment = threads.seat[played], decided[played]
    first = np.ones(len(played), np.bool_)  # [M] whether a turn is the first of its decision
    first[1:] = (seat[1:] != seat[:-1]) | (moment[1:] != moment[:-1])
    last_asked = np.zeros(len(played), np.bool_)
    last_asked[played[first]] = True
    last_asked &= threads.answers
    return np.lexsort((position, last_asked, threads.selling, decided, threads.seat))


def _acts(world: WorldColumns, turns: Ints) -> PlanBatch:
    """Return what was done at turns."""
    op = world.op[turns]
    offers = world.offers if len(world.offers) else np.zeros((1, 3), np.int64)
    own = offers[np.minimum(world.own_offer[turns], len(offers) - 1)]
    return PlanBatch(op == ACCEPT, op == REJECT, np.where((op == REJECT)[:, None], own, 0))


def _ends(record: WorldRecord, seats: Sequence[int], position: Ints) -> Ints:
    """Return the ends of the factories' negotiations, ``[E, 8]``: day, last turn, factory, partner, side, agreement."""
    world, table, level = record.columns, record.tables["negotiations"], record.days.level
    last = np.full(len(world.day), -1)
    np.maximum.at(last, world.thread, position)
    agreed = np.stack([ints(table[name]) for name in ("quantity", "time", "unit_price")], axis=1)
    parts = []
    for index, seat in enumerate(seats):
        for side, own, other in ((BUY, world.buyer, world.seller), (SELL, world.seller, world.buyer)):
            threads = np.flatnonzero((own == seat) & (last >= 0))
            partner = other[threads] - np.searchsorted(level, level[other[threads]])
            facts = (world.day[threads], last[threads], np.full(len(threads), index), partner)
            parts.append(np.stack([*facts, np.full(len(threads), side), *agreed[threads].T], axis=1))
    return np.concatenate(parts).astype(np.int64)


def _due(record: WorldRecord, world: WorldColumns, seat: int) -> Ints:
    """Return the units bought and sold that are due on each day at settlement, [day, side]."""
    table = record.tables["contracts"]
    buyer, seller = ints(table["buyer"]), ints(table["seller"])
    time, quantity = ints(table["time"]), ints(table["quantity"])
    partner = np.where(buyer == seat, seller, buyer)
    valid = ((buyer == seat) | (seller == seat)) & (time < world.n_days)
    valid[valid] &= ~world.bankrupt[time[valid], partner[valid]]
    due = np.zeros((world.n_days, 2), np.int64)
    np.add.at(due, (time[valid], (seller[valid] == seat).astype(np.int64)), quantity[valid])
    return due
