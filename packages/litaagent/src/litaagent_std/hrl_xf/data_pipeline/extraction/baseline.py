"""L1's baseline decision in every recorded situation, from the plans that the policy makes in the morning.

The plans are made by `policy.l1_thread.day_start_plans`. Deciding a turn from a plan is arithmetic, done here for all
turns of a factory at once; tests compare every turn with `policy.l1_thread.thread_baseline`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from litaagent_std.hrl_xf.data_pipeline.extraction.columns import ACCEPT, END, REJECT, WorldColumns, ints
from litaagent_std.policy.arrays import Bools, Floats, Ints
from litaagent_std.policy.l1.baseline import progress
from litaagent_std.policy.l1.thread import SidePlan, day_start_plans
from litaagent_std.policy.l2.heuristic import band_price
from litaagent_std.policy.memory import Memory
from litaagent_std.policy.observation import Calendar, Observation, ThreadObservation
from litaagent_std.policy.parameters import Parameters, level_name
from litaagent_std.records.world import WorldRecord

__all__ = ["Baselines", "baselines", "plans_of"]

Plans = tuple[SidePlan | None, SidePlan | None]
"""The plans of buying and of selling; None for a side that the level does not trade."""


@dataclass(frozen=True, slots=True)
class Baselines:
    """The baseline's decision before each turn.

    Attributes:
        op: What it would do.
        counter: What it would offer, also where it accepts or ends: quantity, lead, unit price.
    """

    op: Ints
    counter: Ints


def plans_of(record: WorldRecord, world: WorldColumns, seat: int, mornings: Sequence[Observation]) -> list[Plans]:
    """Return the baseline's plans of buying and selling for every day of a factory."""
    first = mornings[0]
    parameters = Parameters().at(level_name(first.level, first.n_levels))
    memory = Memory(first.horizon + 1, assume_persistent=parameters.assume_persistent, rate=parameters.fill_rate)
    due = _due(record, world, seat)
    plans = []
    for obs in mornings:
        memory.start_day(obs)
        plans.append(day_start_plans(obs, memory, parameters))
        bought, sold = due[obs.day].tolist()
        memory.note_calendar(Calendar((bought,), (0.0,), (sold,), (0.0,)))
    return plans


def _due(record: WorldRecord, world: WorldColumns, seat: int) -> Ints:
    """Return the units bought and sold for each day with which the day goes into settlement, [day, side]."""
    table = record.tables["contracts"]
    buyer, seller = ints(table["buyer"]), ints(table["seller"])
    time, quantity = ints(table["time"]), ints(table["quantity"])
    partner = np.where(buyer == seat, seller, buyer)
    counts = ((buyer == seat) | (seller == seat)) & (time < world.n_days)
    counts[counts] &= ~world.bankrupt[time[counts], partner[counts]]
    due = np.zeros((world.n_days, 2), np.int64)
    np.add.at(due, (time[counts], (seller[counts] == seat).astype(np.int64)), quantity[counts])
    return due


def baselines(world: WorldColumns, seat: int, names: Sequence[str], plans: Sequence[Plans], turns: Ints) -> Baselines:
    """Decides every turn of a factory as `policy.l1_thread.thread_baseline` does, all at once.

    Args:
        world: The world's columns.
        seat: The factory.
        names: Ids of the factories.
        plans: The factory's plans by day.
        turns: The turns to decide.
    """
    days = _Days.of(plans, {name: number for number, name in enumerate(names)}, world.horizon + 1)
    thread = world.thread[turns]
    buying = world.buyer[thread] == seat
    at = (world.day[thread], np.where(buying, 0, 1))
    partner = np.where(buying, world.seller[thread], world.buyer[thread])
    opens = (world.caller[thread] == seat).astype(np.int64)
    low, high = days.low[at], days.high[at]
    lead, quantity = days.lead[(*at, partner)], days.quantity[(*at, partner)]
    none = quantity < low[:, 0]
    lead, quantity = np.where(none, low[:, 1], lead), np.where(none, low[:, 0], quantity)
    powers = _powers(plans)
    conceded = [_conceded(*powers, world.n_rounds, proposing=proposing) for proposing in (False, True)]
    when = (at[1], opens, world.round[turns])
    price = _limit(days.start[at], days.end[(*at, lead)], conceded[1][when], buying)
    counter = np.stack([quantity, np.clip(lead, low[:, 1], high[:, 1]), np.clip(price, low[:, 2], high[:, 2])], axis=1)
    op = np.where(none, END, REJECT)
    answers = np.flatnonzero(world.answers[turns])
    if len(answers):
        offer = world.offers[world.received[turns[answers]]].copy()
        offer[:, 1] -= at[0][answers]
        legal = ((offer >= low[answers]) & (offer <= high[answers])).all(axis=1)
        there = (at[0][answers], at[1][answers], np.where(legal, offer[:, 1], 0))
        when_now = (at[1][answers], opens[answers], world.round[turns[answers]])
        limit = _limit(days.start[there[:2]], days.end[there], conceded[0][when_now], buying[answers])
        good = np.where(buying[answers], offer[:, 2] <= limit, offer[:, 2] >= limit)
        op[answers[legal & good & (offer[:, 0] <= days.room[there])]] = ACCEPT
    return Baselines(op, counter.astype(np.int64))


@dataclass(frozen=True, slots=True)
class _Days:
    """A factory's plans as arrays.

    Attributes:
        low: Least quantity, lead and price, [day, side, 3].
        high: Largest, [day, side, 3].
        start: Price that the concession starts from, [day, side].
        end: Price that it ends at, [day, side, lead].
        room: Most units to accept, [day, side, lead].
        lead: Lead of each partner's share, [day, side, seat].
        quantity: Its quantity, cut at what may be offered; 0 without a share, [day, side, seat].
    """

    low: Ints
    high: Ints
    start: Floats
    end: Floats
    room: Ints
    lead: Ints
    quantity: Ints

    @classmethod
    def of(cls, plans: Sequence[Plans], seats: Mapping[str, int], leads: int) -> _Days:
        n = len(plans)
        low, high = np.zeros((2, n, 2, 3), np.int64)
        start, end, room = np.zeros((n, 2)), np.zeros((n, 2, leads)), np.zeros((n, 2, leads), np.int64)
        lead, quantity = np.zeros((2, n, 2, len(seats)), np.int64)
        for day, sides in enumerate(plans):
            for side, plan in enumerate(sides):
                if plan is None:
                    continue
                a, p = plan.agenda, plan.parameters
                low[day, side] = (a.quantity_min, a.time_min - day, a.price_min)
                high[day, side] = (a.quantity_max, a.time_max - day, a.price_max)
                start[day, side] = band_price(a, p.sell_start if plan.selling else p.buy_start)
                end[day, side] = plan.goals.p_sell if plan.selling else plan.goals.p_buy
                room[day, side] = plan.room
                for name, (ahead, units) in plan.shares.items():
                    lead[day, side, seats[name]] = ahead
                    quantity[day, side, seats[name]] = min(units, plan.most[ahead], a.quantity_max)
        return cls(low, high, start, end, room, lead, quantity)


def _powers(plans: Sequence[Plans]) -> tuple[float, float, float]:
    """Return what shapes the concession of prices: urgency and curve of buying, curve of selling."""
    p = next(plan.parameters for sides in plans for plan in sides if plan is not None)
    return p.buy_urgency, p.buy_curve, p.sell_curve


@cache
def _conceded(urgency: float, buy_curve: float, sell_curve: float, n_rounds: int, *, proposing: bool) -> Floats:
    """Return how far prices have moved from start to end, [side, opens, round]."""
    found = np.zeros((2, 2, n_rounds + 1))
    for opens in (False, True):
        for round_ in range(n_rounds + 1):
            now = ThreadObservation(0, "", True, round_, n_rounds, 0.0, opens, None, (), Calendar((), (), (), ()))
            time = progress(now, proposing=proposing)
            found[0, int(opens), round_] = max(urgency, float(time**buy_curve))
            found[1, int(opens), round_] = float(time**sell_curve)
    return found


def _limit(start: Floats, end: Floats, conceded: Floats, buying: Bools) -> Floats:
    """Return the limit prices that `l1_baseline`'s reservations give, in whole units."""
    bid = np.minimum(end, start + (end - start) * conceded)
    ask = end + np.maximum(0.0, start - end) * (1.0 - conceded)
    return np.rint(np.where(buying, bid, ask))
