"""Observations of the agent: a factory's day and a thread's round, as frozen plain values.

`Observation` is a factory's day, taken before that day's negotiations. `ThreadObservation` is one negotiation
thread at the moment of a decision and holds only what came before it. Both hold ints, floats, bools, strings
and tuples of these, so that a recorder can write them as columns and read them back (`to_plain`,
`observation_from_plain`). A live agent and a recorder build them with the same functions from the same public fields.

Days are world days; a calendar is a tuple of ``horizon + 1`` entries, entry ``k`` for delivery on
``day + k`` (entries past the last day stay 0). Standing contracts with a bankrupt partner are void and are
not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple, Self

from .interface import DayInterface, IssueLike, Report

REPORTS_KEPT = 4
"""Number of a partner's latest financial reports that an observation keeps."""


class Offer(NamedTuple):
    """An offer in the league's order: quantity, delivery day, unit price."""

    quantity: int
    time: int
    price: int


@dataclass(frozen=True, slots=True)
class Agenda:
    """The legal range of an offer, both ends included."""

    quantity_min: int
    quantity_max: int
    time_min: int
    time_max: int
    price_min: int
    price_max: int

    @classmethod
    def from_issues(cls, issues: Sequence[IssueLike]) -> Self:
        """Read the ranges of (quantity, time, unit price) issues."""
        ends = [int(end) for issue in issues for end in (issue.min_value, issue.max_value)]
        return cls(*ends)

    def legal(self, offer: Offer) -> bool:
        """Whether an offer consists of integers inside the ranges."""
        return (
            all(type(value) is int for value in offer)
            and self.quantity_min <= offer.quantity <= self.quantity_max
            and self.time_min <= offer.time <= self.time_max
            and self.price_min <= offer.price <= self.price_max
        )


@dataclass(frozen=True, slots=True)
class Calendar:
    """Standing commitments by delivery day, exogenous contracts and void contracts excluded.

    Attributes:
        bought: Units bought, entry k for delivery k days ahead.
        bought_value: Their total price.
        sold: Units sold.
        sold_value: Their total price.
    """

    bought: tuple[int, ...]
    bought_value: tuple[float, ...]
    sold: tuple[int, ...]
    sold_value: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Partner:
    """A supplier, consumer or competitor and its latest published reports.

    Attributes:
        name: Its id.
        bankrupt: Whether it is bankrupt today.
        report_days: Days of its latest reports, oldest first, at most `REPORTS_KEPT`.
        report_cash: Cash in those reports.
        assets: Published assets in the latest report (0 before the first).
        breach_probability: Share of its days with a breach, latest report.
        breach_level: Its mean breach level, latest report.
    """

    name: str
    bankrupt: bool
    report_days: tuple[int, ...]
    report_cash: tuple[float, ...]
    assets: float
    breach_probability: float
    breach_level: float


@dataclass(frozen=True, slots=True)
class Observation:
    """A factory's day, before that day's negotiations.

    Attributes:
        day: Today.
        n_days: Days the world runs.
        horizon: Days ahead that deliveries can be agreed for.
        level: Production level, 0 for the first.
        n_levels: Number of production levels.
        n_lines: Production lines.
        perishable: Whether stock perishes overnight.
        cash: Balance.
        initial_balance: Balance on the first day.
        stock_in: Units of input in stock.
        stock_out: Units of output in stock.
        needed_sales: Units to sell today as the interface counts them.
        needed_supplies: Units to buy today as the interface counts them.
        exogenous_in: Units of today's forced purchase.
        exogenous_in_value: Its total price.
        exogenous_out: Units of today's forced sale.
        exogenous_out_value: Its total price.
        production_cost: Cost of producing one unit.
        shortfall_penalty: Today's penalty per missing unit, as a fraction of the output's trading price.
        storage_cost: Today's cost per unused input unit, as a fraction of the input's trading price.
        disposal_cost: Today's disposal cost, as a fraction of the input's trading price.
        shortfall_penalty_mean: Mean of the shortfall penalty over the world.
        storage_cost_mean: Mean of the storage cost over the world.
        disposal_cost_mean: Mean of the disposal cost over the world.
        trading_prices: Trading price of each product today.
        catalog_prices: Catalog price of each product.
        price_history: `trading_prices` of every day from the first to today.
        market_exogenous_quantity: Units of all exogenous contracts today, per product.
        market_exogenous_value: Their total price, per product.
        buy_agenda: Legal range of purchases; None at the first level.
        sell_agenda: Legal range of sales; None at the last level.
        calendar: Standing commitments by delivery day.
        suppliers: Suppliers, without the system.
        consumers: Consumers, without the system.
        competitors: The other factories of the same level.
    """

    day: int
    n_days: int
    horizon: int
    level: int
    n_levels: int
    n_lines: int
    perishable: bool
    cash: float
    initial_balance: float
    stock_in: int
    stock_out: int
    needed_sales: int
    needed_supplies: int
    exogenous_in: int
    exogenous_in_value: float
    exogenous_out: int
    exogenous_out_value: float
    production_cost: float
    shortfall_penalty: float
    storage_cost: float
    disposal_cost: float
    shortfall_penalty_mean: float
    storage_cost_mean: float
    disposal_cost_mean: float
    trading_prices: tuple[float, ...]
    catalog_prices: tuple[float, ...]
    price_history: tuple[tuple[float, ...], ...]
    market_exogenous_quantity: tuple[float, ...]
    market_exogenous_value: tuple[float, ...]
    buy_agenda: Agenda | None
    sell_agenda: Agenda | None
    calendar: Calendar
    suppliers: tuple[Partner, ...]
    consumers: tuple[Partner, ...]
    competitors: tuple[Partner, ...]

    @property
    def price_in(self) -> float:
        """Trading price of the input."""
        return self.trading_prices[self.level]

    @property
    def price_out(self) -> float:
        """Trading price of the output."""
        return self.trading_prices[self.level + 1]

    @property
    def first_level(self) -> bool:
        """Whether the factory's input is exogenous."""
        return self.level == 0

    @property
    def last_level(self) -> bool:
        """Whether the factory's output is exogenous."""
        return self.level == self.n_levels - 1

    @property
    def days_left(self) -> int:
        """Days from today to the end, today included."""
        return self.n_days - self.day


@dataclass(frozen=True, slots=True)
class Turn:
    """One offer made in a thread, and the mechanism's round in which it was made."""

    round: int
    mine: bool
    offer: Offer


@dataclass(frozen=True, slots=True)
class ThreadObservation:
    """One negotiation thread before a decision; nothing in it is later.

    Attributes:
        day: Today.
        partner: Id of the partner.
        buying: Whether we buy from it.
        round: Rounds completed in this thread.
        n_rounds: Rounds allowed.
        relative_time: The mechanism's relative time in this round, (round + 1) / (n_rounds + 1).
        opens: Whether we propose first in this thread.
        offer: The partner's offer on the table; None if we propose first.
        turns: Offers made before the one on the table, oldest first.
        calendar: Commitments at this moment, today's contracts included.
    """

    day: int
    partner: str
    buying: bool
    round: int
    n_rounds: int
    relative_time: float
    opens: bool
    offer: Offer | None
    turns: tuple[Turn, ...]
    calendar: Calendar


def observe_day(awi: DayInterface, yesterday: Observation | None = None) -> Observation:
    """Observe a factory's day through the public interface, before that day's negotiations.

    Args:
        awi: The interface (live, or an object with the same attributes).
        yesterday: The previous day's observation: initial balance and price history continue from it.
            None on the first day.

    Returns:
        The day.
    """
    prices = _floats(awi.trading_prices)
    profile = awi.profile
    summary = list(awi.exogenous_contract_summary)
    return Observation(
        day=int(awi.current_step),
        n_days=int(awi.n_steps),
        horizon=int(awi.horizon),
        level=int(awi.level),
        n_levels=int(awi.n_products) - 1,
        n_lines=int(awi.n_lines),
        perishable=bool(awi.is_perishable),
        cash=float(awi.current_balance),
        initial_balance=float(awi.current_balance) if yesterday is None else yesterday.initial_balance,
        stock_in=int(awi.current_inventory_input),
        stock_out=int(awi.current_inventory_output),
        needed_sales=int(awi.needed_sales),
        needed_supplies=int(awi.needed_supplies),
        exogenous_in=int(awi.current_exogenous_input_quantity),
        exogenous_in_value=float(awi.current_exogenous_input_price),
        exogenous_out=int(awi.current_exogenous_output_quantity),
        exogenous_out_value=float(awi.current_exogenous_output_price),
        production_cost=float(profile.cost),
        shortfall_penalty=float(awi.current_shortfall_penalty),
        storage_cost=float(awi.current_storage_cost),
        disposal_cost=float(awi.current_disposal_cost),
        shortfall_penalty_mean=float(profile.shortfall_penalty_mean),
        storage_cost_mean=float(profile.storage_cost_mean),
        disposal_cost_mean=float(profile.disposal_cost_mean),
        trading_prices=prices,
        catalog_prices=_floats(awi.catalog_prices),
        price_history=(prices,) if yesterday is None else (*yesterday.price_history, prices),
        market_exogenous_quantity=_floats(quantity for quantity, _ in summary),
        market_exogenous_value=_floats(value for _, value in summary),
        buy_agenda=None if awi.is_first_level else Agenda.from_issues(awi.current_input_issues),
        sell_agenda=None if awi.is_last_level else Agenda.from_issues(awi.current_output_issues),
        calendar=observe_calendar(awi),
        suppliers=_partners(awi, awi.my_suppliers),
        consumers=_partners(awi, awi.my_consumers),
        competitors=_partners(awi, awi.my_competitors),
    )


def observe_calendar(awi: DayInterface, void: Set[str] | None = None) -> Calendar:
    """Sum the standing contracts by delivery day as they are at this moment.

    Args:
        awi: The interface.
        void: Partners whose contracts are void, being bankrupt; default: they are looked up.
    """
    day, length = int(awi.current_step), int(awi.horizon) + 1
    if void is None:
        partners = (*awi.my_suppliers, *awi.my_consumers)
        void = {name for name in partners if not awi.is_system(name) and awi.is_bankrupt(name)}
    return Calendar(
        bought=tuple(map(int, _by_day(void, day, length, awi.supplies, awi.future_supplies))),
        bought_value=_by_day(void, day, length, awi.supplies_cost, awi.future_supplies_cost),
        sold=tuple(map(int, _by_day(void, day, length, awi.sales, awi.future_sales))),
        sold_value=_by_day(void, day, length, awi.sales_cost, awi.future_sales_cost),
    )


def _by_day(
    void: Set[str],
    day: int,
    length: int,
    today: Mapping[str, float],
    later: Mapping[int, Mapping[str, float]],
) -> tuple[float, ...]:
    totals = [0.0] * length
    for time, partners in [(day, today), *later.items()]:
        if 0 <= time - day < length:
            standing = [x for name, x in partners.items() if name not in void] if void else partners.values()
            totals[time - day] += float(sum(standing))
    return tuple(totals)


def _partners(awi: DayInterface, names: Sequence[str]) -> tuple[Partner, ...]:
    return tuple(_partner(awi, name) for name in names if not awi.is_system(name))


def _partner(awi: DayInterface, name: str) -> Partner:
    reports: list[Report] = [report for _, report in sorted((awi.reports_of_agent(name) or {}).items())][-REPORTS_KEPT:]
    latest = reports[-1] if reports else None
    return Partner(
        name=name,
        bankrupt=bool(awi.is_bankrupt(name)),
        report_days=tuple(int(report.step) for report in reports),
        report_cash=tuple(float(report.cash) for report in reports),
        assets=float(latest.assets) if latest else 0.0,
        breach_probability=float(latest.breach_prob) if latest else 0.0,
        breach_level=float(latest.breach_level) if latest else 0.0,
    )


def _floats(values: Any) -> tuple[float, ...]:  # noqa: ANN401 - a numpy array, a list or a generator
    return tuple(float(value) for value in values)


_NESTED: dict[tuple[str, str], type] = {
    ("Observation", "buy_agenda"): Agenda,
    ("Observation", "sell_agenda"): Agenda,
    ("Observation", "calendar"): Calendar,
    ("ThreadObservation", "calendar"): Calendar,
}
_NESTED_MANY: dict[tuple[str, str], type] = {
    ("Observation", "suppliers"): Partner,
    ("Observation", "consumers"): Partner,
    ("Observation", "competitors"): Partner,
    ("ThreadObservation", "turns"): Turn,
}


def to_plain(value: Observation | ThreadObservation) -> dict[str, Any]:
    """Turn an observation into nested dicts, lists and scalars, for columnar writers and JSON."""
    plain = _plain(value)
    assert isinstance(plain, dict)
    return plain


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def observation_from_plain(plain: Mapping[str, Any]) -> Observation:
    """Rebuild an `Observation` from `to_plain`'s result."""
    return Observation(**_arguments(Observation, plain))


def thread_from_plain(plain: Mapping[str, Any]) -> ThreadObservation:
    """Rebuild a `ThreadObservation` from `to_plain`'s result."""
    return ThreadObservation(**_arguments(ThreadObservation, plain))


def _arguments(cls: type, plain: Mapping[str, Any]) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for name, value in plain.items():
        nested, item_type = _NESTED.get((cls.__name__, name)), _NESTED_MANY.get((cls.__name__, name))
        if nested is not None and value is not None:
            arguments[name] = nested(**_arguments(nested, value))
        elif item_type is not None:
            arguments[name] = tuple(item_type(**_arguments(item_type, item)) for item in value)
        elif name == "offer" and value is not None:
            arguments[name] = Offer(*value)
        else:
            arguments[name] = _tuples(value)
    return arguments


def _tuples(value: object) -> object:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
