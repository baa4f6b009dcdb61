"""The recorder: hears a world and keeps all of it, for every factory at once, without touching an agent.

During the world it appends plain numbers to lists and packs them into one array per day; tables are made once, at
the end. It is an observer like any other, so both engines give the same record.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from litaagent_std.market.world.events import (
    ACCEPT,
    END,
    LEAVE,
    AgentError,
    ContractSigned,
    DayEnd,
    DayStart,
    NegotiationEnd,
    NegotiationRef,
    Outcome,
    Settlement,
    WorldEnd,
    WorldObserver,
    WorldStart,
)
from litaagent_std.market.world.reports import REPORT_PERIOD
from litaagent_std.records.assembly import from_columns, from_rows

if TYPE_CHECKING:
    from litaagent_std.market.world.setup import WorldSetup

__all__ = ["Recorder", "WorldFacts"]

_NONE: Final = -1
_TURN_WIDTH: Final = 7
_REASONS: Final = {ACCEPT: "accepted", END: "ended", LEAVE: "left"}


@dataclass(frozen=True, slots=True)
class WorldFacts:
    """A world's place in its tournament.

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
        facts: Its place in the tournament.
    """

    def __init__(self, setup: WorldSetup, facts: WorldFacts) -> None:
        self._setup = setup
        self._facts = facts
        self._pending: tuple[int, int, int, int] | None = None  # an answer whose offer, if any, comes next
        self._turns: list[int] = []
        self._failed_seat: int | None = None
        self._refs: list[NegotiationRef] = []
        self._ends: dict[int, tuple[Any, ...]] = {}
        self._packed_turns: list[tuple[int, NDArray[np.int32]]] = []
        self._negotiations: list[tuple[Any, ...]] = []
        self._contracts: list[tuple[int, ...]] = []
        self._mornings: list[DayStart] = []
        self._evenings: list[DayEnd] = []
        self._due: list[list[tuple[int, int]]] = []
        self._settlements: list[Settlement] = []
        self._errors: list[tuple[Any, ...]] = []
        self._bankrupt_day: dict[int, int] = {}
        # committed units by seat and delivery day: what agents' interfaces count for the day
        shape = (setup.n_seats, setup.n_days)
        self._bought, self._sold = np.zeros(shape, np.int64), np.zeros(shape, np.int64)

    # -- events

    def on_world_start(self, event: WorldStart) -> None:
        """Takes the facts of the world."""
        self._start = event
        self._seat = {name: seat for seat, name in enumerate(event.agents)}

    def on_day_start(self, event: DayStart) -> None:
        """Takes every factory's state, before any agent is called."""
        self._mornings.append(event)
        bought, sold = self._bought[:, event.day].tolist(), self._sold[:, event.day].tolist()
        self._due.append(list(zip(bought, sold, strict=True)))

    def on_negotiation_start(self, negotiation: NegotiationRef) -> None:
        """Takes who negotiates what."""
        self._refs.append(negotiation)

    def on_response(self, negotiation: NegotiationRef, round_: int, agent: str, response: int) -> None:
        """Takes an answer; the offer that comes with it, if any, is the next event."""
        if self._pending is not None:
            self._put_alone()
        self._pending = (negotiation.index, round_, self._seat[agent], response)

    def on_offer(self, negotiation: NegotiationRef, round_: int, agent: str, offer: Outcome) -> None:
        """Takes an offer together with the answer before it."""
        pending = self._pending
        if pending is None:
            self._turns.extend((negotiation.index, round_, self._seat[agent], _NONE, *offer))
        else:
            self._pending = None
            self._turns.extend((*pending, *offer))

    def on_negotiation_end(self, event: NegotiationEnd) -> None:
        """Takes how a negotiation ended, by whom and why."""
        index = event.negotiation.index
        ended_by, reason = self._cause(event)
        if self._pending is not None:
            self._put_alone()
        terms = event.agreement or (None, None, None)
        self._ends[index] = (event.round, event.status, reason, ended_by, *terms)

    def on_contract(self, event: ContractSigned) -> None:
        """Takes a contract."""
        ref = event.negotiation
        buyer, seller = self._seat[ref.buyer], self._seat[ref.seller]
        turn = len(self._turns) // _TURN_WIDTH - 1
        terms = (int(event.quantity), int(event.time), int(event.unit_price))
        self._contracts.append((ref.day, ref.index, turn, buyer, seller, ref.product, *terms))
        self._bought[buyer, event.time] += event.quantity
        self._sold[seller, event.time] += event.quantity

    def on_settlement(self, event: Settlement) -> None:
        """Takes a factory's settled day."""
        self._settlements.append(event)

    def on_bankruptcy(self, day: int, agent: str, balance: float) -> None:
        """Takes a bankruptcy."""
        self._bankrupt_day[self._seat[agent]] = day

    def on_error(self, event: AgentError) -> None:
        """Takes an exception of an agent."""
        seat = self._seat[event.agent]
        if event.where == "negotiation":
            self._failed_seat = seat
        self._errors.append((event.day, seat, event.where, event.kind, event.message))

    def on_day_end(self, event: DayEnd) -> None:
        """Packs the day."""
        self._evenings.append(event)
        turns = np.array(self._turns, np.int32).reshape(-1, _TURN_WIDTH)
        counts = np.bincount(turns[:, 0], minlength=len(self._refs))
        self._packed_turns.append((event.day, turns))
        for ref in self._refs:
            rounds, status, reason, ended_by, *terms = self._ends[ref.index]
            sides = (self._seat[ref.buyer], self._seat[ref.seller], self._seat[ref.caller], ref.product)
            shape = (rounds, int(counts[ref.index]), status, reason, ended_by)
            self._negotiations.append((ref.day, ref.index, *sides, *shape, *terms))
        self._turns, self._refs, self._ends = [], [], {}

    def on_world_end(self, event: WorldEnd) -> None:
        """Takes the scores."""
        self._end = event

    def _put_alone(self) -> None:
        """Puts an answer without an offer among the turns."""
        if self._pending is not None:
            self._turns.extend((*self._pending, _NONE, _NONE, _NONE))
            self._pending = None

    def _cause(self, event: NegotiationEnd) -> tuple[int | None, str]:
        """Returns who ended a negotiation and why; what is pending is the turn that ended it."""
        if event.status == "timedout":
            return None, "rounds_over"
        if event.status == "error":
            return self._failed_seat, "error"
        if self._pending is not None and self._pending[0] == event.negotiation.index:
            return self._pending[2], _REASONS.get(self._pending[3], "no_offer")
        return self._seat[event.negotiation.caller], "no_offer"  # nothing was ever offered

    # -- tables

    def tables(self) -> dict[str, pa.Table]:
        """Returns the complete record.

        Raises:
            RuntimeError: If the world has not ended.
        """
        if not hasattr(self, "_end"):
            raise RuntimeError("the world has not ended; a record is complete or it is not made")
        world = self._facts.world
        rows = {
            "worlds": [self._world_row()],
            "factories": self._factory_rows(),
            "markets": self._market_rows(),
            "days": self._day_rows(),
            "exogenous": self._exogenous_rows(),
            "negotiations": self._negotiations,
            "contracts": [(*contract, *self._fate(contract)) for contract in self._contracts],
            "settlements": self._settlement_rows(),
            "reports": self._report_rows(),
            "errors": self._errors,
        }
        made = {name: from_rows(name, world, some) for name, some in rows.items()}
        return made | {"turns": self._turn_table()}

    def _world_row(self) -> tuple[Any, ...]:
        facts, setup = self._facts, self._setup
        place = (facts.config, facts.run, facts.rotation, facts.config_seed, setup.seed, setup.digest, facts.inventory)
        shape = (setup.n_days, setup.n_levels, setup.n_seats, setup.n_rounds, setup.horizon, setup.price_range)
        return (*place, *shape, list(self._start.catalog_prices), self._end.limit_fired)

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
        for morning, evening in zip(self._mornings, self._evenings, strict=True):
            for product, price in enumerate(morning.trading_prices):
                exogenous = [one for one in morning.exogenous if one.product == product]
                quantity = sum(one.quantity for one in exogenous)
                value = sum(one.quantity * one.unit_price for one in exogenous)
                ranges = (bound for issue in morning.issues[product] for bound in issue)
                after = (evening.sold_quantities[product], evening.trading_prices[product])
                rows.append((morning.day, product, price, *ranges, quantity, value, *after))
        return rows

    def _day_rows(self) -> list[tuple[Any, ...]]:
        costs = self._setup.daily_costs()
        last = self._setup.n_levels - 1
        rows = []
        for morning, due in zip(self._mornings, self._due, strict=True):
            day = morning.day
            forced = self._forced(morning)
            for seat, factory in enumerate(self._setup.factories):
                q_in, v_in, q_out, v_out = forced[seat]
                stock = morning.inventories[seat]
                surplus = q_in + stock - q_out + due[seat][0] - due[seat][1]
                needs = (0 if factory.level == last else surplus, 0 if factory.level == 0 else -surplus)
                relative = (costs.shortfall_penalty, costs.storage_cost, costs.disposal_cost)
                today = (float(cost[seat, day]) for cost in relative)
                bankrupt = self._bankrupt_day.get(seat, day) < day
                state = (morning.balances[seat], stock, q_in, v_in, q_out, v_out)
                rows.append((day, seat, *state, *needs, *today, bankrupt))
        return rows

    def _forced(self, morning: DayStart) -> list[tuple[int, int, int, int]]:
        totals = [[0, 0, 0, 0] for _ in self._setup.factories]
        for one in morning.exogenous:
            for name, place in ((one.buyer, 0), (one.seller, 2)):
                if name in self._seat:
                    totals[self._seat[name]][place] += one.quantity
                    totals[self._seat[name]][place + 1] += one.quantity * one.unit_price
        return [(a, b, c, d) for a, b, c, d in totals]

    def _exogenous_rows(self) -> list[tuple[Any, ...]]:
        seat = self._seat
        return [
            (morning.day, seat.get(one.buyer, -1), seat.get(one.seller, -1), one.product, one.quantity, one.unit_price)
            for morning in self._mornings
            for one in morning.exogenous
        ]

    def _fate(self, contract: tuple[int, ...]) -> tuple[str, int]:
        buyer, seller, delivery = contract[3], contract[4], contract[7]
        ends = [day for seat in (buyer, seller) if (day := self._bankrupt_day.get(seat, delivery)) < delivery]
        return ("nullified", min(ends)) if ends else ("executed", delivery)

    def _settlement_rows(self) -> list[tuple[Any, ...]]:
        return [
            (
                one.day,
                self._seat[one.agent],
                one.input_quantity,
                one.output_quantity,
                one.produced,
                one.profit,
                one.balance,
                one.inventory_input,
                one.shortfall_quantity,
                one.shortfall_penalty,
                one.storage_cost,
            )
            for one in self._settlements
        ]

    def _report_rows(self) -> list[tuple[Any, ...]]:
        """Works out the published reports: breaches follow from what was bought and sold."""
        n_seats = self._setup.n_seats
        breaches: list[list[bool]] = [[] for _ in range(n_seats)]
        levels: list[list[float]] = [[] for _ in range(n_seats)]
        rows = []
        for index, one in enumerate(self._settlements):
            seat = self._seat[one.agent]
            morning = self._mornings[index // n_seats]
            missing, promised = self._shortage(one, morning, seat)
            breaches[seat].append(missing > 0)
            levels[seat].append(missing / promised if missing > 0 else 0)
            if one.day % REPORT_PERIOD == 0:
                days = len(levels[seat])
                rates = (len([b for b in breaches[seat] if b]) / days, sum(levels[seat]) / days)
                bankrupt = self._bankrupt_day.get(seat, one.day + 1) <= one.day
                rows.append((one.day, seat, one.balance, 0.0, *rates, bankrupt))
        return rows

    def _shortage(self, one: Settlement, morning: DayStart, seat: int) -> tuple[int, int]:
        """Returns the units promised beyond what could be made, and the units promised, as scml counts them.

        Exogenous quantities count twice there: once as executed contracts and once as terms of the day.
        """
        forced_in, _, forced_out, _ = self._forced(morning)[seat] if self._edge(seat) else (0, 0, 0, 0)
        available = one.input_quantity + forced_in + morning.inventories[seat]
        promised = one.output_quantity + forced_out
        return promised - min(available, self._setup.factories[seat].n_lines), promised

    def _edge(self, seat: int) -> bool:
        return self._setup.factories[seat].level in (0, self._setup.n_levels - 1)

    def _turn_table(self) -> pa.Table:
        days = [np.full(len(turns), day, np.int16) for day, turns in self._packed_turns]
        places = [np.arange(len(turns), dtype=np.int32) for _, turns in self._packed_turns]
        day, place = np.concatenate(days), np.concatenate(places)
        turns = np.concatenate([turns for _, turns in self._packed_turns])
        order = np.lexsort((place, turns[:, 0], day))
        turns = turns[order]
        clock = self._setup.n_rounds + 1
        columns = {
            "day": day[order],
            "negotiation": turns[:, 0],
            "turn": place[order],
            "round": turns[:, 1],
            "relative_time": np.minimum(1.0, (turns[:, 1] + 1) / clock),
            "factory": turns[:, 2],
            "response": turns[:, 3],
            "quantity": turns[:, 4],
            "time": turns[:, 5],
            "unit_price": turns[:, 6],
        }
        silent = turns[:, 4] == _NONE
        masks = {"response": turns[:, 3] == _NONE, "quantity": silent, "time": silent, "unit_price": silent}
        types = {"negotiation": np.int16, "round": np.int16, "factory": np.int16, "response": np.int8, "time": np.int16}
        narrow = {name: values.astype(types.get(name, values.dtype)) for name, values in columns.items()}
        return from_columns("turns", self._facts.world, narrow, masks)
