"""The recorder: an observer that keeps everything of a world, for every factory at once, without touching an agent.

During the world it appends plain integers to one list and packs them at the end of each day; tables are made once,
column by column, at the end. It is an observer like any other, so both engines give the same record.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from litaagent_std.policy.arrays import Floats, Ints, Ints32
from litaagent_std.records.assembly import as_text, from_columns, from_rows
from litaagent_std.records.negotiation_columns import (
    DECIDED,
    FAILED,
    REASONS,
    EndColumns,
    TurnColumns,
    negotiation_columns,
)
from litaagent_std.records.reasons import ReasonLog
from litaagent_std.world.events import (
    NOTHING,
    STATUSES,
    AgentError,
    DayEnd,
    DayStart,
    EndRow,
    Settlement,
    TurnRow,
    WorldEnd,
    WorldObserver,
    WorldStart,
)
from litaagent_std.world.fast.reports import REPORT_PERIOD

if TYPE_CHECKING:
    from collections.abc import Callable

    from litaagent_std.world.setup import WorldSetup

__all__ = ["Recorder", "WorldFacts"]


@dataclass(frozen=True, slots=True)
class WorldFacts:
    """Which world of its tournament a record is of.

    Attributes:
        world: Its number.
        config: Number of its configuration.
        run: Which run of the configuration.
        rotation: Which assignment of competitors to seats.
        config_seed: Seed that the configuration was drawn with.
        competitors: The competitor in each seat as the tournament names it; None for default agents.
        inventory: The rule of inventory.
    """

    world: int
    config: int
    run: int
    rotation: int
    config_seed: int
    competitors: tuple[str | None, ...]
    inventory: str = "as_shipped"


class Recorder(WorldObserver):
    """Keeps a world's record; ask for `tables` when the world has ended.

    Args:
        setup: The world.
        facts: Which world of the tournament it is.
        reasons: Whether to keep the reasons of agents that have a `policy.brain.Brain`, too.
    """

    def __init__(self, setup: WorldSetup, facts: WorldFacts, *, reasons: bool = False) -> None:
        self._setup = setup
        self._facts = facts
        self._keeps_reasons = reasons
        # flat rows of the day: turns, ends, decisions and failures in their order; packed at the end of each day
        self._rows: list[int] = []
        self._packed: list[Ints32] = []
        self._decision_rows = [_marker(seat, DECIDED) for seat in range(setup.n_seats)]
        self._day_starts: list[DayStart] = []
        self._day_ends: list[DayEnd] = []
        self._settlements: list[Settlement] = []
        self._errors: list[tuple[Any, ...]] = []
        self._bankrupt_day: dict[int, int] = {}

    # -- events

    def on_world_start(self, event: WorldStart) -> None:
        """Take the facts of the world."""
        self._start = event
        self._seat = {name: seat for seat, name in enumerate(event.agents)}
        self._reasons = ReasonLog(event.controllers) if self._keeps_reasons else None

    def on_day_start(self, event: DayStart) -> None:
        """Take every factory's state, before any agent is called."""
        self._day_starts.append(event)

    @property
    def on_turn(self) -> Callable[[TurnRow], None]:
        """Append turns, the most frequent event by far."""
        return self._rows.extend

    @property
    def on_end(self) -> Callable[[EndRow], None]:
        """Append ends of negotiations."""
        return self._rows.extend

    def on_decision(self, seat: int) -> None:
        """Take the moment at which a synchronous agent decides about all its partners."""
        self._rows.extend(self._decision_rows[seat])

    @property
    def on_settlement(self) -> Callable[[Settlement], None]:
        """Append the settled days of factories."""
        return self._settlements.append

    def on_bankruptcy(self, day: int, agent: str, balance: float) -> None:
        """Take a bankruptcy."""
        self._bankrupt_day[self._seat[agent]] = day

    def on_error(self, event: AgentError) -> None:
        """Take an exception of an agent."""
        seat = self._seat[event.agent]
        if event.where == "negotiation":
            self._rows.extend(_marker(seat, FAILED))
        self._errors.append((event.day, seat, event.where, event.kind, event.message))

    def on_day_end(self, event: DayEnd) -> None:
        """Take the state of the world after the day."""
        self._day_ends.append(event)
        self._packed.append(np.fromiter(self._rows, np.int32, len(self._rows)))
        self._rows.clear()
        if self._reasons is not None:
            self._reasons.take_day(event.day)

    def on_world_end(self, event: WorldEnd) -> None:
        """Take the scores."""
        self._end = event

    # -- tables

    def tables(self) -> dict[str, pa.Table]:
        """Return the complete record.

        Raises:
            RuntimeError: If the world has not ended.
        """
        if not hasattr(self, "_end"):
            raise RuntimeError("the world has not ended; a record is complete or it is not made")
        columns = negotiation_columns(self._packed)
        tables = {
            "worlds": self._from_rows("worlds", [self._world_row()]),
            "factories": self._from_rows("factories", self._factory_rows()),
            "markets": self._market_table(),
            "days": self._day_table(columns.ends),
            "exogenous": self._exogenous_table(),
            "negotiations": self._negotiation_table(columns.ends),
            "turns": self._turn_table(columns.turns),
            "contracts": self._contract_table(columns.ends),
            "settlements": self._settlement_table(),
            "reports": self._report_table(),
            "errors": self._from_rows("errors", self._errors),
        }
        if self._reasons is not None:
            ends = columns.ends
            keys = np.column_stack([ends.day, ends.rows[:, 0], ends.rows[:, 4], ends.rows[:, 5]]).astype(np.int64)
            tables |= self._reasons.tables(self._facts.world, self._seat, keys)
        return tables

    def _from_rows(self, name: str, rows: list[tuple[Any, ...]]) -> pa.Table:
        return from_rows(name, self._facts.world, rows)

    def _from_columns(self, name: str, columns: dict[str, Any], masks: dict[str, Any] | None = None) -> pa.Table:
        return from_columns(name, self._facts.world, columns, masks)

    def _world_row(self) -> tuple[Any, ...]:
        facts, setup = self._facts, self._setup
        origin = (facts.config, facts.run, facts.rotation, facts.config_seed, setup.seed, setup.digest, facts.inventory)
        shape = (setup.n_days, setup.n_levels, setup.n_seats, setup.n_rounds, setup.horizon, setup.price_range)
        return (*origin, *shape, list(self._start.catalog_prices), self._end.limit_fired)

    def _factory_rows(self) -> list[tuple[Any, ...]]:
        rows = []
        for seat, (name, factory, spec) in enumerate(
            zip(self._start.agents, self._setup.factories, self._setup.agents, strict=True)
        ):
            who = (seat, name, factory.level, self._start.agent_types[seat], self._facts.competitors[seat])
            costs = (*factory.shortfall_penalty, *factory.storage_cost, *factory.disposal_cost)
            constants = (factory.n_lines, float(factory.cost), float(factory.balance), *costs)
            outcome = (self._end.scores[name], self._end.n_errors.get(name, 0), self._bankrupt_day.get(seat))
            rows.append((*who, json.dumps(dict(spec.params), sort_keys=True), *constants, *outcome))
        return rows

    @cached_property
    def _exogenous(self) -> Ints:
        """All exogenous contracts: day, buyer, seller, product, quantity, unit price, [contracts, 6]."""
        seat = self._seat
        rows = [
            (start.day, seat.get(c.buyer, -1), seat.get(c.seller, -1), c.product, c.quantity, c.unit_price)
            for start in self._day_starts
            for c in start.exogenous
        ]
        return np.array(rows, np.int64).reshape(-1, 6)

    @cached_property
    def _stock(self) -> Ints:
        """Input stock at day start, [days, seats]."""
        return np.array([start.inventories for start in self._day_starts])

    @cached_property
    def _forced(self) -> Ints:
        """Exogenous purchases and sales, units and value of each, [days, seats, 4]."""
        day, buyer, seller, _, quantity, price = self._exogenous.T
        forced = np.zeros((len(self._day_starts), self._setup.n_seats, 4), np.int64)
        for seat, column in ((buyer, 0), (seller, 2)):
            ours = seat >= 0
            np.add.at(forced, (day[ours], seat[ours], column), quantity[ours])
            np.add.at(forced, (day[ours], seat[ours], column + 1), (quantity * price)[ours])
        return forced

    def _market_table(self) -> pa.Table:
        starts, ends = self._day_starts, self._day_ends
        prices = np.array([start.trading_prices for start in starts])
        days, products = prices.shape  # all arrays below are [days, products]
        ranges = np.array([start.issues for start in starts]).reshape(days, products, 6)
        day, _, _, product, quantity, price = self._exogenous.T
        traded = np.zeros((2, days, products), np.int64)
        np.add.at(traded, (0, day, product), quantity)
        np.add.at(traded, (1, day, product), quantity * price)
        columns = {
            "day": np.repeat(np.arange(days), products),
            "product": np.tile(np.arange(products), days),
            "trading_price": prices,
            "quantity_min": ranges[:, :, 0],
            "quantity_max": ranges[:, :, 1],
            "time_min": ranges[:, :, 2],
            "time_max": ranges[:, :, 3],
            "price_min": ranges[:, :, 4],
            "price_max": ranges[:, :, 5],
            "exogenous_quantity": traded[0],
            "exogenous_value": traded[1],
            "sold_quantity": np.array([end.sold_quantities for end in ends]),
            "next_trading_price": np.array([end.trading_prices for end in ends]),
        }
        return self._from_columns("markets", {name: values.ravel() for name, values in columns.items()})

    def _day_table(self, ends: EndColumns) -> pa.Table:
        days, seats = self._stock.shape  # all arrays below are [days, seats]
        forced, costs = self._forced, self._start.daily_costs
        levels = np.array(self._start.levels)
        # units that the factory has or will get today, minus those that it owes today
        surplus = forced[:, :, 0] + self._stock - forced[:, :, 2] + self._due(ends)
        columns = {
            "day": np.repeat(np.arange(days), seats),
            "factory": np.tile(np.arange(seats), days),
            "balance": np.array([start.balances for start in self._day_starts]),
            "stock_in": self._stock,
            "exogenous_in": forced[:, :, 0],
            "exogenous_in_value": forced[:, :, 1],
            "exogenous_out": forced[:, :, 2],
            "exogenous_out_value": forced[:, :, 3],
            "needed_sales": np.where(levels == self._setup.n_levels - 1, 0, surplus),
            "needed_supplies": np.where(levels == 0, 0, -surplus),
            "shortfall_penalty": costs.shortfall_penalty[:, :days].T,
            "storage_cost": costs.storage_cost[:, :days].T,
            "disposal_cost": costs.disposal_cost[:, :days].T,
            "bankrupt": self._bankrupt_days < np.arange(days)[:, None],
        }
        return self._from_columns("days", {name: values.ravel() for name, values in columns.items()})

    def _due(self, ends: EndColumns) -> Ints:
        """Return units bought minus units sold for each day by contracts of earlier days, [days, seats].

        That is what agents' interfaces count for the day, contracts of bankrupt partners included.
        """
        earlier = np.flatnonzero(ends.terms[:, 1] > ends.day)
        quantity, delivery, _ = ends.terms[earlier].T
        due = np.zeros(self._stock.shape, np.int64)
        np.add.at(due, (delivery, ends.rows[earlier, 4]), quantity)
        np.subtract.at(due, (delivery, ends.rows[earlier, 5]), quantity)
        return due

    @cached_property
    def _bankrupt_days(self) -> Ints:
        """Day of each factory's bankruptcy, or a day after all deliveries, [seats]."""
        never = self._setup.n_days
        return np.array([self._bankrupt_day.get(seat, never) for seat in range(self._setup.n_seats)])

    def _exogenous_table(self) -> pa.Table:
        names = ("day", "buyer", "seller", "product", "quantity", "unit_price")
        return self._from_columns("exogenous", dict(zip(names, self._exogenous.T, strict=True)))

    def _contract_table(self, ends: EndColumns) -> pa.Table:
        chosen = ends.concluded
        number, _, _, _, buyer, seller, product = ends.rows[chosen].T
        quantity, delivery, price = ends.terms[chosen].T
        # a bankruptcy before its delivery nullifies a contract
        ended = np.minimum(self._bankrupt_days[buyer], self._bankrupt_days[seller])
        nullified = ended < delivery
        columns = {
            "day": ends.day[chosen],
            "negotiation": number,
            "turn": ends.last_turn[chosen],
            "buyer": buyer,
            "seller": seller,
            "product": product,
            "quantity": quantity,
            "time": delivery,
            "unit_price": price,
            "fate": as_text(nullified.astype(np.int32), ("executed", "nullified")),
            "fate_day": np.where(nullified, ended, delivery),
        }
        return self._from_columns("contracts", columns)

    @cached_property
    def _settled(self) -> dict[str, Any]:
        """The settled days by column, [days * seats]."""
        day, agents, *values = zip(*self._settlements, strict=True)
        names = ["input_quantity", "output_quantity", "produced", "profit", "balance", "stock_in"]
        names += ["shortfall_quantity", "shortfall_penalty", "storage_cost"]
        columns = {name: np.array(column) for name, column in zip(names, values, strict=True)}
        return {"day": np.array(day), "factory": np.array([self._seat[agent] for agent in agents]), **columns}

    def _settlement_table(self) -> pa.Table:
        return self._from_columns("settlements", self._settled)

    def _report_table(self) -> pa.Table:
        """Derive the published reports: breaches follow from what was bought and sold.

        Exogenous quantities count twice in scml's breaches: once as executed contracts and once as terms of the day.
        """
        days, seats = self._stock.shape  # all arrays below are [days, seats]
        bought, sold, balance = (
            self._settled[name].reshape(days, seats) for name in ("input_quantity", "output_quantity", "balance")
        )
        available = bought + self._forced[:, :, 0] + self._stock
        promised = sold + self._forced[:, :, 2]
        missing = promised - np.minimum(available, np.array(self._start.n_lines))
        level: Floats = np.divide(missing, promised, out=np.zeros(missing.shape), where=missing > 0)
        settled = np.arange(1, days + 1)[:, None]
        published = np.arange(0, days, REPORT_PERIOD)
        columns = {
            "day": np.repeat(published, seats),
            "factory": np.tile(np.arange(seats), len(published)),
            "cash": balance[published],
            "assets": np.zeros((len(published), seats)),
            "breach_probability": (np.cumsum(missing > 0, axis=0) / settled)[published],
            "breach_level": _means_until(level, published),
            "bankrupt": self._bankrupt_days <= published[:, None],
        }
        return self._from_columns("reports", {name: values.ravel() for name, values in columns.items()})

    def _negotiation_table(self, ends: EndColumns) -> pa.Table:
        number, rounds, caller, _, buyer, seller, product = ends.rows.T
        quantity, delivery, price = ends.terms.T
        columns = {
            "day": ends.day,
            "negotiation": number,
            "buyer": buyer,
            "seller": seller,
            "caller": caller,
            "product": product,
            "rounds": rounds,
            "n_turns": ends.n_turns,
            "status": as_text(ends.status, STATUSES),
            "reason": as_text(ends.reason, REASONS),
            "ended_by": ends.ended_by,
            "quantity": quantity,
            "time": delivery,
            "unit_price": price,
        }
        masks = {name: columns[name] == NOTHING for name in ("ended_by", "quantity", "time", "unit_price")}
        return self._from_columns("negotiations", columns, masks)

    def _turn_table(self, turns: TurnColumns) -> pa.Table:
        negotiation, round_, factory, response, quantity, delivery, price = turns.rows.T
        silent = quantity == NOTHING
        columns = {
            "day": turns.day,
            "negotiation": negotiation,
            "turn": turns.index,
            "decided": turns.decided,
            "round": round_,
            "relative_time": np.minimum(1.0, (round_ + 1) / (self._setup.n_rounds + 1)),
            "factory": factory,
            "response": response,
            "quantity": quantity,
            "time": delivery,
            "unit_price": price,
        }
        masks = {"response": response == NOTHING, "quantity": silent, "time": silent, "unit_price": silent}
        return self._from_columns("turns", columns, masks)


def _marker(seat: int, code: int) -> TurnRow:
    return (NOTHING, NOTHING, seat, code, NOTHING, NOTHING, NOTHING)


def _means_until(values: Floats, days: Ints) -> Floats:
    """Return each seat's mean over its days so far, ``[len(days), seats]``.

    The sum is Python's own, as in scml's reports: since Python 3.12 it rounds otherwise than ``np.cumsum``.

    Args:
        values: ``[days, seats]``.
        days: The last day of each mean.
    """
    seats = values.T.tolist()
    return np.array([[sum(seat[: day + 1]) / (day + 1) for seat in seats] for day in days.tolist()])
