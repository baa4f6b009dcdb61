"""An independent, plainly written account of the rules, checked against a world's events."""

import importlib.util
import sys
from pathlib import Path

import pytest

from litaagent_std.world.events import WorldObserver

CLOSE = {"rel": 1e-9, "abs": 1e-9}


class Auditor(WorldObserver):
    """Does its own accounting from the events and fails at the first one that the rules do not allow."""

    def __init__(self, setup, inventory="as_shipped"):
        self.setup = setup
        self.depleting = inventory == "depleting"
        self.costs = setup.daily_costs()
        self.n_settled = self.n_contracts = self.n_bankrupt = 0
        self.day = -1
        self.phase = "before"
        self.volumes = [50.0] * len(setup.catalog_prices)
        self.prices = [float(price) for price in setup.catalog_prices]
        self.stock = [0] * setup.n_seats
        self.balances = [float(factory.balance) for factory in setup.factories]
        self.bankrupt = [False] * setup.n_seats
        self.book = []  # (delivery day, buyer, seller, product, quantity, unit price)
        self.must_contract = None

    def on_world_start(self, event):
        assert self.phase == "before"
        self.phase = "between days"
        self.ids = list(event.agents)
        self.seat = {agent: seat for seat, agent in enumerate(event.agents)}
        assert event.levels == tuple(factory.level for factory in self.setup.factories)
        assert event.n_days == self.setup.n_days

    def on_day_start(self, event):
        assert self.phase == "between days"
        self.phase = "negotiations"
        self.day += 1
        assert event.day == self.day
        assert event.trading_prices == pytest.approx(self.prices, **CLOSE)
        assert event.balances == pytest.approx(self.balances, **CLOSE)
        assert list(event.inventories) == self.stock
        self.opening_prices, self.exogenous = event.trading_prices, event.exogenous
        expected = [c for c in self.setup.exogenous if c.day == self.day]
        assert [(c.product, c.quantity, c.unit_price) for c in event.exogenous] == [
            (c.product, c.quantity, c.unit_price) for c in expected
        ]
        self.issues = event.issues
        last = min(self.day + self.setup.horizon, self.setup.n_days - 1)
        for product in range(1, len(event.issues)):
            price = event.trading_prices[product]
            low, high = max(1, int(price * (1 - 0.1))), int((1 + 0.1) * price)
            assert event.issues[product] == ((1, 30), (self.day, last), (min(low, high), max(low, high)))
        self.open, self.pairs, self.table = {}, set(), {}

    def on_negotiation_start(self, negotiation):
        assert self.phase == "negotiations"
        assert negotiation.index == len(self.pairs)
        assert negotiation.day == self.day
        buyer, seller = self.seat[negotiation.buyer], self.seat[negotiation.seller]
        assert not self.bankrupt[buyer]
        assert not self.bankrupt[seller]
        factories = self.setup.factories
        assert factories[buyer].level == negotiation.product == factories[seller].level + 1
        assert (buyer, seller) not in self.pairs
        assert {negotiation.caller, negotiation.partner} == {negotiation.buyer, negotiation.seller}
        self.pairs.add((buyer, seller))
        self.open[negotiation.index] = negotiation

    def _every_solvent_pair_negotiates(self):
        factories, seats = self.setup.factories, range(self.setup.n_seats)
        expected = {
            (buyer, seller)
            for buyer in seats
            for seller in seats
            if factories[buyer].level == factories[seller].level + 1
            and not self.bankrupt[buyer]
            and not self.bankrupt[seller]
        }
        assert self.pairs == expected

    def on_response(self, negotiation, round_, agent, response):
        assert self.open[negotiation.index] is negotiation
        offerer, _, offered_in = self.table[negotiation.index]
        assert agent != offerer, "nobody responds to an offer of his own"
        assert offered_in <= round_ <= self.setup.n_rounds

    def on_offer(self, negotiation, round_, agent, offer):
        assert self.open[negotiation.index] is negotiation
        assert agent in (negotiation.caller, negotiation.partner)
        if negotiation.index not in self.table:
            assert agent == negotiation.caller
        assert all(type(value) is int for value in offer)
        for value, (low, high) in zip(offer, self.issues[negotiation.product], strict=True):
            assert low <= value <= high
        self.table[negotiation.index] = (agent, offer, round_)

    def on_negotiation_end(self, event):
        assert self.must_contract is None
        assert self.open.pop(event.negotiation.index) is event.negotiation
        assert (event.agreement is not None) == (event.status == "agreement")
        assert event.round <= self.setup.n_rounds
        if event.agreement is not None:
            assert event.agreement == self.table[event.negotiation.index][1]
            self.must_contract = event.negotiation, event.agreement

    def on_contract(self, event):
        assert self.must_contract == (event.negotiation, (event.quantity, event.time, event.unit_price))
        self.must_contract = None
        ref = event.negotiation
        buyer, seller = self.seat[ref.buyer], self.seat[ref.seller]
        self.book.append((event.time, buyer, seller, ref.product, event.quantity, event.unit_price))
        self.n_contracts += 1

    def on_settlement(self, event):
        if self.phase == "negotiations":
            assert not self.open
            assert self.must_contract is None
            self._every_solvent_pair_negotiates()
            self.phase, self.next_seat = "settlement", 0
            self.closing = list(self.bankrupt)
        assert self.phase == "settlement"
        seat = self.seat[event.agent]
        assert seat == self.next_seat
        self.next_seat += 1
        self.may_fail = seat
        expected = self.settle(seat)
        for name, value in expected.items():
            assert getattr(event, name) == pytest.approx(value, **CLOSE), (self.day, event.agent, name)
        self.balances[seat] = expected["balance"]
        self.stock[seat] = expected["inventory_input"]
        if expected["balance"] < 0:
            self.closing[seat] = True
        self.n_settled += 1

    def settle(self, seat):
        """The day of one factory, by the rules."""
        factory, agent = self.setup.factories[seat], self.ids[seat]
        buys = [(price, quantity) for _, buyer, _, _, quantity, price in self.due() if buyer == seat]
        sells = [(price, quantity) for _, _, seller, _, quantity, price in self.due() if seller == seat]
        forced_in = [(c.quantity, c.unit_price) for c in self.exogenous if c.buyer == agent]
        forced_out = [(c.quantity, c.unit_price) for c in self.exogenous if c.seller == agent]
        bought = sum(quantity for _, quantity in buys) + sum(quantity for quantity, _ in forced_in)
        # Exogenous supply and stock are one line, whose price spreads the exogenous bill over both.
        line = sum(quantity for quantity, _ in forced_in) + self.stock[seat]
        if line:
            buys.append((sum(quantity * price for quantity, price in forced_in) / line, line))
        out_line = sum(quantity for quantity, _ in forced_out)
        if out_line:
            sells.append((sum(quantity * price for quantity, price in forced_out) / out_line, out_line))

        bill = usable = 0
        affordable = None if self.balances[seat] >= 0 else 0
        for price, quantity in sorted(buys, key=lambda item: item[0]):
            spent = bill + price * quantity + factory.cost * quantity
            if affordable is None and spent > self.balances[seat]:
                affordable = usable + int((self.balances[seat] - bill) // (price + factory.cost))
            bill += price * quantity
            usable += quantity
        capacity = min(usable if affordable is None else affordable, factory.n_lines)

        sold = sum(quantity for _, quantity in sells)
        produced = min(capacity, sold)
        revenue, left = 0, capacity
        for price, quantity in sorted(sells, key=lambda item: -item[0]):
            delivered = min(quantity, left)
            revenue += delivered * price
            left -= delivered

        relative = self.costs
        shortfall = (
            relative.shortfall_penalty[seat, self.day] * self.opening_prices[factory.level + 1] * (sold - produced)
        )
        storage = relative.storage_cost[seat, self.day] * self.opening_prices[factory.level] * (usable - produced)
        profit = revenue - bill - factory.cost * produced - storage - shortfall
        unused = usable - produced if self.depleting else self.stock[seat] + max(0, bought - produced)
        return {
            "input_quantity": bought,
            "output_quantity": sold,
            "produced": produced,
            "profit": profit,
            "balance": self.balances[seat] + profit,
            "inventory_input": unused,
            "shortfall_quantity": sold - produced,
            "shortfall_penalty": shortfall,
            "storage_cost": storage,
        }

    def due(self):
        return [line for line in self.book if line[0] == self.day]

    def on_bankruptcy(self, day, agent, balance):
        seat = self.seat[agent]
        assert self.phase == "settlement"
        assert seat == self.may_fail
        assert not self.bankrupt[seat]
        assert balance == pytest.approx(self.balances[seat], **CLOSE)
        assert balance < 0
        self.n_bankrupt += 1

    def on_day_end(self, event):
        assert self.phase == "settlement"
        assert self.next_seat == self.setup.n_seats
        self.phase = "between days"
        traded = [(product, quantity, price) for _, _, _, product, quantity, price in self.due()]
        traded += [(c.product, c.quantity, c.unit_price) for c in self.exogenous]
        for product in range(len(self.prices)):
            quantity = sum(q for p, q, _ in traded if p == product)
            money = sum(q * price for p, q, price in traded if p == product)
            if quantity:
                weight = 0.9 * self.volumes[product]
                self.prices[product] = (weight * self.prices[product] + money) / (weight + quantity)
                self.volumes[product] = weight + quantity
            assert event.sold_quantities[product] == quantity
        assert event.trading_prices == pytest.approx(self.prices, **CLOSE)
        assert event.balances == pytest.approx(self.balances, **CLOSE)
        assert list(event.bankrupt) == self.closing
        self.bankrupt = self.closing
        self.book = [
            line
            for line in self.book
            if line[0] > self.day and not self.bankrupt[line[1]] and not self.bankrupt[line[2]]
        ]

    def on_world_end(self, event):
        assert self.phase == "between days"
        assert event.days == self.day + 1 == self.setup.n_days
        for seat, factory in enumerate(self.setup.factories):
            assert event.scores[self.ids[seat]] == pytest.approx(self.balances[seat] / factory.balance, **CLOSE)
        self.phase = "after"


@pytest.fixture
def auditor():
    """The class that audits a world: ``auditor(setup, inventory)``."""
    return Auditor


def _register(name):
    """Makes a module beside this file importable, so that seats can name its agents by path."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def driven_agents():
    """The module of a simple strategy, as functions and as an agent."""
    return _register("driven_agents")


@pytest.fixture(scope="session")
def hostile_agents():
    """The module of hostile agents."""
    return _register("hostile_agents")


@pytest.fixture(scope="session")
def probe_agents():
    """The module of agents that record what happens to them."""
    return _register("probe_agents")
