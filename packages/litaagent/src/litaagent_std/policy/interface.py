"""The public part of scml's agent-world interface that observations are taken from.

Written as protocols, so that this package imports nothing of scml: a live agent passes its ``awi``, a recorder
passes an object with the same attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class FactoryProfile(Protocol):
    """Private, constant facts of a factory."""

    cost: float
    shortfall_penalty_mean: float
    storage_cost_mean: float
    disposal_cost_mean: float


class Report(Protocol):
    """One published financial report."""

    step: int
    cash: float
    assets: float
    breach_prob: float
    breach_level: float
    is_bankrupt: bool


class IssueLike(Protocol):
    """One issue of an agenda: an integer range."""

    min_value: int
    max_value: int


class DayInterface(Protocol):
    """What `observe_day` reads; every name is public in ``scml.std.StdAWI``."""

    current_step: int
    n_steps: int
    horizon: int
    n_products: int
    n_lines: int
    level: int
    is_first_level: bool
    is_last_level: bool
    is_perishable: bool
    current_balance: float
    current_inventory_input: int
    current_inventory_output: int
    needed_sales: int
    needed_supplies: int
    current_exogenous_input_quantity: int
    current_exogenous_input_price: float
    current_exogenous_output_quantity: int
    current_exogenous_output_price: float
    current_shortfall_penalty: float
    current_storage_cost: float
    current_disposal_cost: float

    @property
    def my_input_product(self) -> int:
        """Index of the product that the factory buys."""

    @property
    def my_output_product(self) -> int:
        """Index of the product that the factory sells."""

    @property
    def my_suppliers(self) -> Sequence[str]:
        """Ids of the suppliers."""

    @property
    def my_consumers(self) -> Sequence[str]:
        """Ids of the consumers."""

    @property
    def my_competitors(self) -> Sequence[str]:
        """Ids of the other factories of the same level."""

    @property
    def profile(self) -> FactoryProfile:
        """The factory's constants."""

    @property
    def trading_prices(self) -> Sequence[float] | Any:  # noqa: ANN401 - scml gives a numpy array
        """Trading price of each product."""

    @property
    def catalog_prices(self) -> Sequence[float] | Any:  # noqa: ANN401 - scml gives a numpy array
        """Catalog price of each product."""

    @property
    def exogenous_contract_summary(self) -> Sequence[tuple[float, float]]:
        """Total quantity and total price of today's exogenous contracts, per product."""

    @property
    def current_input_issues(self) -> Sequence[IssueLike]:
        """Quantity, time and unit price issues of today's purchases."""

    @property
    def current_output_issues(self) -> Sequence[IssueLike]:
        """Quantity, time and unit price issues of today's sales."""

    @property
    def sales(self) -> Mapping[str, int]:
        """Units sold for today, by consumer."""

    @property
    def sales_cost(self) -> Mapping[str, float]:
        """Value of the units sold for today, by consumer."""

    @property
    def supplies(self) -> Mapping[str, int]:
        """Units bought for today, by supplier."""

    @property
    def supplies_cost(self) -> Mapping[str, float]:
        """Value of the units bought for today, by supplier."""

    @property
    def future_sales(self) -> Mapping[int, Mapping[str, int]]:
        """Units sold for later days, by day and consumer."""

    @property
    def future_sales_cost(self) -> Mapping[int, Mapping[str, float]]:
        """Value of the units sold for later days, by day and consumer."""

    @property
    def future_supplies(self) -> Mapping[int, Mapping[str, int]]:
        """Units bought for later days, by day and supplier."""

    @property
    def future_supplies_cost(self) -> Mapping[int, Mapping[str, float]]:
        """Value of the units bought for later days, by day and supplier."""

    def is_bankrupt(self, aid: str | None = None) -> bool:
        """Whether a factory is bankrupt; default: the agent itself."""

    def is_system(self, aid: str) -> bool:
        """Whether an id belongs to a system agent."""

    def reports_of_agent(self, aid: str) -> Mapping[int, Report] | None:
        """Every report of a factory by day; None before the first."""
