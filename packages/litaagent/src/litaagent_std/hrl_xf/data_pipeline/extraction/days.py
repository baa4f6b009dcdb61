"""A world's observations as numpy columns: what `observe_day` gives, for all days and factories at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from litaagent_std.hrl_xf.data_pipeline.extraction.columns import ints
from litaagent_std.policy.arrays import Array, Bools, Floats, Ints
from litaagent_std.policy.observation import REPORTS_KEPT, Agenda, Calendar, Observation, Partner
from litaagent_std.records.world import WorldRecord

__all__ = ["Reports", "WorldDays"]

_WHOLE: Final = ("stock_in", "needed_sales", "needed_supplies", "exogenous_in", "exogenous_out")
_REAL: Final = (
    "balance",
    "exogenous_in_value",
    "exogenous_out_value",
    "shortfall_penalty",
    "storage_cost",
    "disposal_cost",
)
_ENDS: Final = ("quantity_min", "quantity_max", "time_min", "time_max", "price_min", "price_max")


@dataclass(frozen=True, slots=True)
class Reports:
    """The latest reports about each factory that are published by day start, [day, factory].

    Attributes:
        days: Days of reports by factory.
        cash: Cash in them, by factory.
        stop: How many of a factory's reports are published.
        kept: How many of these an observation keeps.
        first_day: Day of the oldest kept report.
        first_cash: Cash in it.
        last_day: Day of the latest report, -1 if none.
        last_cash: Cash in it.
        assets: Assets in it.
        breach_probability: Its breach probability.
        breach_level: Its breach level.
    """

    days: list[list[int]]
    cash: list[list[float]]
    stop: Ints
    kept: Ints
    first_day: Ints
    first_cash: Floats
    last_day: Ints
    last_cash: Floats
    assets: Floats
    breach_probability: Floats
    breach_level: Floats

    @classmethod
    def of(cls, record: WorldRecord, n_days: int, n_seats: int) -> Reports:
        """Read the reports of a world."""
        table = record.tables["reports"]
        day, factory = ints(table["day"]), ints(table["factory"])
        order = np.lexsort((day, factory))
        names = ("cash", "assets", "breach_probability", "breach_level")
        values = np.stack([floats(table[name])[order] for name in names]) if len(order) else np.zeros((4, 0))
        day, factory = day[order], factory[order]
        starts = np.searchsorted(factory, np.arange(n_seats + 1))  # reports are sorted by factory and day
        report_days = [day[low:high] for low, high in pairwise(starts.tolist())]
        # [day, factory] reports of earlier days, how many of them are kept, and rows of the last and first kept one
        stop = np.stack([np.searchsorted(own, np.arange(n_days)) for own in report_days], axis=1)
        kept = np.minimum(stop, REPORTS_KEPT)
        published = stop > 0
        last = np.where(published, starts[:-1] + stop - 1, 0)
        first = np.where(published, starts[:-1] + stop - kept, 0)
        padded_day, padded = np.append(day, 0), np.concatenate([values, np.zeros((4, 1))], axis=1)
        latest = np.where(published, padded[:, last], 0.0)  # [4, day, factory]
        return cls(
            [own.tolist() for own in report_days],
            [values[0, low:high].tolist() for low, high in pairwise(starts.tolist())],
            stop,
            kept,
            np.where(published, padded_day[first], 0),
            np.where(published, padded[0, first], 0.0),
            np.where(published, padded_day[last], -1),
            *latest,
        )


@dataclass(frozen=True, slots=True)
class WorldDays:
    """Observations of a world.

    Attributes:
        names: Ids of the factories.
        n_levels: Production levels.
        horizon: The league's horizon.
        level: Level of each factory.
        lines: Its production lines.
        factories: Its row of the table ``factories``.
        catalog: Catalog prices, [product].
        trading: Trading prices, [day, product].
        supply: Units of exogenous contracts, [day, product].
        supply_value: Their value, [day, product].
        ends: Legal ranges in the order of `Agenda`, [day, product, 6].
        private: Columns of the table ``days``, [day, factory].
        bankrupt: Whether a factory is bankrupt, [day, factory].
        calendar: Units and value bought, units and value sold, [4, day, factory, lead].
        reports: Published reports.
    """

    names: tuple[str, ...]
    n_levels: int
    horizon: int
    level: Ints
    lines: Ints
    factories: list[dict[str, Any]]
    catalog: Floats
    trading: Floats
    supply: Floats
    supply_value: Floats
    ends: Ints
    private: dict[str, Array]
    bankrupt: Bools
    calendar: Floats
    reports: Reports

    @classmethod
    def of(cls, record: WorldRecord) -> WorldDays:
        """Read a world."""
        facts, factories = record.facts, record.factories
        n_days, n_seats, n_products = facts["n_days"], len(factories), facts["n_levels"] + 1
        days, markets = record.tables["days"], record.tables["markets"]
        at = (ints(days["day"]), ints(days["factory"]))  # each row's index in [day, factory]
        private: dict[str, Array] = {}
        # columns of the table `days` as [day, factory]
        for name in (*_WHOLE, *_REAL):
            kind = np.int64 if name in _WHOLE else np.float64
            private[name] = np.zeros((n_days, n_seats), kind)
            private[name][at] = days[name].to_numpy()
        bankrupt = np.zeros((n_days, n_seats), np.bool_)
        bankrupt[at] = days["bankrupt"].to_numpy()
        market = (ints(markets["day"]), ints(markets["product"]))  # each row's index in [day, product]
        prices = np.zeros((3, n_days, n_products))
        for row, name in enumerate(("trading_price", "exogenous_quantity", "exogenous_value")):
            prices[row][market] = floats(markets[name])
        ends = np.zeros((n_days, n_products, len(_ENDS)), np.int64)
        ends[market] = np.stack([ints(markets[name]) for name in _ENDS], axis=1)
        return cls(
            record.names,
            facts["n_levels"],
            facts["horizon"],
            np.array([row["level"] for row in factories]),
            np.array([row["n_lines"] for row in factories]),
            factories,
            np.array(facts["catalog_prices"]),
            prices[0],
            prices[1],
            prices[2],
            ends,
            private,
            bankrupt,
            _calendar(record, bankrupt, facts["horizon"]),
            Reports.of(record, n_days, n_seats),
        )

    @property
    def n_days(self) -> int:
        """Days of the world."""
        return len(self.trading)

    def seats_at(self, level: int) -> list[int]:
        """Return the factories of a level in seat order."""
        return np.flatnonzero(self.level == level).tolist()

    def partners(self) -> list[list[Partner]]:
        """Return every factory as others see it, [day][factory]."""
        r = self.reports
        columns = zip(
            r.stop.tolist(),
            r.kept.tolist(),
            r.assets.tolist(),
            r.breach_probability.tolist(),
            r.breach_level.tolist(),
            self.bankrupt.tolist(),
            strict=True,
        )
        return [
            [
                Partner(name, bankrupt, tuple(days[stop - kept : stop]), tuple(cash[stop - kept : stop]), *latest)
                for name, days, cash, stop, kept, *latest, bankrupt in zip(
                    self.names, r.days, r.cash, *day, strict=True
                )
            ]
            for day in columns
        ]

    def observations(self, seat: int, partners: list[list[Partner]]) -> list[Observation]:
        """Return a factory's observations by day, equal to `WorldRecord.observations`.

        Args:
            seat: The factory.
            partners: From `partners`.
        """
        level = int(self.level[seat])
        # seats of suppliers, consumers and competitors
        groups = [self.seats_at(level - 1) if level else [], self.seats_at(level + 1), self.seats_at(level)]
        groups[2] = [other for other in groups[2] if other != seat]
        constants, columns = self._constants(seat), self._by_day(seat)
        prices: list[tuple[float, ...]] = columns["trading_prices"]
        observations = []
        for day in range(self.n_days):
            suppliers, consumers, competitors = (tuple([partners[day][other] for other in group]) for group in groups)
            observations.append(
                Observation(
                    day=day,
                    **constants,
                    **{name: values[day] for name, values in columns.items()},
                    price_history=tuple(prices[: day + 1]),
                    calendar=self._calendar(seat, day),
                    suppliers=suppliers,
                    consumers=consumers,
                    competitors=competitors,
                )
            )
        return observations

    def _constants(self, seat: int) -> dict[str, Any]:
        """Return the fields of a factory's observations that never change."""
        row = self.factories[seat]
        means = ("shortfall_penalty_mean", "storage_cost_mean", "disposal_cost_mean")
        return {
            "n_days": self.n_days,
            "horizon": self.horizon,
            "level": int(self.level[seat]),
            "n_levels": self.n_levels,
            "n_lines": row["n_lines"],
            "perishable": False,
            "stock_out": 0,
            "initial_balance": float(self.private["balance"][0, seat]),
            "production_cost": row["cost"],
            "catalog_prices": tuple(self.catalog.tolist()),
            **{name: row[name] for name in means},
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

    def _calendar(self, seat: int, day: int) -> Calendar:
        bought, bought_value, sold, sold_value = self.calendar[:, day, seat].tolist()
        units = tuple(map(int, bought)), tuple(map(int, sold))
        return Calendar(units[0], tuple(bought_value), units[1], tuple(sold_value))


def floats(column: Any) -> Floats:  # noqa: ANN401 - an Arrow column
    """Return an Arrow column as floats."""
    return np.asarray(column.to_numpy(), np.float64)


def _calendar(record: WorldRecord, bankrupt: Bools, horizon: int) -> Floats:
    """Return commitments at day start by lead: contracts of earlier days whose partner is not bankrupt.

    Returns:
        Units and value bought, units and value sold, [4, day, factory, lead].
    """
    table = record.tables["contracts"]
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
