"""What the world makes known: events of days and worlds to observers, and the bulletin board to agents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from negmas.situated import BulletinBoard
from scml.oneshot.common import SYSTEM_BUYER_ID, SYSTEM_SELLER_ID, FinancialReport

from litaagent_std.world.events import DayEnd, DayStart, Exogenous, WorldStart
from litaagent_std.world.rules.bankruptcy import BANKRUPTCY_LIMIT
from litaagent_std.world.setup import DailyCosts, WorldSetup, full_name

if TYPE_CHECKING:
    from litaagent_std.world.fast.interface.agenda import Agenda
    from litaagent_std.world.fast.seats import Seat
    from litaagent_std.world.rules.exogenous import ExogenousContract
    from litaagent_std.world.rules.prices import Market

REPORT_PERIOD = 5
"""Days between financial reports."""

_SECTIONS = (
    "reports_agent",
    "reports_time",
    "exogenous_contracts_summary",
    "trading_prices",
    "breaches",
    "stats",
    "settings",
)


def make_bulletin_board(setup: WorldSetup) -> BulletinBoard:
    """Make the bulletin board with the settings that scml publishes."""
    board = BulletinBoard()
    for section in _SECTIONS:
        board.add_section(section)
    settings: dict[str, Any] = {
        "n_steps": setup.n_days,
        "time_limit": 900,
        "negotiation_speed": None,
        "neg_n_steps": setup.n_rounds,
        "neg_time_limit": 60,
        "neg_step_time_limit": 20,
        "default_signing_delay": 0,
        "force_signing": True,
        "batch_signing": False,
        "mechanism_names": ["negmas.sao.SAOMechanism"],
        "start_negotiations_immediately": False,
        "horizon": setup.horizon,
        "one_time_per_negotiation": False,
        "quantity_multiplier": setup.quantity_multiplier,
        "perishable": False,
        "publish_assets": False,
        "publisher_production_capacity": True,
        "nullify_bankrupt_contracts": False,
        "price_range_fraction": setup.price_range,
        "public_trading_prices": True,
        "public_exogenous_summary": True,
        "financial_report_period": REPORT_PERIOD,
        "penalize_bankrupt_for_future_contracts": True,
        "exogenous_force_max": False,
        "allow_zero_quantity": False,
        "inventory_valuation_trading": 0,
        "inventory_valuation_catalog": 0,
        "has_exogenous_contracts": True,
        "bankruptcy_limit": BANKRUPTCY_LIMIT,
    }
    board.data["settings"].update(settings)
    return board


def publish_reports(board: BulletinBoard, seats: Iterable[Seat], day: int) -> None:
    """Publish every factory's financial report."""
    by_agent, by_time = board.data["reports_agent"], board.data["reports_time"]
    today = by_time.setdefault(str(day), {})
    for seat in seats:
        report = FinancialReport(
            agent_id=seat.id,
            step=day,
            cash=seat.balance,
            assets=0,
            breach_prob=sum(seat.breaches) / len(seat.breaches),
            breach_level=sum(seat.breach_levels) / len(seat.breach_levels),
            is_bankrupt=seat.bankrupt,
            agent_name=seat.id,
        )
        by_agent.setdefault(seat.id, {})[day] = report
        today[seat.id] = report


def publish_breach(board: BulletinBoard, seat: Seat, day: int) -> None:
    """Publish that a factory sold more today than it could make."""
    board.data["breaches"][f"{day}:{seat.id}"] = {
        "perpetrator": seat.id,
        "perpetrator_name": seat.id,
        "level": seat.breach_levels[-1],
        "type": "product",
        "time": day,
    }


def make_world_start(setup: WorldSetup, ids: Sequence[str], agents: Sequence[object], costs: DailyCosts) -> WorldStart:
    """Make the event that states the constants of a world.

    Args:
        setup: The world.
        ids: Ids of the factories.
        agents: Their agents.
        costs: Their relative costs by day.
    """
    return WorldStart(
        agents=tuple(ids),
        levels=tuple(factory.level for factory in setup.factories),
        agent_types=tuple(full_name(type(agent)) for agent in agents),
        n_lines=tuple(factory.n_lines for factory in setup.factories),
        costs=tuple(float(factory.cost) for factory in setup.factories),
        initial_balances=tuple(float(factory.balance) for factory in setup.factories),
        catalog_prices=tuple(float(price) for price in setup.catalog_prices),
        n_days=setup.n_days,
        n_rounds=setup.n_rounds,
        horizon=setup.horizon,
        daily_costs=costs,
        controllers=tuple(agents),
    )


def make_day_start(
    day: int,
    seats: Sequence[Seat],
    markets: Sequence[Market],
    exogenous: Sequence[ExogenousContract],
    agendas: Sequence[Agenda],
) -> DayStart:
    """Make the event that states the world before the day's negotiations."""
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
        issues=tuple(agenda.ranges for agenda in agendas),
    )


def make_day_end(day: int, seats: Sequence[Seat], markets: Sequence[Market], sold: Sequence[int]) -> DayEnd:
    """Make the event that states the world after the day."""
    return DayEnd(
        day=day,
        trading_prices=tuple(market.price for market in markets),
        sold_quantities=tuple(sold),
        balances=tuple(float(seat.balance) for seat in seats),
        bankrupt=tuple(seat.bankrupt for seat in seats),
    )
