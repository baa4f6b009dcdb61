"""L1's plans of recorded days: the policy's own functions, folded over the days of a world in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from litaagent_std.policy.arrays import Ints
from litaagent_std.policy.columns import ObservationBatch
from litaagent_std.policy.l1.safety import bounds
from litaagent_std.policy.l1.thread import DayPlan, day_start_plan
from litaagent_std.policy.l2.heuristic import heuristic_goals
from litaagent_std.policy.memory import Memory
from litaagent_std.policy.parameters import ParameterColumns, Parameters, level_name
from litaagent_std.records.columns import WorldColumns, ints
from litaagent_std.records.world import WorldRecord

__all__ = ["day_plans"]


def day_plans(record: WorldRecord, seats: Sequence[int], obs: ObservationBatch) -> tuple[DayPlan, ParameterColumns]:
    """Return the baseline's plans of all days of some factories, and the parameters that it plays with.

    Args:
        record: The world.
        seats: The factories.
        obs: Their observations, as `WorldDays.batch` gives them; the plans have the same rows.
    """
    n, n_days = len(seats), record.days.n_days
    first = np.arange(n) * n_days  # [factory] row of its first day
    levels = zip(obs.level[first].tolist(), obs.n_levels[first].tolist(), strict=True)
    parameters = ParameterColumns.of([Parameters().at(level_name(*level)) for level in levels])
    memory = Memory(n, obs.calendar.sold.shape[1], parameters)
    due = np.stack([_due(record, record.columns, seat) for seat in seats])  # [factory, day, side]
    plans = []
    for day in range(n_days):
        today = obs.take(first + day)
        memory.start_day(today)
        limits = bounds(today, today.calendar, memory.now.persistent)
        goals = heuristic_goals(today, today.calendar, limits, memory.now, parameters)
        plans.append(day_start_plan(today, limits, goals))
        memory.note_due(*due[:, day].T)
    columns = []
    for name in DayPlan.__slots__:
        by_day = np.stack([getattr(plan, name) for plan in plans], axis=1)  # [factory, day, …]
        columns.append(by_day.reshape(n * n_days, *by_day.shape[2:]))
    return DayPlan(*columns), parameters.take(np.repeat(np.arange(n), n_days))


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
