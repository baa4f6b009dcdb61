"""A world's observations as numpy columns: what the factories saw at the start of their days.

`WorldDays` reads the tables once. From it come the `ObservationBatch` that features, bounds and goals are computed
from, and single observations, equal to what `observe_day` gave the live agents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from litaagent_std.policy.arrays import Array, Bools, Floats, Ints
from litaagent_std.policy.columns import PRICE_DAYS, CalendarBatch, ObservationBatch, PartnerBatch
from litaagent_std.policy.observation import REPORTS_KEPT, Agenda, Calendar, Observation, Partner
from litaagent_std.records.columns import bankrupt_days, floats, ints
from litaagent_std.records.storage.segment import Tables

__all__ = ["WorldDays"]

_WHOLE: Final = ("stock_in", "needed_sales", "needed_supplies", "exogenous_in", "exogenous_out")
_REAL: Final = (
    "balance",
    "exogenous_in_value",
    "exogenous_out_value",
    "shortfall_penalty",
    "storage_cost",
    "disposal_cost",
)
_CONSTANTS: Final = ("cost", "shortfall_penalty_mean", "storage_cost_mean", "disposal_cost_mean")
_ENDS: Final = ("quantity_min", "quantity_max", "time_min", "time_max", "price_min", "price_max")


@dataclass(frozen=True, slots=True)
class _Reports:
    """The latest reports about each factory that are published by day start; see `policy.columns.PartnerBatch`.

    Attributes:
        kept: How many of them an observation keeps, [day, factory].
        days: Their days, the latest last, [day, factory, REPORTS_KEPT].
        cash: Cash in them, likewise.
        latest: Assets, breach probability and breach level of the latest, [3, day, factory].
    """

    kept: Ints
    days: Ints
    cash: Floats
    latest: Floats

    @classmethod
    def of(cls, tables: Tables, n_days: int, n_seats: int) -> _Reports:
        table = tables["reports"]
        day, factory = ints(table["day"]), ints(table["factory"])
        order = np.lexsort((day, factory))
        day, factory = day[order], factory[order]
        names = ("cash", "assets", "breach_probability", "breach_level")
        # [4, reports + 1] sorted by factory and day; the last one stands for none
        values = np.stack([np.append(floats(table[name])[order], 0.0) for name in names])
        # [day, factory] end of the factory's reports of earlier days, and how many of them are kept
        starts = np.searchsorted(factory, np.arange(n_seats))
        own = [day[factory == seat] for seat in range(n_seats)]
        published = np.stack([np.searchsorted(days, np.arange(n_days)) for days in own], axis=1)
        stop, kept = starts + published, np.minimum(published, REPORTS_KEPT)
        # [day, factory, REPORTS_KEPT] rows of the kept ones, right-aligned
        back = np.arange(REPORTS_KEPT, 0, -1)
        rows = np.where(back <= kept[:, :, None], stop[:, :, None] - back, len(day))
        return cls(kept, np.append(day, 0)[rows], values[0][rows], values[1:, rows[:, :, -1]])


@dataclass(frozen=True, slots=True)
class WorldDays:
    """Observations of a world.

    Attributes:
        names: Ids of the factories.
        n_levels: Production levels.
        horizon: The league's horizon.
        level: Level of each factory.
        lines: Its production lines.
        constants: Columns of the table ``factories`` by name, [factory].
        catalog: Catalog prices, [product].
        trading: Trading prices, [day, product].
        supply: Units of exogenous contracts, [day, product].
        supply_value: Their value, [day, product].
        ends: Legal ranges in the order of `Agenda`, [day, product, 6].
        private: Columns of the table ``days`` by name, [day, factory].
        bankrupt: Whether a factory is bankrupt, [day, factory].
        calendar: Units and value bought, units and value sold, [4, day, factory, lead].
        reports: Published reports.
    """

    names: tuple[str, ...]
    n_levels: int
    horizon: int
    level: Ints
    lines: Ints
    constants: dict[str, Floats]
    catalog: Floats
    trading: Floats
    supply: Floats
    supply_value: Floats
    ends: Ints
    private: dict[str, Array]
    bankrupt: Bools
    calendar: Floats
    reports: _Reports

    @classmethod
    def of(cls, tables: Tables) -> WorldDays:
        """Read a world."""
        [facts], factories = tables["worlds"].to_pylist(), tables["factories"]
        n_days, n_seats, n_products = facts["n_days"], factories.num_rows, facts["n_levels"] + 1
        days, markets = tables["days"], tables["markets"]
        at = (ints(days["day"]), ints(days["factory"]))  # each row's index in [day, factory]
        private: dict[str, Array] = {}
        # columns of the table `days` as [day, factory]
        for name in (*_WHOLE, *_REAL):
            kind = np.int64 if name in _WHOLE else np.float64
            private[name] = np.zeros((n_days, n_seats), kind)
            private[name][at] = days[name].to_numpy()
        market = (ints(markets["day"]), ints(markets["product"]))  # each row's index in [day, product]
        prices = np.zeros((3, n_days, n_products))
        for row, name in enumerate(("trading_price", "exogenous_quantity", "exogenous_value")):
            prices[row][market] = floats(markets[name])
        ends = np.zeros((n_days, n_products, len(_ENDS)), np.int64)
        ends[market] = np.stack([ints(markets[name]) for name in _ENDS], axis=1)
        bankrupt = bankrupt_days(days, n_days, n_seats)
        return cls(
            tuple(factories["name"].to_pylist()),
            facts["n_levels"],
            facts["horizon"],
            ints(factories["level"]),
            ints(factories["n_lines"]),
            {name: floats(factories[name]) for name in _CONSTANTS},
            np.array(facts["catalog_prices"]),
            prices[0],
            prices[1],
            prices[2],
            ends,
            private,
            bankrupt,
            _calendar(tables, bankrupt, facts["horizon"]),
            _Reports.of(tables, n_days, n_seats),
        )

    @property
    def n_days(self) -> int:
        """Days of the world."""
        return len(self.trading)

    def seats_at(self, level: int) -> Ints:
        """Return the factories of a level in seat order."""
        return np.flatnonzero(self.level == level)

    def batch(self, seats: Sequence[int]) -> ObservationBatch:
        """Return all days of some factories: all days of the first, then all of the second, and so on."""
        seat, day = np.repeat(seats, self.n_days), np.tile(np.arange(self.n_days), len(seats))  # [B] each
        at, level = (day, seat), self.level[seat]
        products = np.stack([level, level + 1], axis=1)  # [B, 2] input and output
        own = {name: values[at] for name, values in self.private.items()}
        constants = {name: values[seat] for name, values in self.constants.items()}
        trades = np.stack([level > 0, level < self.n_levels - 1], axis=1)
        back = np.maximum(0, day[:, None] - np.arange(PRICE_DAYS + 1))  # [B, PRICE_DAYS + 1]
        bought, bought_value, sold, sold_value = self.calendar[:, day, seat]
        cash, cost, edges = own.pop("balance"), constants.pop("cost"), [0, self.n_levels]
        return ObservationBatch(
            **own,
            **constants,
            day=day,
            n_days=np.full(len(day), self.n_days),
            horizon=np.full(len(day), self.horizon),
            level=level,
            n_levels=np.full(len(day), self.n_levels),
            n_lines=self.lines[seat],
            perishable=np.zeros(len(day), np.bool_),
            cash=cash,
            initial_balance=self.private["balance"][0, seat],
            stock_out=np.zeros(len(day), np.int64),
            production_cost=cost,
            price=self.trading[day[:, None], products],
            catalog=self.catalog[products],
            past=self.trading[back[:, :, None], products[:, None]],
            n_past=day,
            market_price=self.trading[day][:, edges],
            market_quantity=self.supply[day][:, edges],
            market_value=self.supply_value[day][:, edges],
            trades=trades,
            agenda=np.where(trades[:, :, None], self.ends[day[:, None], products], 0),
            calendar=CalendarBatch(bought.astype(np.int64), bought_value, sold.astype(np.int64), sold_value),
            suppliers=self._partners(seat, day, -1),
            consumers=self._partners(seat, day, 1),
            competitors=self._partners(seat, day, 0),
        )

    def _partners(self, seat: Ints, day: Ints, step: int) -> PartnerBatch:
        """Return the factories of the level next to the own one, or of the same level, [B, P]."""
        groups = [self._group(own, step) for own in range(len(self.level))]
        width = max((len(groups[own]) for own in set(seat.tolist())), default=0)
        table = np.full((len(groups), width), -1)  # [factory, P] seats of its partners
        for own, group in enumerate(groups):
            table[own, : len(group)] = group[:width]
        other = table[seat]
        there, reports = other >= 0, self.reports
        at = (day[:, None], other)

        def known(values: Array) -> Any:  # noqa: ANN401 - an array of the same type
            return np.where(there if values.ndim == 2 else there[:, :, None], values[at], values.dtype.type(0))

        latest = (known(values) for values in reports.latest)
        return PartnerBatch(
            there, known(self.bankrupt), known(reports.kept), known(reports.days), known(reports.cash), *latest
        )

    def _group(self, seat: int, step: int) -> Ints:
        """Return a factory's suppliers (-1), consumers (1) or competitors (0), in seat order."""
        group = self.seats_at(int(self.level[seat]) + step)
        return group if step else group[group != seat]

    def observations(self, seat: int) -> list[Observation]:
        """Return a factory's observations by day."""
        groups = [self._group(seat, step) for step in (-1, 1, 0)]
        constants, columns = self._constants(seat), self._by_day(seat)
        prices: list[tuple[float, ...]] = columns["trading_prices"]
        observations = []
        for day in range(self.n_days):
            suppliers, consumers, competitors = (
                tuple(self._partner(day, other) for other in group) for group in groups
            )
            observations.append(
                Observation(
                    day=day,
                    **constants,
                    **{name: values[day] for name, values in columns.items()},
                    price_history=tuple(prices[: day + 1]),
                    calendar=self._calendar_of(seat, day),
                    suppliers=suppliers,
                    consumers=consumers,
                    competitors=competitors,
                )
            )
        return observations

    def _partner(self, day: int, seat: int) -> Partner:
        reports, bankrupt = self.reports, bool(self.bankrupt[day, seat])
        first = REPORTS_KEPT - int(reports.kept[day, seat])
        days, cash = reports.days[day, seat, first:].tolist(), reports.cash[day, seat, first:].tolist()
        return Partner(self.names[seat], bankrupt, tuple(days), tuple(cash), *reports.latest[:, day, seat].tolist())

    def _constants(self, seat: int) -> dict[str, Any]:
        """Return the fields of a factory's observations that never change."""
        constants = {name: float(values[seat]) for name, values in self.constants.items()}
        return {
            "n_days": self.n_days,
            "horizon": self.horizon,
            "level": int(self.level[seat]),
            "n_levels": self.n_levels,
            "n_lines": int(self.lines[seat]),
            "perishable": False,
            "stock_out": 0,
            "initial_balance": float(self.private["balance"][0, seat]),
            "production_cost": constants.pop("cost"),
            "catalog_prices": tuple(self.catalog.tolist()),
            **constants,
        }

    def _by_day(self, seat: int) -> dict[str, list[Any]]:
        """Return the fields of a factory's observations that are columns of the tables."""
        level = int(self.level[seat])
        nothing = [None] * self.n_days
        own = {name: values[:, seat].tolist() for name, values in self.private.items()}
        own["cash"] = own.pop("balance")
        return {
            **own,
            "trading_prices": [tuple(day) for day in self.trading.tolist()],
            "market_exogenous_quantity": [tuple(day) for day in self.supply.tolist()],
            "market_exogenous_value": [tuple(day) for day in self.supply_value.tolist()],
            "buy_agenda": [Agenda(*ends) for ends in self.ends[:, level].tolist()] if level else nothing,
            "sell_agenda": [Agenda(*ends) for ends in self.ends[:, level + 1].tolist()]
            if level < self.n_levels - 1
            else nothing,
        }

    def _calendar_of(self, seat: int, day: int) -> Calendar:
        bought, bought_value, sold, sold_value = self.calendar[:, day, seat].tolist()
        units = tuple(map(int, bought)), tuple(map(int, sold))
        return Calendar(units[0], tuple(bought_value), units[1], tuple(sold_value))


def _calendar(tables: Tables, bankrupt: Bools, horizon: int) -> Floats:
    """Return commitments at day start by lead: contracts of earlier days whose partner is not bankrupt.

    Returns:
        Units and value bought, units and value sold, [4, day, factory, lead].
    """
    table = tables["contracts"]
    columns: Sequence[Ints] = [ints(table[n]) for n in ("day", "time", "buyer", "seller", "quantity", "unit_price")]
    signed, time = columns[0], columns[1]
    n_days, n_seats = bankrupt.shape
    # [contract] first day on which it is in the calendar, and on how many days
    first = np.maximum(signed + 1, time - horizon)
    count = np.maximum(0, np.minimum(time, n_days - 1) - first + 1)
    # one row per contract and day on which it is in the calendar
    contract = np.repeat(np.arange(len(signed)), count)
    day = first[contract] + np.arange(len(contract)) - np.repeat(np.cumsum(count) - count, count)
    _, time, buyer, seller, quantity, price = (column[contract] for column in columns)
    calendar = np.zeros((4, n_days, n_seats, horizon + 1))
    for row, (own, other) in enumerate(((buyer, seller), (seller, buyer))):
        valid = ~bankrupt[day, other]
        at = (day[valid], own[valid], (time - day)[valid])
        np.add.at(calendar[2 * row], at, quantity[valid])
        np.add.at(calendar[2 * row + 1], at, (quantity * price)[valid])
    return calendar
