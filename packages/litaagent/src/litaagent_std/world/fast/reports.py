"""What the world publishes: settings, trading prices, exogenous contracts, financial reports, breaches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from negmas.situated import BulletinBoard
from scml.oneshot.common import FinancialReport

if TYPE_CHECKING:
    from litaagent_std.world.fast.seats import Seat
    from litaagent_std.world.setup import WorldSetup

REPORT_PERIOD = 5
"""Days between financial reports."""

SECTIONS = (
    "reports_agent",
    "reports_time",
    "exogenous_contracts_summary",
    "trading_prices",
    "breaches",
    "stats",
    "settings",
)


def make_board(setup: WorldSetup) -> BulletinBoard:
    """Make the bulletin board with the settings that scml publishes."""
    board = BulletinBoard()
    for section in SECTIONS:
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
        "bankruptcy_limit": 0.0,
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
            breach_prob=len([one for one in seat.breaches if one]) / len(seat.breaches),
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
