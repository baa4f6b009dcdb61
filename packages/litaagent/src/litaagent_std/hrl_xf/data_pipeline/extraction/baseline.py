"""L1's baseline decision in every recorded situation, from the plans that the policy makes at day start.

The plans are made by `policy.l1.thread.day_start_plans`. Deciding a turn from a plan is arithmetic, done here for all
turns of a factory at once; tests compare every turn with `policy.l1.thread.thread_baseline`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from litaagent_std.policy.arrays import Bools, Floats, Ints
from litaagent_std.policy.l1.baseline import progress
from litaagent_std.policy.l1.safety import bounds
from litaagent_std.policy.l1.thread import SidePlan, day_start_plans
from litaagent_std.policy.l2.heuristic import HeuristicGoals
from litaagent_std.policy.memory import Memory
from litaagent_std.policy.observation import Calendar, Observation, ThreadObservation
from litaagent_std.policy.parameters import Parameters, level_name
from litaagent_std.policy.plan import band_price
from litaagent_std.records.columns import ACCEPT, END, REJECT, WorldColumns, ints
from litaagent_std.records.world import WorldRecord

__all__ = ["Baselines", "baselines", "plans_of"]

Plans = tuple[SidePlan | None, SidePlan | None]
"""The plans of buying and of selling; None for a side that the level does not trade."""


@dataclass(frozen=True, slots=True)
class Baselines:
    """The baseline's decision before each turn.

    Attributes:
        op: Its operation, [turn].
        counter: Its counter-offer, also where it accepts or ends: quantity, lead, unit price, [turn, 3].
    """

    op: Ints
    counter: Ints


def plans_of(record: WorldRecord, world: WorldColumns, seat: int, observations: Sequence[Observation]) -> list[Plans]:
    """Return the baseline's plans of buying and selling for every day of a factory."""
    first = observations[0]
    parameters = Parameters().at(level_name(first.level, first.n_levels))
    memory = Memory(first.horizon + 1, assume_persistent=parameters.assume_persistent, rate=parameters.fill_rate)
    due = _due(record, world, seat)
    heuristic = HeuristicGoals(parameters)
    plans = []
    for obs in observations:
        memory.start_day(obs)
        limits = bounds(obs, obs.calendar, memory.regime)
        goals = heuristic.goals(obs, obs.calendar, limits, memory)
        plans.append(day_start_plans(obs, limits, goals, parameters))
        bought, sold = due[obs.day].tolist()
        memory.note_calendar(Calendar((bought,), (0.0,), (sold,), (0.0,)))
    return plans


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


def baselines(world: WorldColumns, seat: int, names: Sequence[str], plans: Sequence[Plans], turns: Ints) -> Baselines:
    """Decide all turns of a factory at once, as `policy.l1.thread.thread_baseline` does one by one.

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
    at = (world.day[thread], np.where(buying, 0, 1))  # each turn's index in [day, side]
    partner = np.where(buying, world.seller[thread], world.buyer[thread])
    opens = (world.caller[thread] == seat).astype(np.int64)
    low, high = days.low[at], days.high[at]  # [turn, 3] legal quantity, lead and price
    # [turn] the partner's share of the plan; the smallest legal offer where it has none
    lead, quantity = days.lead[(*at, partner)], days.quantity[(*at, partner)]
    none = quantity < low[:, 0]
    lead, quantity = np.where(none, low[:, 1], lead), np.where(none, low[:, 0], quantity)
    # [turn] price of the counter-offer: concession by side, opener and round
    powers = _powers(plans)
    conceded = [_conceded(*powers, world.n_rounds, proposing=proposing) for proposing in (False, True)]
    when = (at[1], opens, world.round[turns])
    price = _limit(days.start[at], days.end[(*at, lead)], conceded[1][when], buying)
    counter = np.stack([quantity, np.clip(lead, low[:, 1], high[:, 1]), np.clip(price, low[:, 2], high[:, 2])], axis=1)
    op = np.where(none, END, REJECT)
    # Accept a legal offer at our limit price or better, if there is room on its delivery day.
    answers = np.flatnonzero(world.answers[turns])
    if len(answers):
        offer = world.offers[world.received[turns[answers]]].copy()
        offer[:, 1] -= at[0][answers]
        legal = ((offer >= low[answers]) & (offer <= high[answers])).all(axis=1)
        delivery = (at[0][answers], at[1][answers], np.where(legal, offer[:, 1], 0))  # index in [day, side, lead]
        when_received = (at[1][answers], opens[answers], world.round[turns[answers]])
        limit = _limit(days.start[delivery[:2]], days.end[delivery], conceded[0][when_received], buying[answers])
        good = np.where(buying[answers], offer[:, 2] <= limit, offer[:, 2] >= limit)
        op[answers[legal & good & (offer[:, 0] <= days.room[delivery])]] = ACCEPT
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
        quantity: Its quantity, clipped to what may be offered; 0 if it has no share, [day, side, seat].
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
    """Return the parameters of the price concession: urgency and curve of buying, curve of selling."""
    p = next(plan.parameters for sides in plans for plan in sides if plan is not None)
    return p.buy_urgency, p.buy_curve, p.sell_curve


@cache
def _conceded(urgency: float, buy_curve: float, sell_curve: float, n_rounds: int, *, proposing: bool) -> Floats:
    """Return how far prices have moved from start to end, [side, opens, round]."""
    conceded = np.zeros((2, 2, n_rounds + 1))
    for opens in (False, True):
        for round_ in range(n_rounds + 1):
            now = ThreadObservation(0, "", True, round_, n_rounds, 0.0, opens, None, (), Calendar((), (), (), ()))
            time = progress(now, proposing=proposing)
            conceded[0, int(opens), round_] = max(urgency, float(time**buy_curve))
            conceded[1, int(opens), round_] = float(time**sell_curve)
    return conceded


def _limit(start: Floats, end: Floats, conceded: Floats, buying: Bools) -> Floats:
    """Return the limit prices of `policy.l1.baseline`'s reservations, rounded."""
    bid = np.minimum(end, start + (end - start) * conceded)
    ask = end + np.maximum(0.0, start - end) * (1.0 - conceded)
    return np.rint(np.where(buying, bid, ask))
