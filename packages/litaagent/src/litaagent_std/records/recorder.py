"""The recorder: an observer that keeps everything of a world, for every factory at once, without touching an agent.

During the world it appends plain numbers to lists and packs them into one array per day; tables are made once, at
the end. It is an observer like any other, so both engines give the same record.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from litaagent_std.records.assembly import as_rows, as_text, from_columns, from_rows
from litaagent_std.records.turn_columns import TURN_WIDTH, TurnColumns, order_of, turn_columns
from litaagent_std.world.events import (
    ACCEPT,
    END,
    LEAVE,
    NOTHING,
    AgentError,
    ContractSigned,
    DayEnd,
    DayStart,
    NegotiationEnd,
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

_END_WIDTH: Final = 13

_STATUSES: Final = ("agreement", "broken", "timedout", "error")
_REASONS: Final = ("accepted", "ended", "no_offer", "left", "rounds_over", "error")
_STATUS_CODE: Final = {name: code for code, name in enumerate(_STATUSES)}
_ACCEPTED, _ENDED, _NO_OFFER, _LEFT, _ROUNDS_OVER, _ERROR = range(len(_REASONS))
_REASON_OF: Final = {ACCEPT: _ACCEPTED, END: _ENDED, LEAVE: _LEFT}


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
    """

    def __init__(self, setup: WorldSetup, facts: WorldFacts) -> None:
        self._setup = setup
        self._facts = facts
        self._turns: list[int] = []  # flat, `TURN_WIDTH` integers per turn
        self._decisions: list[int] = []  # flat: length of the turns, and the seat that decided
        self._turns_before: list[int] = []  # length of the turns at the start of each day
        self._failed_seat = NOTHING
        self._ends: list[int] = []  # flat, `_END_WIDTH` integers per negotiation
        self._contracts: list[tuple[int, ...]] = []
        self._day_starts: list[DayStart] = []
        self._day_ends: list[DayEnd] = []
        self._due: list[list[int]] = []
        self._settlements: list[Settlement] = []
        self._errors: list[tuple[Any, ...]] = []
        self._bankrupt_day: dict[int, int] = {}
        # units bought minus units sold, by seat and delivery day: what agents' interfaces count for the day
        self._surplus = [[0] * setup.n_days for _ in range(setup.n_seats)]

    # -- events

    def on_world_start(self, event: WorldStart) -> None:
        """Take the facts of the world."""
        self._start = event
        self._seat = {name: seat for seat, name in enumerate(event.agents)}

    def on_day_start(self, event: DayStart) -> None:
        """Take every factory's state, before any agent is called."""
        self._day_starts.append(event)
        self._turns_before.append(len(self._turns))
        self._due.append([units[event.day] for units in self._surplus])

    @property
    def on_turn(self) -> Callable[[TurnRow], None]:
        """Append turns, the most frequent event by far."""
        return self._turns.extend

    def on_decision(self, seat: int) -> None:
        """Take the moment at which a synchronous agent decides about all its partners."""
        self._decisions.extend((len(self._turns), seat))

    def on_negotiation_end(self, event: NegotiationEnd) -> None:
        """Take how a negotiation ended, by whom and why."""
        ref, seat = event.negotiation, self._seat
        cause = self._cause(event)
        sides = (seat[ref.buyer], seat[ref.seller], seat[ref.caller], ref.product)
        terms = event.agreement or (NOTHING, NOTHING, NOTHING)
        self._ends.extend((ref.day, ref.index, *sides, event.round, _STATUS_CODE[event.status], *cause, *terms))

    def on_contract(self, event: ContractSigned) -> None:
        """Take a contract."""
        ref = event.negotiation
        buyer, seller = self._seat[ref.buyer], self._seat[ref.seller]
        turn = (len(self._turns) - self._turns_before[-1]) // TURN_WIDTH - 1
        terms = (int(event.quantity), int(event.time), int(event.unit_price))
        self._contracts.append((ref.day, ref.index, turn, buyer, seller, ref.product, *terms))
        self._surplus[buyer][event.time] += event.quantity
        self._surplus[seller][event.time] -= event.quantity

    def on_settlement(self, event: Settlement) -> None:
        """Take a factory's settled day."""
        self._settlements.append(event)

    def on_bankruptcy(self, day: int, agent: str, balance: float) -> None:
        """Take a bankruptcy."""
        self._bankrupt_day[self._seat[agent]] = day

    def on_error(self, event: AgentError) -> None:
        """Take an exception of an agent."""
        seat = self._seat[event.agent]
        if event.where == "negotiation":
            self._failed_seat = seat
        self._errors.append((event.day, seat, event.where, event.kind, event.message))

    def on_day_end(self, event: DayEnd) -> None:
        """Take the state of the world after the day."""
        self._day_ends.append(event)

    def on_world_end(self, event: WorldEnd) -> None:
        """Take the scores."""
        self._end = event

    def _cause(self, event: NegotiationEnd) -> tuple[int, int]:
        """Return why a negotiation ended and by whom: the latest turn ended it, if it is one without an offer."""
        if event.status == "timedout":
            return _ROUNDS_OVER, NOTHING
        if event.status == "error":
            return _ERROR, self._failed_seat
        turns = self._turns
        if len(turns) > self._turns_before[-1] and turns[-7] == event.negotiation.index and turns[-1] == NOTHING:
            return _REASON_OF.get(turns[-4], _NO_OFFER), turns[-5]
        return _NO_OFFER, self._seat[event.negotiation.caller]  # nothing was ever offered

    # -- tables

    def tables(self) -> dict[str, pa.Table]:
        """Return the complete record.

        Raises:
            RuntimeError: If the world has not ended.
        """
        if not hasattr(self, "_end"):
            raise RuntimeError("the world has not ended; a record is complete or it is not made")
        world, turns = self._facts.world, turn_columns(self._turns, self._turns_before, self._decisions)
        rows = {
            "worlds": [self._world_row()],
            "factories": self._factory_rows(),
            "markets": self._market_rows(),
            "exogenous": self._exogenous_rows(),
            "contracts": [(*contract, *self._fate(contract)) for contract in self._contracts],
            "settlements": self._settlement_rows(),
            "reports": self._report_rows(),
            "errors": self._errors,
        }
        small = {name: from_rows(name, world, table) for name, table in rows.items()}
        large = {"days": self._day_table(), "turns": self._turn_table(turns)}
        return small | large | {"negotiations": self._negotiation_table(turns)}

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

    def _market_rows(self) -> list[tuple[Any, ...]]:
        rows = []
        for start, end in zip(self._day_starts, self._day_ends, strict=True):
            for product, price in enumerate(start.trading_prices):
                exogenous = [contract for contract in start.exogenous if contract.product == product]
                quantity = sum(contract.quantity for contract in exogenous)
                value = sum(contract.quantity * contract.unit_price for contract in exogenous)
                ranges = (bound for issue in start.issues[product] for bound in issue)
                after = (end.sold_quantities[product], end.trading_prices[product])
                rows.append((start.day, product, price, *ranges, quantity, value, *after))
        return rows

    def _day_table(self) -> pa.Table:
        days, seats = len(self._day_starts), self._setup.n_seats
        costs = self._setup.daily_costs()
        levels = np.array([factory.level for factory in self._setup.factories])
        # [days, seats] input stock at day start; all arrays below have this shape
        stock = np.array([start.inventories for start in self._day_starts])
        # [days, seats, 4] exogenous units and value, bought and sold
        forced = np.array(self._forced).reshape(days, seats, 4)
        # [days, seats] units that the factory has or will get today, minus those that it owes today
        surplus = forced[:, :, 0] + stock - forced[:, :, 2] + np.array(self._due)
        # [seats] day of bankruptcy, or a day beyond the last
        ends = np.array([self._bankrupt_day.get(seat, days) for seat in range(seats)])
        columns = {
            "day": np.repeat(np.arange(days), seats),
            "factory": np.tile(np.arange(seats), days),
            "balance": np.array([start.balances for start in self._day_starts]),
            "stock_in": stock,
            "exogenous_in": forced[:, :, 0],
            "exogenous_in_value": forced[:, :, 1],
            "exogenous_out": forced[:, :, 2],
            "exogenous_out_value": forced[:, :, 3],
            "needed_sales": np.where(levels == self._setup.n_levels - 1, 0, surplus),
            "needed_supplies": np.where(levels == 0, 0, -surplus),
            "shortfall_penalty": costs.shortfall_penalty[:, :days].T,
            "storage_cost": costs.storage_cost[:, :days].T,
            "disposal_cost": costs.disposal_cost[:, :days].T,
            "bankrupt": ends < np.arange(days)[:, None],
        }
        return from_columns("days", self._facts.world, {name: values.ravel() for name, values in columns.items()})

    @cached_property
    def _forced(self) -> list[list[list[int]]]:
        """Exogenous purchases and sales, units and value of each, by day and seat: [days][seats][4]."""
        days = []
        for start in self._day_starts:
            totals = [[0, 0, 0, 0] for _ in self._setup.factories]
            for contract in start.exogenous:
                for name, column in ((contract.buyer, 0), (contract.seller, 2)):
                    if name in self._seat:
                        totals[self._seat[name]][column] += contract.quantity
                        totals[self._seat[name]][column + 1] += contract.quantity * contract.unit_price
            days.append(totals)
        return days

    def _exogenous_rows(self) -> list[tuple[Any, ...]]:
        seat = self._seat
        return [
            (start.day, seat.get(c.buyer, -1), seat.get(c.seller, -1), c.product, c.quantity, c.unit_price)
            for start in self._day_starts
            for c in start.exogenous
        ]

    def _fate(self, contract: tuple[int, ...]) -> tuple[str, int]:
        """Return what became of a contract, and on which day: a bankruptcy before its delivery nullifies it."""
        buyer, seller, delivery = contract[3], contract[4], contract[7]
        if buyer not in self._bankrupt_day and seller not in self._bankrupt_day:
            return "executed", delivery
        ends = [day for seat in (buyer, seller) if (day := self._bankrupt_day.get(seat, delivery)) < delivery]
        return ("nullified", min(ends)) if ends else ("executed", delivery)

    def _settlement_rows(self) -> list[tuple[Any, ...]]:
        return [
            (
                settled.day,
                self._seat[settled.agent],
                settled.input_quantity,
                settled.output_quantity,
                settled.produced,
                settled.profit,
                settled.balance,
                settled.inventory_input,
                settled.shortfall_quantity,
                settled.shortfall_penalty,
                settled.storage_cost,
            )
            for settled in self._settlements
        ]

    def _report_rows(self) -> list[tuple[Any, ...]]:
        """Derive the published reports: breaches follow from what was bought and sold."""
        n_seats = self._setup.n_seats
        forced = self._forced
        breaches = [0] * n_seats
        levels: list[list[float]] = [[] for _ in range(n_seats)]
        rows = []
        for index, settled in enumerate(self._settlements):
            seat = self._seat[settled.agent]
            day = index // n_seats
            missing, promised = self._shortage(settled, self._day_starts[day].inventories[seat], forced[day][seat])
            breaches[seat] += missing > 0
            levels[seat].append(missing / promised if missing > 0 else 0)
            if settled.day % REPORT_PERIOD == 0:
                days = len(levels[seat])
                rates = (breaches[seat] / days, sum(levels[seat]) / days)
                bankrupt = self._bankrupt_day.get(seat, settled.day + 1) <= settled.day
                rows.append((settled.day, seat, settled.balance, 0.0, *rates, bankrupt))
        return rows

    def _shortage(self, settled: Settlement, stock: int, forced: list[int]) -> tuple[int, int]:
        """Return the units promised beyond what could be made, and the units promised, as scml counts them.

        Exogenous quantities count twice there: once as executed contracts and once as terms of the day.
        """
        available = settled.input_quantity + forced[0] + stock
        promised = settled.output_quantity + forced[2]
        return promised - min(available, self._setup.factories[self._seat[settled.agent]].n_lines), promised

    def _negotiation_table(self, turns: TurnColumns) -> pa.Table:
        # [negotiations, _END_WIDTH] by day, then by number of the negotiation
        ends = as_rows(self._ends, _END_WIDTH)
        ends = ends[order_of(ends[:, 0], ends[:, 1])]
        day, number, buyer, seller, caller, product, rounds, status, reason, ended_by, *terms = ends.T
        columns = {
            "day": day,
            "negotiation": number,
            "buyer": buyer,
            "seller": seller,
            "caller": caller,
            "product": product,
            "rounds": rounds,
            "n_turns": turns.counts(day, number),
            "status": as_text(status, _STATUSES),
            "reason": as_text(reason, _REASONS),
            "ended_by": ended_by,
            **dict(zip(("quantity", "time", "unit_price"), terms, strict=True)),
        }
        masks = {name: columns[name] == NOTHING for name in ("ended_by", "quantity", "time", "unit_price")}
        return from_columns("negotiations", self._facts.world, columns, masks)

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
        return from_columns("turns", self._facts.world, columns, masks)
