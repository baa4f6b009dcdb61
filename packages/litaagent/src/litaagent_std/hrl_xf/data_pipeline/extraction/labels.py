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

from litaagent_std.hrl_xf.data_pipeline.options import Labels
from litaagent_std.policy.arrays import Floats, Floats32, Ints
from litaagent_std.policy.buckets import bucket_edges
from litaagent_std.policy.columns import BUY, SELL, ObservationBatch
from litaagent_std.records.columns import ACCEPT, END, WorldColumns, ints
from litaagent_std.records.reader import Records, WorldKey
from litaagent_std.records.world import WorldRecord

__all__ = ["DayGoals", "SeatReturns", "day_goals", "seat_returns"]


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
    """Acts of a factory, offers or deals: day, side, lead, quantity and unit price of each."""

    day: Ints
    side: Ints
    lead: Ints
    quantity: Ints
    price: Ints


def day_goals(record: WorldRecord, seat: int, obs: ObservationBatch, labels: Labels) -> DayGoals:
    """Read the goals of a factory's days.

    Args:
        record: The world.
        seat: The factory.
        obs: Its observations by day.
        labels: What counts as a goal.
    """
    world = record.columns
    acts = _intentions(world, seat) if labels == "intention" else _deals(record, seat)
    edges = np.array(bucket_edges(world.horizon))
    shape = (world.n_days, 2, len(edges) - 1)
    valid = (acts.lead >= 0) & (acts.lead < edges[-1]) & (acts.quantity > 0)
    # [act] index in [day, side, bucket]
    at = (acts.day[valid], acts.side[valid], np.searchsorted(edges, acts.lead[valid], side="right") - 1)
    units, value, largest = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    quantity = acts.quantity[valid].astype(np.float64)
    np.add.at(units, at, quantity)
    np.add.at(value, at, quantity * acts.price[valid])
    np.maximum.at(largest, at, quantity)
    price = np.divide(value, units, out=np.zeros(shape), where=units > 0)
    if labels == "intention":  # the sum of first offers is clipped to the need
        units = np.minimum(units, np.maximum(largest, _needs(obs, edges)))
    return DayGoals(units.astype(np.float32), price.astype(np.float32))


def _intentions(world: WorldColumns, seat: int) -> _Acts:
    own = np.flatnonzero((world.factory == seat) & (world.op != END))
    _, firsts = np.unique(world.thread[own], return_index=True)
    turns = own[firsts]  # the first own act of each negotiation
    thread = world.thread[turns]
    # [n, 3] the offer that was accepted, or the own one
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


def _needs(obs: ObservationBatch, edges: Ints) -> Floats:
    """Return the largest need of a factory, [day, side, bucket]."""
    leads = int(edges[-1])
    sums = np.stack([obs.calendar.bought, obs.calendar.sold], axis=1)[:, :, :leads]
    # [day, side, lead] units that the lines leave free on days before the end of the world
    free = np.where(np.arange(leads) < obs.days_left[:, None, None], obs.n_lines[:, None, None] - sums, 0)
    free[:, BUY, 0], free[:, SELL, 0] = obs.needed_supplies, obs.needed_sales
    return np.add.reduceat(np.maximum(free, 0.0), edges[:-1], axis=2)


_LEAST_STD = 1e-9


@dataclass(frozen=True, slots=True)
class SeatReturns:
    """Returns of the seats of a configuration.

    Attributes:
        mean: Mean return-to-go over worlds, [day, seat].
        std: Standard deviation from it over days and worlds, [seat]; 0 if there is one world only.
    """

    mean: Floats
    std: Floats

    def normalised(self, returns: Floats, day: Ints, seat: Ints) -> Floats:
        """Return ``(return − mean) / std``; 0 where the standard deviation is 0."""
        std = self.std[seat]
        above = returns - self.mean[day, seat]
        return np.divide(above, std, out=np.zeros_like(above), where=std > _LEAST_STD)


def seat_returns(records: Records, worlds: Sequence[WorldKey]) -> SeatReturns:
    """Compute the returns of the seats of one configuration over all its worlds, whoever played."""
    factories = records.table("factories", columns=["factory", "score", "initial_balance"], keys=worlds)
    days = records.table("days", columns=["day", "factory", "balance"], keys=worlds)
    index = {(key.source, key.world): number for number, key in enumerate(worlds)}
    n_days, n_seats = int(ints(days["day"]).max()) + 1, int(ints(factories["factory"]).max()) + 1
    score, initial = np.zeros((2, len(worlds), n_seats))
    seats = (_rows(factories, index), ints(factories["factory"]))
    # [world, seat] final scores and initial balances
    score[seats] = factories["score"].to_numpy()
    initial[seats] = factories["initial_balance"].to_numpy()
    balance = np.zeros((len(worlds), n_days, n_seats))  # [world, day, seat]
    balance[_rows(days, index), ints(days["day"]), ints(days["factory"])] = days["balance"].to_numpy()
    owned = np.divide(balance, initial[:, None], out=np.zeros_like(balance), where=initial[:, None] > 0)
    returns = score[:, None] - owned  # return-to-go, [world, day, seat]
    mean = returns.mean(axis=0)
    return SeatReturns(mean, np.sqrt(((returns - mean) ** 2).mean(axis=(0, 1))))


def _rows(table: object, index: Mapping[tuple[int, int], int]) -> Ints:
    """Return the index of each row's world."""
    source, world = ints(table["source"]), ints(table["world"])  # type: ignore[index]  # an Arrow table
    return np.array([index[key] for key in zip(source.tolist(), world.tolist(), strict=True)])
