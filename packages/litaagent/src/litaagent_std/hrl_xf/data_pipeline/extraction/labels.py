"""Labels of a factory's days: L2's goals by side and delivery bucket, and normalised returns.

*Intentions* are a factory's first acts: in each negotiation its first own offer, or the offer that it accepts before
it made one. An agent that asks five suppliers for its whole need does not want it five times, so their sum is clipped
to the need: today's as the interface counts it (or the largest single act, where that is more), and on later days
what the lines leave free. *Deals* are what was agreed on that day.

A return-to-go is normalised by what other worlds made of the same seat: costs, level and exogenous contracts of a seat
are shared by all worlds of a configuration, whoever plays it. So a return is compared with the mean over these worlds
on the same day, and divided by their standard deviation over all days.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from litaagent_std.hrl_xf.data_pipeline.extraction.columns import ACCEPT, END, WorldColumns, ints
from litaagent_std.hrl_xf.data_pipeline.options import Labels
from litaagent_std.policy.arrays import Floats, Floats32, Ints
from litaagent_std.policy.buckets import bucket_edges
from litaagent_std.policy.observation import Observation
from litaagent_std.records.reader import Records, WorldKey
from litaagent_std.records.world import WorldRecord

__all__ = ["DayGoals", "SeatReturns", "day_goals", "seat_returns"]

BUY, SELL = 0, 1


@dataclass(frozen=True, slots=True)
class DayGoals:
    """Goals of a factory's days.

    Attributes:
        quantity: Units, [day, side, bucket].
        price: Mean unit price, 0 where the quantity is 0, [day, side, bucket].
    """

    quantity: Floats32
    price: Floats32


@dataclass(frozen=True, slots=True)
class _Acts:
    """What a factory wanted or got: day, side, lead, quantity and unit price of each."""

    day: Ints
    side: Ints
    lead: Ints
    quantity: Ints
    price: Ints


def day_goals(
    record: WorldRecord, world: WorldColumns, seat: int, mornings: Sequence[Observation], labels: Labels
) -> DayGoals:
    """Read the goals of a factory's days.

    Args:
        record: The world.
        world: Its columns.
        seat: The factory.
        mornings: Its observations by day.
        labels: What counts as a goal.
    """
    acts = _intentions(world, seat) if labels == "intention" else _deals(record, seat)
    edges = np.array(bucket_edges(world.horizon))
    shape = (world.n_days, 2, len(edges) - 1)
    known = (acts.lead >= 0) & (acts.lead < edges[-1]) & (acts.quantity > 0)
    place = (acts.day[known], acts.side[known], np.searchsorted(edges, acts.lead[known], side="right") - 1)
    units, value, largest = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    quantity = acts.quantity[known].astype(np.float64)
    np.add.at(units, place, quantity)
    np.add.at(value, place, quantity * acts.price[known])
    np.maximum.at(largest, place, quantity)
    price = np.divide(value, units, out=np.zeros(shape), where=units > 0)
    if labels == "intention":
        units = np.minimum(units, np.maximum(largest, _needs(mornings, edges)))
    return DayGoals(units.astype(np.float32), price.astype(np.float32))


def _intentions(world: WorldColumns, seat: int) -> _Acts:
    mine = np.flatnonzero((world.factory == seat) & (world.op != END))
    _, firsts = np.unique(world.thread[mine], return_index=True)
    turns = mine[firsts]
    thread = world.thread[turns]
    offer = world.offers[np.where(world.op[turns] == ACCEPT, world.received[turns], world.own_offer[turns])]
    day = world.day[thread]
    side = np.where(world.buyer[thread] == seat, BUY, SELL)
    return _Acts(day, side, offer[:, 1] - day, offer[:, 0], offer[:, 2])


def _deals(record: WorldRecord, seat: int) -> _Acts:
    table = record.tables["contracts"]
    buyer, seller = ints(table["buyer"]), ints(table["seller"])
    own = (buyer == seat) | (seller == seat)
    day, time, quantity, price = (ints(table[name])[own] for name in ("day", "time", "quantity", "unit_price"))
    return _Acts(day, np.where(buyer[own] == seat, BUY, SELL), time - day, quantity, price)


def _needs(mornings: Sequence[Observation], edges: Ints) -> Floats:
    """Return the most that a factory can want by day, side and bucket."""
    free = np.zeros((len(mornings), 2, int(edges[-1])))
    for day, obs in enumerate(mornings):
        left = min(int(edges[-1]), obs.days_left)
        free[day, BUY, :left] = obs.n_lines - np.array(obs.calendar.bought[:left])
        free[day, SELL, :left] = obs.n_lines - np.array(obs.calendar.sold[:left])
        free[day, :, 0] = (obs.needed_supplies, obs.needed_sales)
    return np.add.reduceat(np.maximum(free, 0.0), edges[:-1], axis=2)


_LEAST_SPREAD = 1e-9


@dataclass(frozen=True, slots=True)
class SeatReturns:
    """What the seats of a configuration bring.

    Attributes:
        mean: Mean return-to-go over worlds, [day, seat].
        spread: Standard deviation from it over days and worlds, [seat]; 0 where there is one world only.
    """

    mean: Floats
    spread: Floats

    def normalised(self, returns: Floats, day: Ints, seat: Ints) -> Floats:
        """Return how far returns lie above the mean, in standard deviations; 0 where nothing can be compared."""
        spread = self.spread[seat]
        above = returns - self.mean[day, seat]
        return np.divide(above, spread, out=np.zeros_like(above), where=spread > _LEAST_SPREAD)


def seat_returns(records: Records, worlds: Sequence[WorldKey]) -> SeatReturns:
    """Measures the seats of one configuration over all its worlds, whoever played."""
    factories = records.table("factories", columns=["factory", "score", "initial_balance"], keys=worlds)
    days = records.table("days", columns=["day", "factory", "balance"], keys=worlds)
    place = _places(worlds)
    n_days, n_seats = int(ints(days["day"]).max()) + 1, int(ints(factories["factory"]).max()) + 1
    score, initial = np.zeros((2, len(worlds), n_seats))
    seats = (_rows(factories, place), ints(factories["factory"]))
    score[seats] = factories["score"].to_numpy()
    initial[seats] = factories["initial_balance"].to_numpy()
    balance = np.zeros((len(worlds), n_days, n_seats))
    balance[_rows(days, place), ints(days["day"]), ints(days["factory"])] = days["balance"].to_numpy()
    owned = np.divide(balance, initial[:, None], out=np.zeros_like(balance), where=initial[:, None] > 0)
    returns = score[:, None] - owned
    mean = returns.mean(axis=0)
    return SeatReturns(mean, np.sqrt(((returns - mean) ** 2).mean(axis=(0, 1))))


def _places(worlds: Sequence[WorldKey]) -> Mapping[tuple[int, int], int]:
    return {(key.source, key.world): number for number, key in enumerate(worlds)}


def _rows(table: object, place: Mapping[tuple[int, int], int]) -> Ints:
    source, world = ints(table["source"]), ints(table["world"])  # type: ignore[index]  # an Arrow table
    return np.array([place[key] for key in zip(source.tolist(), world.tolist(), strict=True)])
