"""The agents' interface, rebuilt from a record.

`RecordedInterface` has the public fields that `policy.observation.observe_day` reads from a live interface, so
that one function makes the observation of both sources.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from litaagent_std.policy.observation import Calendar

__all__ = ["RecordedInterface", "WorldTables"]

_SYSTEM = -1


@dataclass(slots=True)
class _Report:
    step: int
    cash: float
    assets: float
    breach_prob: float
    breach_level: float
    is_bankrupt: bool


@dataclass(slots=True)
class _Issue:
    min_value: int
    max_value: int


class WorldTables:
    """A world's tables, indexed by day.

    Args:
        tables: All tables of the world.
    """

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self.tables = tables
        [self.facts] = tables["worlds"].to_pylist()
        self.factories: list[dict[str, Any]] = tables["factories"].to_pylist()
        self.names = tuple(row["name"] for row in self.factories)
        self.seat = {name: seat for seat, name in enumerate(self.names)}
        self.levels = [row["level"] for row in self.factories]
        self.n_levels: int = self.facts["n_levels"]

    @cached_property
    def days(self) -> dict[tuple[int, int], dict[str, Any]]:
        """Rows of ``days`` by day and factory."""
        return {(row["day"], row["factory"]): row for row in self.tables["days"].to_pylist()}

    @cached_property
    def markets(self) -> dict[int, list[dict[str, Any]]]:
        """Rows of ``markets`` by day, in order of the products."""
        by_day = defaultdict(list)
        for row in self.tables["markets"].to_pylist():
            by_day[row["day"]].append(row)
        return by_day

    @cached_property
    def reports(self) -> list[dict[int, _Report]]:
        """Reports about each factory by day."""
        reports: list[dict[int, _Report]] = [{} for _ in self.names]
        for row in self.tables["reports"].to_pylist():
            rates = (row["breach_probability"], row["breach_level"], row["bankrupt"])
            reports[row["factory"]][row["day"]] = _Report(row["day"], row["cash"], row["assets"], *rates)
        return reports

    @cached_property
    def signed(self) -> dict[tuple[int, int], list[dict[str, Any]]]:
        """Contracts by factory and day of conclusion, in order of conclusion."""
        signed = defaultdict(list)
        for row in self.tables["contracts"].to_pylist():
            signed[row["buyer"], row["day"]].append(row)
            signed[row["seller"], row["day"]].append(row)
        return signed

    def standing(self, factory: int, day: int) -> list[dict[str, Any]]:
        """Return a factory's contracts of earlier days that are due on ``day`` or later."""
        first = max(0, day - self.facts["horizon"])
        earlier = (row for signing in range(first, day) for row in self.signed.get((factory, signing), ()))
        return [row for row in earlier if row["time"] >= day]

    def at_level(self, level: int) -> list[str]:
        """Ids of a level's factories in seat order."""
        return [name for name, own in zip(self.names, self.levels, strict=True) if own == level]

    def calendar(self, factory: int, day: int, contracts: Iterable[Mapping[str, Any]]) -> Calendar:
        """Sum contracts of a factory by delivery day from ``day`` on; those with bankrupt partners are void."""
        length = self.facts["horizon"] + 1
        sums = [[0.0] * length for _ in range(4)]
        for row in contracts:
            ahead = row["time"] - day
            buys = row["buyer"] == factory
            partner = row["seller"] if buys else row["buyer"]
            if 0 <= ahead < length and not self.days[day, partner]["bankrupt"]:
                units, value = sums[:2] if buys else sums[2:]
                units[ahead] += row["quantity"]
                value[ahead] += row["quantity"] * row["unit_price"]
        bought, bought_value, sold, sold_value = sums
        return Calendar(tuple(map(int, bought)), tuple(bought_value), tuple(map(int, sold)), tuple(sold_value))


class RecordedInterface:
    """What one factory's interface shows at the start of one day.

    Args:
        world: The world.
        factory: The seat.
        day: The day.
    """

    is_perishable = False
    current_inventory_output = 0

    def __init__(self, world: WorldTables, factory: int, day: int) -> None:
        self._world = world
        self._factory = factory
        constants, today = world.factories[factory], world.days[day, factory]
        self.current_step = day
        self.n_steps: int = world.facts["n_days"]
        self.horizon: int = world.facts["horizon"]
        self.n_products = world.n_levels + 1
        self.n_lines: int = constants["n_lines"]
        self.level: int = constants["level"]
        self.my_input_product, self.my_output_product = self.level, self.level + 1
        self.is_first_level = self.level == 0
        self.is_last_level = self.level == world.n_levels - 1
        self.profile = SimpleNamespace(**constants)
        self.catalog_prices: Sequence[float] = world.facts["catalog_prices"]
        self.current_balance: float = today["balance"]
        self.current_inventory_input: int = today["stock_in"]
        self.needed_sales: int = today["needed_sales"]
        self.needed_supplies: int = today["needed_supplies"]
        self.current_exogenous_input_quantity: int = today["exogenous_in"]
        self.current_exogenous_input_price: float = today["exogenous_in_value"]
        self.current_exogenous_output_quantity: int = today["exogenous_out"]
        self.current_exogenous_output_price: float = today["exogenous_out_value"]
        self.current_shortfall_penalty: float = today["shortfall_penalty"]
        self.current_storage_cost: float = today["storage_cost"]
        self.current_disposal_cost: float = today["disposal_cost"]

    @property
    def my_suppliers(self) -> list[str]:
        """Ids of the suppliers."""
        return self._world.at_level(self.level - 1) if self.level else []

    @property
    def my_consumers(self) -> list[str]:
        """Ids of the consumers."""
        return self._world.at_level(self.level + 1)

    @property
    def my_competitors(self) -> list[str]:
        """Ids of the other factories of the same level."""
        return [name for name in self._world.at_level(self.level) if name != self._world.names[self._factory]]

    @property
    def trading_prices(self) -> list[float]:
        """Trading price of each product."""
        return [row["trading_price"] for row in self._world.markets[self.current_step]]

    @property
    def exogenous_contract_summary(self) -> list[tuple[float, float]]:
        """Total quantity and total price of today's exogenous contracts, per product."""
        rows = self._world.markets[self.current_step]
        return [(row["exogenous_quantity"], row["exogenous_value"]) for row in rows]

    @property
    def current_input_issues(self) -> list[_Issue]:
        """Quantity, time and unit price issues of today's purchases."""
        return self._issues(self.my_input_product)

    @property
    def current_output_issues(self) -> list[_Issue]:
        """Quantity, time and unit price issues of today's sales."""
        return self._issues(self.my_output_product)

    @property
    def sales(self) -> dict[str, int]:
        """Units sold for today, by consumer."""
        return self._books["seller", False].get(self.current_step, {})

    @property
    def sales_cost(self) -> dict[str, int]:
        """Value of the units sold for today, by consumer."""
        return self._books["seller", True].get(self.current_step, {})

    @property
    def supplies(self) -> dict[str, int]:
        """Units bought for today, by supplier."""
        return self._books["buyer", False].get(self.current_step, {})

    @property
    def supplies_cost(self) -> dict[str, int]:
        """Value of the units bought for today, by supplier."""
        return self._books["buyer", True].get(self.current_step, {})

    @property
    def future_sales(self) -> dict[int, dict[str, int]]:
        """Units sold for later days, by day and consumer."""
        return self._later("seller", priced=False)

    @property
    def future_sales_cost(self) -> dict[int, dict[str, int]]:
        """Value of the units sold for later days, by day and consumer."""
        return self._later("seller", priced=True)

    @property
    def future_supplies(self) -> dict[int, dict[str, int]]:
        """Units bought for later days, by day and supplier."""
        return self._later("buyer", priced=False)

    @property
    def future_supplies_cost(self) -> dict[int, dict[str, int]]:
        """Value of the units bought for later days, by day and supplier."""
        return self._later("buyer", priced=True)

    def is_bankrupt(self, aid: str | None = None) -> bool:
        """Whether a factory (this one if no id is given) is bankrupt at the start of the day."""
        seat = self._factory if aid is None else self._world.seat.get(aid, _SYSTEM)
        return seat != _SYSTEM and bool(self._world.days[self.current_step, seat]["bankrupt"])

    def is_system(self, aid: str) -> bool:
        """Whether an id belongs to a system agent."""
        return aid not in self._world.seat

    def reports_of_agent(self, aid: str) -> dict[int, _Report] | None:
        """Every report of a factory that is published by the start of the day."""
        reports = self._world.reports[self._world.seat[aid]]
        return {day: report for day, report in reports.items() if day < self.current_step} or None

    def _issues(self, product: int) -> list[_Issue]:
        row = self._world.markets[self.current_step][product]
        return [_Issue(row[f"{name}_min"], row[f"{name}_max"]) for name in ("quantity", "time", "price")]

    def _later(self, side: str, priced: bool) -> dict[int, dict[str, int]]:
        return {day: book for day, book in self._books[side, priced].items() if day > self.current_step}

    @cached_property
    def _books(self) -> dict[tuple[str, bool], dict[int, dict[str, int]]]:
        """Contracts standing at the start of the day, by own side, counted and priced, by delivery day and partner."""
        books: dict[tuple[str, bool], dict[int, dict[str, int]]]
        books = {(side, priced): {} for side in ("buyer", "seller") for priced in (False, True)}
        for row in self._world.standing(self._factory, self.current_step):
            side, other = ("buyer", "seller") if row["buyer"] == self._factory else ("seller", "buyer")
            name = self._world.names[row[other]]
            for priced, amount in ((False, row["quantity"]), (True, row["quantity"] * row["unit_price"])):
                book = books[side, priced].setdefault(row["time"], {})
                book[name] = book.get(name, 0) + amount
        return books
