"""The agent-world interface: scml's, with everything that is constant within a day kept as plain attributes.

Agents read the interface thousands of times a day, and scml recomputes each value through several properties. Here
the engine sets constants once per world (`LeanAWI.__init__`) and daily values at the start of each day. Only what
contracts change during the day is computed on reading.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from negmas.outcomes import make_os
from scml.oneshot.awi import OneShotAWI, defaultdict_int

if TYPE_CHECKING:
    import numpy as np
    from scml.oneshot.common import OneShotProfile

    from litaagent_std.world.fast.interface.facade import WorldFacade

Calendar = dict[int, dict[str, int]]
"""Quantities (or their total prices) by day of delivery and partner."""


class LeanAWI(OneShotAWI):  # type: ignore[misc]
    """What one factory observes of the world, and may ask of it.

    Class attributes below shadow properties of scml's class, so that instances can hold plain values.

    Args:
        world: The world.
        adapter: The adapter of the agent, which agents know as ``awi.agent``.
        profile: The factory's private facts.
    """

    # the world
    max_n_lines = quantity_range = n_products = n_processes = n_competitors = 0
    horizon = n_steps = default_signing_delay = 0
    production_capacities: list[int] = []  # noqa: RUF012 - shadows a property; set on instances
    catalog_prices: np.ndarray | None = None
    price_multiplier = 0.0
    penalties_scale = "trading"
    is_exogenous_forced = True
    allow_zero_quantity = False
    is_perishable = False
    # the factory
    profile: OneShotProfile | None = None
    n_lines = level = my_input_product = my_output_product = 0
    n_input_negotiations = n_output_negotiations = 0
    is_first_level = is_last_level = is_middle_level = False
    # the day
    current_step = 0
    relative_time = 0.0
    current_balance: float = 0
    current_inventory_input = 0
    current_inventory_output = 0
    current_exogenous_input_quantity = 0
    current_exogenous_input_price: float = 0
    current_exogenous_output_quantity = 0
    current_exogenous_output_price: float = 0
    current_disposal_cost = 0.0
    current_storage_cost = 0.0
    current_shortfall_penalty = 0.0
    trading_prices: np.ndarray | None = None
    exogenous_contract_summary: list[tuple[float, float]] = []  # noqa: RUF012 - shadows a property
    current_input_issues: list[Any] = []  # noqa: RUF012 - shadows a property; set on instances
    current_output_issues: list[Any] = []  # noqa: RUF012 - shadows a property; set on instances
    _stock = 0
    """Exogenous input and inventory minus exogenous output, today."""

    def __init__(self, world: WorldFacade, adapter: Any, profile: OneShotProfile) -> None:  # noqa: ANN401
        self._world = world
        self.agent = adapter
        self._id: str = adapter.id
        self._buying: dict[str, Any] = {}
        self._selling: dict[str, Any] = {}
        self._future_sales: Calendar = defaultdict(defaultdict_int)
        self._future_supplies: Calendar = defaultdict(defaultdict_int)
        self._future_sales_cost: Calendar = defaultdict(defaultdict_int)
        self._future_supplies_cost: Calendar = defaultdict(defaultdict_int)
        self._set_world(world)
        self._set_factory(world, profile)

    def _set_world(self, world: WorldFacade) -> None:
        self.n_steps = world.n_steps
        self.horizon = world.horizon
        self.n_products = world.n_products
        self.n_processes = world.n_products - 1
        self.max_n_lines = self.quantity_range = world.max_n_lines
        self.production_capacities = list(world.production_capacity)
        self.catalog_prices = world.catalog_prices.copy()

    def _set_factory(self, world: WorldFacade, profile: OneShotProfile) -> None:
        level = profile.input_product
        self.profile = profile
        self.n_lines = profile.n_lines
        self.level = self.my_input_product = level
        self.my_output_product = level + 1
        self.is_first_level = level == 0
        self.is_last_level = level + 1 == self.n_products - 1
        self.is_middle_level = 0 < level < self.n_products - 2
        self._suppliers = tuple(world.suppliers[level])
        self._consumers = tuple(world.consumers[level + 1])
        self.n_competitors = len(world.consumers[level]) - 1
        self.n_input_negotiations = 0 if self.is_first_level else len(self._suppliers)
        self.n_output_negotiations = 0 if self.is_last_level else len(self._consumers)

    # -- computed on reading: values that change during the day, and lists that agents may alter

    @property
    def my_suppliers(self) -> list[str]:
        """Ids of the factory's suppliers."""
        return list(self._suppliers)

    @property
    def my_consumers(self) -> list[str]:
        """Ids of the factory's consumers."""
        return list(self._consumers)

    @property
    def all_suppliers(self) -> list[list[str]]:
        """Ids of all suppliers by product."""
        return [list(ids) for ids in self._world.suppliers]

    @property
    def all_consumers(self) -> list[list[str]]:
        """Ids of all consumers by product."""
        return [list(ids) for ids in self._world.consumers]

    @property
    def current_negotiation_details(self) -> dict[str, dict[str, Any]]:
        """Today's running negotiations by partner, separated into "buy" and "sell"."""
        return {"buy": dict(self._buying), "sell": dict(self._selling)}

    @property
    def my_competitors(self) -> list[str]:
        """Factories of the same level."""
        return [aid for aid in self._world.consumers[self.level] if aid != self._id]

    @property
    def current_score(self) -> float:
        """Balance relative to the initial balance."""
        return self._world.scores()[self._id]

    @property
    def current_inventory(self) -> tuple[int, int]:
        """Input and output inventory."""
        return self.current_inventory_input, self.current_inventory_output

    @property
    def current_input_outcome_space(self) -> Any:  # noqa: ANN401 - negmas' outcome space
        """The outcome space of today's negotiations with suppliers."""
        return make_os(self.current_input_issues)

    @property
    def current_output_outcome_space(self) -> Any:  # noqa: ANN401 - negmas' outcome space
        """The outcome space of today's negotiations with consumers."""
        return make_os(self.current_output_issues)

    def is_bankrupt(self, aid: str | None = None) -> bool:
        """Return whether a factory is bankrupt (default: this one)."""
        return self._world.is_bankrupt[aid or self._id]

    @property
    def sales(self) -> dict[str, int]:
        """Today's sales per consumer."""
        return self._future_sales.get(self.current_step, {})

    @property
    def supplies(self) -> dict[str, int]:
        """Today's supplies per supplier."""
        return self._future_supplies.get(self.current_step, {})

    @property
    def total_sales(self) -> int:
        """Today's sales to factories."""
        sales = self._future_sales.get(self.current_step)
        return sum(sales.values()) if sales else 0

    @property
    def total_supplies(self) -> int:
        """Today's supplies from factories."""
        supplies = self._future_supplies.get(self.current_step)
        return sum(supplies.values()) if supplies else 0

    def total_sales_at(self, step: int) -> int:
        """Return sales to factories for delivery on day `step`, today or later."""
        if step < self.current_step:
            return 0
        sales = self._future_sales.get(step)
        return sum(sales.values()) if sales else 0

    def total_supplies_at(self, step: int) -> int:
        """Return supplies from factories for delivery on day `step`, today or later."""
        if step < self.current_step:
            return 0
        supplies = self._future_supplies.get(step)
        return sum(supplies.values()) if supplies else 0

    def total_sales_between(self, start: int, end: int) -> int:
        """Return sales to factories for delivery on the days `start` to `end`, both included, from today on."""
        return _between(self._future_sales, max(start, self.current_step), end)

    def total_supplies_between(self, start: int, end: int) -> int:
        """Return supplies from factories for delivery on the days `start` to `end`, both included, from today on."""
        return _between(self._future_supplies, max(start, self.current_step), end)

    def total_sales_from(self, start: int) -> int:
        """Return sales to factories for delivery on day `start` or later, from today on."""
        return _between(self._future_sales, max(start, self.current_step), self.n_steps - 1)

    def total_supplies_from(self, start: int) -> int:
        """Return supplies from factories for delivery on day `start` or later, from today on."""
        return _between(self._future_supplies, max(start, self.current_step), self.n_steps - 1)

    def total_sales_until(self, step: int) -> int:
        """Return sales to factories for delivery from today to day `step`."""
        return _between(self._future_sales, self.current_step, step)

    def total_supplies_until(self, step: int) -> int:
        """Return supplies from factories for delivery from today to day `step`."""
        return _between(self._future_supplies, self.current_step, step)

    @property
    def needed_sales(self) -> int:
        """Input available today that is not sold as output."""
        if self.is_last_level:
            return 0
        return self._surplus()

    @property
    def needed_supplies(self) -> int:
        """Output sold for today without input for it."""
        if self.is_first_level:
            return 0
        return -self._surplus()

    def _surplus(self) -> int:
        today = self.current_step
        surplus = self._stock
        supplies = self._future_supplies.get(today)
        if supplies:
            surplus += sum(supplies.values())
        sales = self._future_sales.get(today)
        if sales:
            surplus -= sum(sales.values())
        return surplus

    # -- what the engine calls

    def open_negotiations(self, buying: dict[str, Any], selling: dict[str, Any]) -> None:
        """Set the dictionaries of today's negotiations, which the engine updates."""
        self._buying, self._selling = buying, selling

    def register_sale(self, consumer: str, quantity: int, unit_price: int, day: int) -> None:
        """Register a sale that this factory has just concluded."""
        self._future_sales[day][consumer] += quantity
        self._future_sales_cost[day][consumer] += quantity * unit_price

    def register_supply(self, supplier: str, quantity: int, unit_price: int, day: int) -> None:
        """Register a purchase that this factory has just concluded."""
        self._future_supplies[day][supplier] += quantity
        self._future_supplies_cost[day][supplier] += quantity * unit_price

    def forget_past(self) -> None:
        """Drop contracts for days that are over."""
        today = self.current_step
        for calendar in (
            self._future_supplies,
            self._future_supplies_cost,
            self._future_sales,
            self._future_sales_cost,
        ):
            if calendar:
                for day in [day for day in calendar if day < today]:
                    del calendar[day]


def _between(calendar: Calendar, first: int, last: int) -> int:
    if not calendar:
        return 0
    return sum([sum(quantities.values()) for day, quantities in calendar.items() if first <= day <= last])
