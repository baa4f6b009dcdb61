"""The fast world's events about whole days and worlds, made from its seats and markets."""

from __future__ import annotations

from collections.abc import Sequence

from scml.oneshot.common import SYSTEM_BUYER_ID, SYSTEM_SELLER_ID

from litaagent_std.world.events import DayEnd, DayStart, Exogenous, WorldStart
from litaagent_std.world.fast.seats import Seat
from litaagent_std.world.fast.topics import Topic
from litaagent_std.world.rules.prices import Market
from litaagent_std.world.setup import ExogenousContract, WorldSetup


def emit_world_start(setup: WorldSetup, seats: Sequence[Seat]) -> WorldStart:
    """Tells the facts of a world."""
    return WorldStart(
        agents=tuple(seat.id for seat in seats),
        levels=tuple(factory.level for factory in setup.factories),
        agent_types=tuple(f"{type(seat.agent).__module__}.{type(seat.agent).__qualname__}" for seat in seats),
        n_lines=tuple(factory.n_lines for factory in setup.factories),
        costs=tuple(float(factory.cost) for factory in setup.factories),
        initial_balances=tuple(float(factory.balance) for factory in setup.factories),
        catalog_prices=tuple(float(price) for price in setup.catalog_prices),
        n_days=setup.n_days,
        n_rounds=setup.n_rounds,
        horizon=setup.horizon,
    )


def emit_day_start(
    day: int,
    seats: Sequence[Seat],
    markets: Sequence[Market],
    exogenous: Sequence[ExogenousContract],
    topics: Sequence[Topic],
) -> DayStart:
    """Tells the state of the world before the day's negotiations."""
    return DayStart(
        day=day,
        trading_prices=tuple(market.price for market in markets),
        exogenous=tuple(
            Exogenous(
                seats[contract.buyer].id if contract.buyer >= 0 else SYSTEM_BUYER_ID,
                seats[contract.seller].id if contract.seller >= 0 else SYSTEM_SELLER_ID,
                contract.product,
                contract.quantity,
                contract.unit_price,
            )
            for contract in exogenous
        ),
        balances=tuple(float(seat.balance) for seat in seats),
        inventories=tuple(seat.inventory for seat in seats),
        issues=tuple(topic.ranges for topic in topics),
    )


def emit_day_end(day: int, seats: Sequence[Seat], markets: Sequence[Market], sold: Sequence[int]) -> DayEnd:
    """Tells the state of the world after the day."""
    return DayEnd(
        day=day,
        trading_prices=tuple(market.price for market in markets),
        sold_quantities=tuple(sold),
        balances=tuple(float(seat.balance) for seat in seats),
        bankrupt=tuple(seat.bankrupt for seat in seats),
    )
