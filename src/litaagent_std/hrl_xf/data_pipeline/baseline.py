"""L1's baseline decision in every recorded situation, computed from mornings by the policy's own plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from litaagent_std.hrl_xf.data_pipeline.columns import ACCEPT, END, REJECT, Ints, WorldColumns, ints
from litaagent_std.policy.l1_thread import SidePlan, morning_plans, thread_baseline
from litaagent_std.policy.memory import Memory
from litaagent_std.policy.observation import Calendar, Observation, Offer, ThreadObservation
from litaagent_std.policy.parameters import Parameters, level_name
from litaagent_std.records.world import WorldRecord

__all__ = ["Baselines", "baselines", "plans_of"]

_OPS: Final = {"accept": ACCEPT, "reject": REJECT, "end": END}
_NOTHING: Final = (-1, -1, -1)


@dataclass(frozen=True, slots=True)
class Baselines:
    """The baseline's decision before each turn.

    Attributes:
        op: What it would do.
        counter: What it would offer, also where it accepts: quantity, lead, unit price; -1 where nothing.
    """

    op: Ints
    counter: Ints


def plans_of(
    record: WorldRecord, world: WorldColumns, seat: int, mornings: Sequence[Observation]
) -> list[tuple[SidePlan | None, SidePlan | None]]:
    """Returns the baseline's plans of buying and selling for every day of a factory."""
    first = mornings[0]
    parameters = Parameters().at(level_name(first.level, first.n_levels))
    memory = Memory(first.horizon + 1, assume_persistent=parameters.assume_persistent, rate=parameters.fill_rate)
    due = _due(record, world, seat)
    plans = []
    for obs in mornings:
        memory.start_day(obs)
        plans.append(morning_plans(obs, memory, parameters))
        bought, sold = due[obs.day].tolist()
        memory.note_calendar(Calendar((bought,), (0.0,), (sold,), (0.0,)))
    return plans


def _due(record: WorldRecord, world: WorldColumns, seat: int) -> Ints:
    """Returns the units bought and sold for each day with which the day goes into settlement, [day, side]."""
    table = record.tables["contracts"]
    buyer, seller = ints(table["buyer"]), ints(table["seller"])
    time, quantity = ints(table["time"]), ints(table["quantity"])
    partner = np.where(buyer == seat, seller, buyer)
    counts = ((buyer == seat) | (seller == seat)) & (time < world.n_days)
    counts[counts] &= ~world.bankrupt[time[counts], partner[counts]]
    due = np.zeros((world.n_days, 2), np.int64)
    np.add.at(due, (time[counts], (seller[counts] == seat).astype(np.int64)), quantity[counts])
    return due


def baselines(
    world: WorldColumns,
    seat: int,
    names: Sequence[str],
    plans: Sequence[tuple[SidePlan | None, SidePlan | None]],
    turns: Ints,
) -> Baselines:
    """Decides every turn of a factory as L1's baseline would.

    Args:
        world: The world's columns.
        seat: The factory.
        names: Ids of the factories.
        plans: The factory's plans by day.
        turns: The turns to decide.
    """
    op, counter = np.empty(len(turns), np.int64), np.empty((len(turns), 3), np.int64)
    calendar = Calendar((), (), (), ())
    for row, turn in enumerate(turns.tolist()):
        thread = int(world.thread[turn])
        buying = bool(world.buyer[thread] == seat)
        partner = names[int(world.seller[thread] if buying else world.buyer[thread])]
        day = int(world.day[thread])
        offer = None
        if world.answers[turn]:
            offer = Offer(*world.offers[world.first_offer[thread] + world.before[turn] - 1].tolist())
        opens = bool(world.caller[thread] == seat)
        known = ThreadObservation(
            day, partner, buying, int(world.round[turn]), world.n_rounds, 0.0, opens, offer, (), calendar
        )
        plan = plans[day][0 if buying else 1]
        assert plan is not None
        kind, made = thread_baseline(known, plan)
        op[row] = _OPS[kind]
        counter[row] = _NOTHING if made is None else (made.quantity, made.time - day, made.price)
    return Baselines(op, counter)
