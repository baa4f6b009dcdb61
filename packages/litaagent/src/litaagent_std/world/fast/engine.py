"""``engine="fast"``: the Standard league's world, many times faster than scml's own and equal to it.

`FastWorld` hosts unmodified agents. A day follows scml's order: exogenous contracts are revealed, agents start
their day, negotiations run, contracts are executed, agents end their day, and after that the day is settled.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

import numpy as np
from scml.oneshot.agent import OneShotAgent
from scml.oneshot.common import SYSTEM_BUYER_ID, SYSTEM_SELLER_ID

from litaagent_std.world.events import AgentError, EventHub, WorldEnd
from litaagent_std.world.fast.external import Decision, Reply
from litaagent_std.world.fast.interface.agenda import Agenda, relative_times
from litaagent_std.world.fast.interface.awi import LeanAWI
from litaagent_std.world.fast.interface.facade import WorldFacade
from litaagent_std.world.fast.interface.ufun import LeanUFun
from litaagent_std.world.fast.ledger import Ledger
from litaagent_std.world.fast.reports import make_bulletin_board, make_day_end, make_day_start, make_world_start
from litaagent_std.world.fast.roster import make_agents, make_seats, make_ufun_factory, trade_partners
from litaagent_std.world.fast.scheduling import NegotiationScheduler
from litaagent_std.world.fast.seats import Seat
from litaagent_std.world.fast.turns import limited
from litaagent_std.world.native.registry import Defaults, make_native_agent
from litaagent_std.world.reproducible.streams import WorldStreams, switch
from litaagent_std.world.rules.bankruptcy import score
from litaagent_std.world.rules.contracts import delivery_days, quantities
from litaagent_std.world.rules.exogenous import ExogenousTotals, group_by_day, summarize, total_of_seat
from litaagent_std.world.rules.prices import price_band
from litaagent_std.world.rules.settlement import Inventory, Terms
from litaagent_std.world.setup import DailyCosts, WorldSetup


class FastWorld(WorldFacade):
    """A world of the Standard league.

    Args:
        setup: The world.
        observers: Receive its events; see `events.WorldObserver`.
        inventory: Whether production consumes input stock; scml as shipped does not.
        call_limit: Seconds after which a turn of an agent is given up and its negotiation ends, as in the league
            (20 there). If None, the outcome never depends on the machine's speed; else every turn runs in a thread.
        defaults: Who plays the league's default agents: ``hosted`` agent objects, or ``native`` agents, which do the
            same in a fraction of the time.
        agents: Agents to seat, already constructed; if None, the setup's are constructed.
        costs: The daily costs; if None, the setup draws them.

    Attributes:
        seats: All factories with their agents.
        current_step: The day.
        is_bankrupt: Bankruptcy by id, the two system agents included.
    """

    def __init__(
        self,
        setup: WorldSetup,
        observers: Iterable[object] = (),
        *,
        inventory: Inventory = "as_shipped",
        call_limit: float | None = None,
        defaults: Defaults = "hosted",
        agents: Sequence[OneShotAgent] | None = None,
        costs: DailyCosts | None = None,
    ) -> None:
        self.setup = setup
        self.hub = EventHub(observers)
        self.limit_fired = False
        self.n_steps = setup.n_days
        self.horizon = setup.horizon
        self.current_step = 0
        self.catalog_prices = np.array(setup.catalog_prices)
        self.n_products = len(setup.catalog_prices)
        self.max_n_lines = max(factory.n_lines for factory in setup.factories)
        self._streams = WorldStreams(setup.seed, setup.n_seats)
        previous = switch(self._streams.world)
        try:
            self.seats = make_seats(setup, self._streams, agents or make_agents(setup, self._streams))
            self._costs = costs or setup.daily_costs()
            self._relative_times = relative_times(setup.n_rounds)
            if defaults == "native":
                self._make_native_agents()
            self._hosted = [seat for seat in self.seats if seat.native is None]
            self._make_factories(inventory)
        finally:
            switch(previous)
        if call_limit is not None:
            for seat in self._hosted:
                if not seat.is_isolated:  # it has a limit of its own
                    seat.turn = limited(seat.turn, call_limit, self._limit_has_fired)

    def _limit_has_fired(self) -> None:
        self.limit_fired = True

    def _make_native_agents(self) -> None:
        for seat in self.seats:
            native = make_native_agent(seat, self.setup.n_days, self.setup.n_levels, self._relative_times)
            if native is not None:
                seat.play_natively(native, self.hub.decision)

    def _make_factories(self, inventory: Inventory) -> None:
        setup = self.setup
        self.suppliers, self.consumers = trade_partners(self.seats, self.n_products)
        self.production_capacity = [0] * (self.n_products - 1)
        for seat in self.seats:
            self.production_capacity[seat.level] += seat.profile.n_lines
        ids = [seat.id for seat in self.seats]
        self.is_bankrupt = dict.fromkeys([*ids, SYSTEM_SELLER_ID, SYSTEM_BUYER_ID], False)
        self.agents: dict[str, Any] = {seat.id: seat.adapter for seat in self.seats}
        self.agents |= {SYSTEM_SELLER_ID: None, SYSTEM_BUYER_ID: None}
        self.bulletin_board = make_bulletin_board(setup)
        self._ledger = Ledger(self.seats, setup.catalog_prices, inventory, self.bulletin_board, self.hub)
        self._scheduler = NegotiationScheduler(
            self.seats, self.n_products - 1, self.hub, self._ledger.book, self.report_error
        )
        self._exogenous = group_by_day(setup.exogenous)
        self._agendas = [self._make_agenda(product) for product in range(self.n_products)]
        catalog = self.catalog_prices.reshape(-1, 1).astype(float)
        self._price_tables = {seat.index: np.tile(catalog, (1, self.n_steps + 1)) for seat in self._hosted}
        for seat in self._hosted:
            seat.awi = LeanAWI(self, seat.adapter, seat.profile)
            seat.ufun_factory = make_ufun_factory(seat, self.suppliers, self.consumers)
            seat.adapter._awi = seat.awi
            seat.adapter.make_lean_ufun = self._ufun_maker(seat)
            seat.awi.current_input_issues = self._agendas[seat.level].issues
            seat.awi.current_output_issues = self._agendas[seat.level + 1].issues
            self._start_factory_day(seat)

    # -- running

    def run(self) -> WorldEnd:
        """Run all remaining days and return the outcome."""
        while self.step_day():
            pass
        return self.outcome()

    def step_day(self) -> bool:
        """Run one day and return whether there are days left.

        Raises:
            RuntimeError: If a seat is external.
        """
        for decision in self.play_day():
            raise RuntimeError(
                f"{decision.agent} is an external seat and has to decide {decision.kind}; "
                "run the world with play() and send the reply"
            )
        return self.current_step < self.n_steps

    def play(self) -> Generator[Decision, Reply, None]:
        """Run all remaining days; yield the decisions of external seats and receive the replies."""
        while self.current_step < self.n_steps:
            yield from self.play_day()

    def play_day(self) -> Generator[Decision, Reply, None]:
        """Run one day; yield the decisions of external seats and receive the replies."""
        if self.current_step >= self.n_steps:
            return
        outside = switch(self._streams.world)
        try:
            if self.current_step == 0:
                self._start_world()
            if self._start_day():
                negotiating = self._scheduler.run(self._negotiations)
                decision = next(negotiating, None)
                while decision is not None:
                    inside = switch(outside)
                    reply = yield decision
                    outside = switch(inside)
                    try:
                        decision = negotiating.send(reply)
                    except StopIteration:
                        decision = None
            self._end_day()
        finally:
            switch(outside)

    def _start_world(self) -> None:
        if self.hub.world_start is not None:
            ids, agents = zip(*((seat.id, seat.agent) for seat in self.seats), strict=True)
            self.hub.world_start(make_world_start(self.setup, ids, agents, self._costs))
        for seat in self._hosted:
            if seat.is_isolated:
                seat.agent.attach(self._lost_handler(seat))
            self._update_ufun(seat)
            seat.agent.connect_to_oneshot_adapter(seat.adapter)
            self._call(seat, "init")

    def _start_day(self) -> bool:
        """Start the day and return whether negotiations were opened."""
        day = self.current_step
        self._negotiations: list[Any] = []
        # product 0 is never negotiated, so its agenda stays as it is
        agendas = [self._agendas[0]] + [self._make_agenda(product) for product in range(1, self.n_products)]
        if self.hub.day_start is not None:
            self.hub.day_start(
                make_day_start(day, self.seats, self._ledger.markets, self._exogenous.get(day, ()), agendas)
            )
        summary = self._publish(day)
        # every factory gets its exogenous contracts, costs and prices, then its utility function
        for seat in self.seats:
            self._start_factory_day(seat)
        for seat in self._hosted:
            seat.awi.exogenous_contract_summary = list(summary)
            self._update_ufun(seat)  # before the issues are renewed: its ranges are yesterday's, as in scml
        for seat in self.seats:
            if not self._reset(seat):
                return False  # an exception here cancels the day's negotiations, as in scml
        self._agendas = agendas
        for seat in self.seats:
            self._update_agendas(seat)
        self._negotiations = self._scheduler.open(day, agendas)
        for seat in self.seats:
            if seat.native is not None:
                seat.native.before_step()
                continue
            seat.awi.forget_past()
            if not self._call(seat, "before_step"):
                break  # scml's step 0 ends here: the agents after this one do not start their day
        return True

    def _reset(self, seat: Seat) -> bool:
        seat.n_active = 0
        if seat.native is not None:
            seat.native.reset()
            return True
        return self._call(seat, "reset")

    def _end_day(self) -> None:
        day = self.current_step
        self._negotiations = []
        # contracts are executed before the agents' step, and the day is settled after it
        self._ledger.execute(day, self._exogenous.get(day, ()))
        for seat in self._hosted:
            self._call(seat, "step")
        self._ledger.settle_day(day)
        for seat in self.seats:
            self.is_bankrupt[seat.id] = seat.bankrupt
        for table in self._price_tables.values():
            for product, market in enumerate(self._ledger.markets):
                table[product, day + 1 :] = market.price
        if self.hub.day_end is not None:
            self.hub.day_end(make_day_end(day, self.seats, self._ledger.markets, self._ledger.sold))
        self.current_step = day + 1
        for seat in self._hosted:
            seat.awi.current_step = day + 1
        if self.current_step == self.n_steps:
            self._end_world()

    def _end_world(self) -> None:
        for seat in self._hosted:
            if seat.is_isolated:
                seat.agent.end()
        if self.hub.world_end is not None:
            self.hub.world_end(self.outcome())

    # -- the state of the day

    def _make_agenda(self, product: int) -> Agenda:
        setup = self.setup
        return Agenda(
            quantities(self.max_n_lines, setup.quantity_multiplier),
            delivery_days(self.current_step, setup.horizon, self.n_steps),
            price_band(self._ledger.markets[product].price, setup.price_range),
            setup.n_rounds,
            self._relative_times,
            for_agents=bool(self._hosted),
        )

    def _start_factory_day(self, seat: Seat) -> None:
        """Set the terms of the seat's day and give them to its agent."""
        index, day = seat.index, self.current_step
        exogenous = total_of_seat(self._exogenous.get(day, ()), index)
        markets, costs = self._ledger.markets, self._costs
        in_price, out_price = markets[seat.level].price, markets[seat.level + 1].price
        seat.terms = Terms(
            balance=float(seat.balance),
            n_lines=self.setup.factories[index].n_lines,
            cost=self.setup.factories[index].cost,
            stock_in=exogenous.input_quantity + seat.inventory,
            stock_in_bill=exogenous.input_bill,
            stock_out=exogenous.output_quantity,
            stock_out_bill=exogenous.output_bill,
            shortfall_price=out_price,
            shortfall_penalty=float(costs.shortfall_penalty[index, day]),
            storage_price=in_price,
            storage_cost=float(costs.storage_cost[index, day]),
            disposal_price=in_price,
            disposal_cost=float(costs.disposal_cost[index, day]),
        )
        if seat.native is not None:
            seat.native.start_day(day, seat.terms, seat.inventory)
        else:
            self._update_awi(seat, exogenous)

    def _update_awi(self, seat: Seat, exogenous: ExogenousTotals) -> None:
        awi, index, day = seat.awi, seat.index, self.current_step
        qin, pin, qout, pout = exogenous
        awi.current_step = day
        awi.relative_time = day / self.n_steps
        awi.current_exogenous_input_quantity, awi.current_exogenous_input_price = qin, pin
        awi.current_exogenous_output_quantity, awi.current_exogenous_output_price = qout, pout
        awi.current_balance = seat.balance
        awi.current_inventory_input = seat.inventory
        awi._stock = qin + seat.inventory - qout
        awi.current_disposal_cost = self._costs.disposal_cost[index, day]
        awi.current_storage_cost = self._costs.storage_cost[index, day]
        awi.current_shortfall_penalty = self._costs.shortfall_penalty[index, day]
        awi.trading_prices = self._price_tables[index][:, day + 1]

    def _update_agendas(self, seat: Seat) -> None:
        bought, sold = self._agendas[seat.level], self._agendas[seat.level + 1]
        if seat.native is not None:
            seat.native.set_bounds(bought.bounds, sold.bounds)
            return
        seat.awi.current_input_issues, seat.awi.current_output_issues = bought.issues, sold.issues
        seat.buying, seat.selling = {}, {}
        seat.awi.open_negotiations(seat.buying, seat.selling)

    def _publish(self, day: int) -> list[tuple[float, float]]:
        summary = summarize(self._exogenous.get(day, ()), self.n_products)
        data = self.bulletin_board.data
        data["trading_prices"][str(day)] = np.array([market.price for market in self._ledger.markets])
        data["exogenous_contracts_summary"][str(day)] = summary
        return summary

    def _ufun_maker(self, seat: Seat) -> Callable[[], LeanUFun]:
        return lambda: self._update_ufun(seat)

    def _update_ufun(self, seat: Seat) -> LeanUFun:
        awi, terms = seat.awi, seat.terms
        inputs, outputs = awi.current_input_issues, awi.current_output_issues
        seat.ufun = seat.ufun_factory.make(
            ex_qin=awi.current_exogenous_input_quantity,
            ex_pin=awi.current_exogenous_input_price,
            ex_qout=awi.current_exogenous_output_quantity,
            ex_pout=awi.current_exogenous_output_price,
            disposal_cost=terms.disposal_cost,
            storage_cost=terms.storage_cost,
            shortfall_penalty=terms.shortfall_penalty,
            input_penalty_scale=terms.storage_price,
            storage_penalty_scale=terms.storage_price,
            output_penalty_scale=terms.shortfall_price,
            current_step=awi.current_step,
            time_range=inputs[1].values,
            input_qrange=inputs[0].values,
            input_prange=inputs[2].values,
            output_qrange=outputs[0].values,
            output_prange=outputs[2].values,
            current_balance=seat.balance,
            inventory_in=seat.inventory,
        )
        seat.adapter._preferences = seat.ufun
        if seat.has_preference_callbacks:
            seat.agent.ufun = seat.ufun
        else:
            seat.agent._preferences = seat.ufun
        return seat.ufun

    # -- calling agents

    def _call(self, seat: Seat, method: str) -> bool:
        """Call a method of an agent and return whether the day goes on; an exception is counted and reported.

        In scml the exception of one agent ends the start of the day for all; that of an isolated one does not.
        """
        try:
            seat.agent_call(method)
        except Exception as error:  # agents raise anything
            self.report_error(seat, method, error)
            return seat.is_isolated
        return True

    def _lost_handler(self, seat: Seat) -> Callable[[str, Exception], None]:
        def lost(where: str, error: Exception) -> None:
            seat.fall_silent()
            self.report_error(seat, where, error)

        return lost

    def report_error(self, seat: Seat, where: str, error: Exception) -> None:
        """Count an exception of an agent and notify the observers."""
        seat.n_errors += 1
        if self.hub.error is not None:
            self.hub.error(AgentError.of(self.current_step, seat.id, where, error))

    # -- results and events

    def scores(self) -> dict[str, float]:
        """Return every factory's balance relative to its initial balance."""
        return {seat.id: score(seat.balance, seat.initial_balance) for seat in self.seats}

    def outcome(self) -> WorldEnd:
        """Return the outcome so far."""
        errors = {seat.id: seat.n_errors for seat in self.seats if seat.n_errors}
        scores = {agent: float(value) for agent, value in self.scores().items()}
        return WorldEnd(scores, self.current_step, errors, self.limit_fired)
