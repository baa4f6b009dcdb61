"""``engine="scml"``: scml's own world, made reproducible and observable.

:class:`ScmlWorld` is scml's ``SCML2024StdWorld`` with unchanged rules. It adds what both engines share: random streams
per seat, virtual time inside negotiations, an order of contracts that does not depend on random identifiers, and
events. It is the reference that the fast engine is verified against.

Exceptions of agents are ignored, counted and reported, by scml's own switches for that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from negmas.helpers import TimeoutCaller

from litaagent_std.world.events import (
    AgentError,
    ContractSigned,
    DayEnd,
    DayStart,
    EventHub,
    Exogenous,
    NegotiationRef,
    Settlement,
    WorldEnd,
)
from litaagent_std.world.fast.reports import make_world_start
from litaagent_std.world.reproducible.isolation import load_fresh
from litaagent_std.world.reproducible.streams import Stream, WorldStreams, admit, switch
from litaagent_std.world.rules.settlement import Inventory
from litaagent_std.world.scml.seats import SeatAdapter, SeatMechanism
from litaagent_std.world.setup import WorldSetup, full_name

from scml.oneshot.common import OneShotExogenousContract  # isort: skip
from scml.oneshot.sysagents import DefaultOneShotAdapter  # isort: skip
from scml.std.world import SCML2024StdWorld  # isort: skip

__all__ = ["DepletingScmlWorld", "ScmlWorld", "make_scml_world", "plain_scml_world", "scml_arguments"]

_EXCEPTIONS_IGNORED = {
    "ignore_agent_exceptions": True,
    "ignore_negotiation_exceptions": True,
    "ignore_contract_execution_exceptions": True,
    "ignore_simulation_exceptions": True,
}


def scml_arguments(setup: WorldSetup) -> dict[str, Any]:
    """Return the keyword arguments from which scml's own class constructs the world of ``setup``."""
    profiles = [factory.profile() for factory in setup.factories]
    exogenous = [
        OneShotExogenousContract(
            quantity=contract.quantity,
            unit_price=contract.unit_price,
            product=contract.product,
            seller=contract.seller,
            buyer=contract.buyer,
            time=contract.day,
            revelation_time=contract.day,
        )
        for contract in setup.exogenous
    ]
    return {
        "catalog_prices": np.array(setup.catalog_prices),
        "profiles": profiles,
        "agent_types": [DefaultOneShotAdapter] * setup.n_seats,
        "agent_params": [
            {"controller_type": agent.path, "controller_params": dict(agent.params)} for agent in setup.agents
        ],
        "exogenous_contracts": exogenous,
        "initial_balance": [factory.balance for factory in setup.factories],
        "n_steps": setup.n_days,
        "neg_n_steps": setup.n_rounds,
        "horizon": setup.horizon,
        "price_range_fraction": setup.price_range,
        "quantity_multiplier": setup.quantity_multiplier,
        "force_signing": True,
        "penalties_scale": "trading",
        "time_limit": 900,
        "neg_time_limit": 60,
        "neg_hidden_time_limit": 60,
        "neg_step_time_limit": 20,
        "publish_exogenous_summary": True,
        "publish_trading_prices": True,
        "agent_name_reveals_type": not setup.neutral_names,
    }


def plain_scml_world(setup: WorldSetup, **options: Any) -> SCML2024StdWorld:  # noqa: ANN401  # scml's
    """Make scml's unmodified world, for benchmarks and for tests of the additions of this module."""
    return SCML2024StdWorld(**{**scml_arguments(setup), **options})


def make_scml_world(
    setup: WorldSetup,
    observers: Iterable[object] = (),
    *,
    inventory: Inventory = "as_shipped",
    call_limit: float | None = None,
) -> ScmlWorld:
    """Make the reference world.

    Args:
        setup: The world.
        observers: Receive the events; see :class:`~litaagent_std.world.events.WorldObserver`.
        inventory: Whether production consumes input stock; scml as shipped does not.
        call_limit: Seconds after which a call into a negotiator is given up, as in the league (20 there). If
            None, the outcome never depends on the machine's speed; else every call runs in a thread.
    """
    world = DepletingScmlWorld if inventory == "depleting" else ScmlWorld
    return world(setup, observers, call_limit=call_limit)


class _OrderedSet(dict[Any, None]):
    """A set that iterates in the order of insertion; scml's own order follows random identifiers."""

    def add(self, item: object) -> None:
        self[item] = None

    def remove(self, item: object) -> None:
        del self[item]


class ScmlWorld(SCML2024StdWorld):  # type: ignore[misc]  # scml has no type information
    """scml's Standard world with streams, virtual time, a fixed order of contracts, and events.

    Attributes:
        hub: The observers.
        limit_fired: Whether a wall-clock limit fired; such a world is left out of comparisons.
        n_errors: Exceptions per agent.
    """

    def __init__(self, setup: WorldSetup, observers: Iterable[object] = (), *, call_limit: float | None = None) -> None:
        self.setup = setup
        self.hub = EventHub(observers)
        self.limit_fired = False
        self.n_errors: dict[str, int] = {}
        self._streams = WorldStreams(setup.seed, setup.n_seats)
        self._revealing = self._ended = False
        self._n_registered = 0
        previous = switch(self._streams.world)
        try:
            super().__init__(**self._arguments(call_limit))
        finally:
            switch(previous)
        self.save_negotiations = False
        self.seats: tuple[SeatAdapter, ...] = tuple(
            agent for agent in self.agents.values() if isinstance(agent, SeatAdapter)
        )
        for index, (seat, stream) in enumerate(zip(self.seats, self._streams.seats, strict=True)):
            seat.index, seat.stream, seat.world_stream = index, stream, self._streams.world
        costs = self._costs = setup.daily_costs()
        for index, seat in enumerate(self.seats):
            self.agent_shortfall_penalty[seat.id] = costs.shortfall_penalty[index]
            self.agent_storage_cost[seat.id] = costs.storage_cost[index]
            self.agent_disposal_cost[seat.id] = costs.disposal_cost[index]
        [parameters] = self.mechanisms.values()
        self.mechanisms: dict[str, dict[str, Any]] = {full_name(SeatMechanism): parameters}
        # The first day's exogenous contracts are in scml's unordered set now; its step 0 adds them again.
        self.unsigned_contracts: defaultdict[int, _OrderedSet] = defaultdict(_OrderedSet)

    def _arguments(self, call_limit: float | None) -> dict[str, Any]:
        arguments = scml_arguments(self.setup)
        arguments["agent_types"] = [SeatAdapter] * self.setup.n_seats
        arguments["agent_params"] = [
            {"controller_type": _constructor(agent, spec.params, stream)}
            for agent, spec, stream in zip(
                load_fresh(self.setup.agents), self.setup.agents, self._streams.seats, strict=True
            )
        ]
        arguments["neg_step_time_limit"] = call_limit
        if call_limit is not None:
            admit(f"{TimeoutCaller.get_pool()._thread_name_prefix}_")  # the pool has no public name
        arguments["sync_calls"] = call_limit is None
        arguments["saved_details_level"] = 0
        arguments["name"] = self.setup.digest[:16]
        return arguments | _EXCEPTIONS_IGNORED

    @property
    def time(self) -> float:
        """Virtual seconds since the world's start: always 0, so that no limit of the world fires."""
        return 0.0

    def step(self, *args: Any, **kwargs: Any) -> bool:  # noqa: ANN401  # as in negmas
        """Run one day (or one round, see negmas) and return whether there are days left."""
        previous = switch(self._streams.world)
        try:
            if self.current_step == 0 and self.hub.world_start is not None:
                ids, agents = zip(*((seat.id, seat.adapted_object) for seat in self.seats), strict=True)
                self.hub.world_start(make_world_start(self.setup, ids, agents, self._costs))
            days_left = bool(super().step(*args, **kwargs))
            if self.current_step >= self.n_steps and not self._ended:
                self._ended = True
                if self.hub.world_end is not None:
                    self.hub.world_end(self._world_end())
        finally:
            switch(previous)
        return days_left

    def run_to_end(self) -> WorldEnd:
        """Run all days and return the outcome."""
        self.run()
        return self._world_end()

    def call(self, agent: Any, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # as in negmas
        """Call a method of an agent under its stream."""
        if not isinstance(agent, SeatAdapter):
            return super().call(agent, method, *args, **kwargs)

        def guarded(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # passes through
            try:
                return method(*args, **kwargs)
            except Exception as error:
                self.report_error(agent.id, method.__name__, error)
                raise

        previous = switch(agent.stream)
        try:
            return super().call(agent, guarded, *args, **kwargs)
        finally:
            switch(previous)

    def report_error(self, agent: str, where: str, error: Exception) -> None:
        """Count an exception of an agent and notify the observers."""
        self.n_errors[agent] = self.n_errors.get(agent, 0) + 1
        if self.hub.error is not None:
            where = where.removesuffix("_")
            self.hub.error(AgentError.of(self.current_step, agent, where, error))

    def simulation_step(self, stage: int = 0) -> None:
        """Run the world's part of the day: its opening (stage 0) or its settlement (stage 1)."""
        if stage == 0:
            self._revealing = True
            self._n_registered = 0
            super().simulation_step(stage)
            return
        bankrupt = dict(self.is_bankrupt)
        stock = dict(self._inventory_input)
        super().simulation_step(stage)
        self._adjust_inventory(stock)
        self._emit_settlements(bankrupt)

    def _adjust_inventory(self, stock: Mapping[str, int]) -> None:
        """Apply another rule of inventory; by default scml's own holds."""

    def _update_exogenous(self, s: int) -> None:
        super()._update_exogenous(s)
        if self._revealing:
            self._revealing = False
            if self.hub.day_start is not None:
                self.hub.day_start(self._day_start())

    def on_negotiation_start(self, neg: Any) -> None:  # noqa: ANN401  # negmas's type
        """Register a new negotiation and emit its start."""
        super().on_negotiation_start(neg)
        notes = neg.annotation
        partner = next(agent.id for agent in neg.partners if agent.id != neg.caller.id)
        ref = NegotiationRef(
            self.current_step,
            self._n_registered,
            neg.caller.id,
            partner,
            notes["buyer"],
            notes["seller"],
            notes["product"],
        )
        self._n_registered += 1
        neg.mechanism.world, neg.mechanism.ref = self, ref
        if self.hub.negotiation_start is not None:
            self.hub.negotiation_start(ref)

    def on_contract_concluded(self, contract: Any, to_be_signed_at: int) -> None:  # noqa: ANN401  # negmas's
        """Register a contract and emit it; exogenous ones are part of the start of the day."""
        super().on_contract_concluded(contract, to_be_signed_at)
        if contract.mechanism_id is not None and self.hub.contract is not None:
            ref = self._negotiations[contract.mechanism_id].mechanism.ref
            terms = contract.agreement
            self.hub.contract(ContractSigned(ref, terms["quantity"], terms["time"], terms["unit_price"]))

    def _day_start(self) -> DayStart:
        day = self.current_step
        exogenous = tuple(
            Exogenous(
                contract.annotation["buyer"],
                contract.annotation["seller"],
                contract.annotation["product"],
                contract.agreement["quantity"],
                contract.agreement["unit_price"],
            )
            for contract in self.exogenous_contracts[day]
        )
        ranges = [tuple((issue.min_value, issue.max_value) for issue in self._current_issues[0])]
        for product in range(1, self.n_products):
            price, days, quantity = self._make_issues(product)
            ranges.append(tuple((int(min(r)), int(max(r))) for r in (quantity, days, price)))
        return DayStart(
            day=day,
            trading_prices=tuple(float(price) for price in self.trading_prices),
            exogenous=exogenous,
            balances=self._balances(),
            inventories=tuple(int(self._inventory_input[seat.id]) for seat in self.seats),
            issues=tuple(ranges),  # type: ignore[arg-type]  # three pairs each
        )

    def _emit_settlements(self, bankrupt: Mapping[str, bool]) -> None:
        hub, day = self.hub, self.current_step
        for seat, factory in zip(self.seats, self.setup.factories, strict=True):
            agent = seat.id
            balance = float(self.current_balance(agent))
            if hub.settlement is not None:
                hub.settlement(
                    Settlement(
                        day=day,
                        agent=agent,
                        input_quantity=int(self._input_quantity[agent]),
                        output_quantity=int(self._output_quantity[agent]),
                        produced=round(self._productivity[agent] * factory.n_lines),
                        profit=float(self._profits[agent][-1]),
                        balance=balance,
                        inventory_input=int(self._inventory_input[agent]),
                        shortfall_quantity=int(self._shortfall_quantity[agent]),
                        shortfall_penalty=float(self._shortfall_penalty[agent]),
                        storage_cost=float(self._storage_cost[agent]),
                    )
                )
            if self.is_bankrupt[agent] and not bankrupt[agent] and hub.bankruptcy is not None:
                hub.bankruptcy(day, agent, balance)
        if hub.day_end is not None:
            hub.day_end(
                DayEnd(
                    day=day,
                    trading_prices=tuple(float(price) for price in self._trading_price[:, day + 1]),
                    sold_quantities=tuple(int(sold) for sold in self._sold_quantity[:, day + 1]),
                    balances=self._balances(),
                    bankrupt=tuple(bool(self.is_bankrupt[seat.id]) for seat in self.seats),
                )
            )

    def _balances(self) -> tuple[float, ...]:
        return tuple(float(self.current_balance(seat.id)) for seat in self.seats)

    def _world_end(self) -> WorldEnd:
        scores = {agent: float(score) for agent, score in self.scores().items()}
        errors = {seat.id: self.n_errors[seat.id] for seat in self.seats if seat.id in self.n_errors}
        return WorldEnd(scores, self.current_step, errors, self.limit_fired)


class DepletingScmlWorld(ScmlWorld):
    """The same world, except that production consumes the input stock it uses."""

    def _adjust_inventory(self, stock: Mapping[str, int]) -> None:
        for seat, factory in zip(self.seats, self.setup.factories, strict=True):
            produced = round(self._productivity[seat.id] * factory.n_lines)
            available = stock.get(seat.id, 0) + self._input_quantity[seat.id]
            self._inventory_input[seat.id] = max(0, available - produced)


def _constructor(agent: type, params: Mapping[str, Any], stream: Stream) -> Callable[[], Any]:
    """Return a function that constructs the agent under its seat's stream, for scml to call."""

    def construct() -> Any:  # noqa: ANN401  # an agent of any class
        previous = switch(stream)
        try:
            return agent(**params)
        finally:
            switch(previous)

    return construct
