"""A factory's public interface made by hand, and random observations for properties."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import strategies as st

from litaagent_std.policy.brain import Decision
from litaagent_std.policy.columns import CalendarBatch, ObservationBatch
from litaagent_std.policy.l1.safety import bounds
from litaagent_std.policy.memory import Regime
from litaagent_std.policy.observation import Agenda, Calendar, Observation, Offer, Partner, ThreadObservation


def _issue(low, high):
    return SimpleNamespace(min_value=low, max_value=high)


def make_interface(**changes):
    """A middle factory on day 3 of 20 with two suppliers (one bankrupt) and one consumer."""
    report = SimpleNamespace(step=0, cash=500, assets=7, breach_prob=0.25, breach_level=0.125, is_bankrupt=False)
    values = {
        "current_step": 3,
        "n_steps": 20,
        "horizon": 4,
        "n_products": 4,
        "n_lines": 10,
        "level": 1,
        "my_input_product": 1,
        "my_output_product": 2,
        "is_first_level": False,
        "is_last_level": False,
        "is_perishable": False,
        "current_balance": 1000.5,
        "current_inventory_input": 6,
        "current_inventory_output": 0,
        "needed_sales": 4,
        "needed_supplies": -4,
        "current_exogenous_input_quantity": 0,
        "current_exogenous_input_price": 0,
        "current_exogenous_output_quantity": 0,
        "current_exogenous_output_price": 0,
        "current_shortfall_penalty": 0.5,
        "current_storage_cost": 0.02,
        "current_disposal_cost": 0.0,
        "my_suppliers": ["s1", "s2"],
        "my_consumers": ["c1"],
        "my_competitors": ["m2"],
        "profile": SimpleNamespace(cost=2, shortfall_penalty_mean=0.6, storage_cost_mean=0.03, disposal_cost_mean=0.0),
        "trading_prices": [10.0, 16.0, 24.0, 30.0],
        "catalog_prices": [10, 15, 22, 30],
        "exogenous_contract_summary": [(20.0, 200.0), (0.0, 0.0), (0.0, 0.0), (18.0, 500.0)],
        "current_input_issues": [_issue(1, 30), _issue(3, 7), _issue(14, 17)],
        "current_output_issues": [_issue(1, 30), _issue(3, 7), _issue(21, 26)],
        "supplies": {"s1": 5, "s2": 3},
        "supplies_cost": {"s1": 75, "s2": 45},
        "sales": {"c1": 4},
        "sales_cost": {"c1": 100},
        "future_supplies": {4: {"s1": 2}, 9: {"s1": 1}},
        "future_supplies_cost": {4: {"s1": 30}, 9: {"s1": 15}},
        "future_sales": {7: {"c1": 10}},
        "future_sales_cost": {7: {"c1": 250}},
        "is_bankrupt": lambda aid=None: aid == "s2",
        "is_system": lambda aid: aid in ("SELLER", "BUYER"),
        "reports_of_agent": lambda aid: {0: report} if aid == "s1" else None,
    }
    return SimpleNamespace(**(values | changes))


@pytest.fixture
def interface():
    return make_interface


def make_observation(**changes):
    """A middle factory in the middle of a world with a stock of 10."""
    values = {
        "day": 5,
        "n_days": 50,
        "horizon": 10,
        "level": 1,
        "n_levels": 3,
        "n_lines": 10,
        "perishable": False,
        "cash": 10_000.0,
        "initial_balance": 10_000.0,
        "stock_in": 10,
        "stock_out": 0,
        "needed_sales": 10,
        "needed_supplies": 0,
        "exogenous_in": 0,
        "exogenous_in_value": 0.0,
        "exogenous_out": 0,
        "exogenous_out_value": 0.0,
        "production_cost": 2.0,
        "shortfall_penalty": 0.5,
        "storage_cost": 0.02,
        "disposal_cost": 0.0,
        "shortfall_penalty_mean": 0.5,
        "storage_cost_mean": 0.02,
        "disposal_cost_mean": 0.0,
        "trading_prices": (10.0, 15.0, 20.0, 30.0),
        "catalog_prices": (10.0, 15.0, 20.0, 30.0),
        "price_history": ((10.0, 15.0, 20.0, 30.0),) * 6,
        "market_exogenous_quantity": (20.0, 0.0, 0.0, 20.0),
        "market_exogenous_value": (200.0, 0.0, 0.0, 600.0),
        "buy_agenda": Agenda(1, 30, 5, 15, 13, 16),
        "sell_agenda": Agenda(1, 30, 5, 15, 18, 22),
        "calendar": Calendar((0,) * 11, (0.0,) * 11, (0,) * 11, (0.0,) * 11),
        "suppliers": tuple(Partner(f"s{i}", False, (), (), 0.0, 0.0, 0.0) for i in range(3)),
        "consumers": tuple(Partner(f"c{i}", False, (), (), 0.0, 0.0, 0.0) for i in range(3)),
        "competitors": (),
    }
    return Observation(**(values | changes))


@pytest.fixture
def observation():
    return make_observation


@st.composite
def observations(draw):
    """Any factory on any day: every level, length, horizon, number of lines, calendar and price."""
    n_levels = draw(st.integers(1, 4))
    level = draw(st.integers(0, n_levels - 1))
    n_days = draw(st.integers(1, 60))
    day = draw(st.integers(0, n_days - 1))
    horizon = draw(st.integers(0, 12))
    lines = draw(st.integers(1, 12))
    leads = horizon + 1
    last = min(day + horizon, n_days - 1)
    units = st.lists(st.integers(0, lines), min_size=leads, max_size=leads)
    sold, bought = draw(units), draw(units)
    for lead in range(last - day + 1, leads):
        sold[lead] = bought[lead] = 0
    prices = tuple(float(draw(st.integers(1, 60))) for _ in range(n_levels + 1))
    first, final = level == 0, level == n_levels - 1

    def agenda(price):
        low = max(1, int(0.9 * price))
        return Agenda(1, 3 * lines, day, last, low, max(low, int(1.1 * price)))

    def partners(prefix):
        count = draw(st.integers(0, 5))
        cash = st.floats(-100, 5000)
        return tuple(
            Partner(f"{prefix}{i}", draw(st.booleans()), (0, 5), (draw(cash), draw(cash)), 0.0, 0.0, 0.0)
            for i in range(count)
        )

    exogenous_in, exogenous_out = (draw(st.integers(0, 20)) if edge else 0 for edge in (first, final))
    return make_observation(
        day=day,
        n_days=n_days,
        horizon=horizon,
        level=level,
        n_levels=n_levels,
        n_lines=lines,
        cash=draw(st.floats(0, 20_000)),
        stock_in=draw(st.integers(0, 40)),
        exogenous_in=exogenous_in,
        exogenous_in_value=exogenous_in * prices[level],
        exogenous_out=exogenous_out,
        exogenous_out_value=exogenous_out * prices[level + 1],
        production_cost=float(draw(st.integers(1, 12))),
        trading_prices=prices,
        catalog_prices=prices,
        price_history=(prices,) * (day + 1),
        market_exogenous_quantity=(0.0,) * (n_levels + 1),
        market_exogenous_value=(0.0,) * (n_levels + 1),
        buy_agenda=None if first else agenda(prices[level]),
        sell_agenda=None if final else agenda(prices[level + 1]),
        calendar=Calendar(
            tuple(bought),
            tuple(float(q * prices[level]) for q in bought),
            tuple(sold),
            tuple(float(q * prices[level + 1]) for q in sold),
        ),
        suppliers=() if first else partners("s"),
        consumers=() if final else partners("c"),
    )


@pytest.fixture
def any_observation():
    return observations()


class Market:
    """Partners that say anything: every decision is checked, every proposal may be accepted."""

    def __init__(self, brain, obs, data):
        self.brain, self.obs, self.data = brain, obs, data
        self.calendar = obs.calendar
        self.threads = {p.name: True for p in obs.suppliers} | {p.name: False for p in obs.consumers}
        self.pending = {}

    def thread(self, name, round_, offer):
        return ThreadObservation(
            day=self.obs.day,
            partner=name,
            buying=self.threads[name],
            round=round_,
            n_rounds=5,
            relative_time=(round_ + 1) / 6,
            opens=True,
            offer=offer,
            turns=(),
            calendar=self.calendar,
        )

    def play(self):
        self.brain.start_day(self.obs)
        first = self.brain.propose([self.thread(name, 0, None) for name in self.threads])
        self.take({name: Decision("reject", offer) for name, offer in first.items()}, {})
        for round_ in range(1, 5):
            self.answer_proposals()
            offers = {name: self.lie(name) for name in list(self.threads) if self.data.draw(st.booleans())}
            threads = [self.thread(name, round_, offer) for name, offer in offers.items()]
            for name in offers:
                self.pending.pop(name, None)
            self.take(self.brain.respond(threads), offers)

    def lie(self, name):
        agenda = self.obs.buy_agenda if self.threads[name] else self.obs.sell_agenda
        draw = self.data.draw
        if agenda is None or draw(st.integers(0, 9)) == 0:
            return Offer(draw(st.integers(-5, 99)), draw(st.integers(-5, 99)), draw(st.integers(-5, 99)))
        return Offer(
            draw(st.integers(agenda.quantity_min, agenda.quantity_max)),
            draw(st.integers(agenda.time_min, agenda.time_max)),
            draw(st.integers(agenda.price_min, agenda.price_max)),
        )

    def take(self, decisions, offers):
        signed = []
        for name, decision in decisions.items():
            agenda = self.obs.buy_agenda if self.threads[name] else self.obs.sell_agenda
            if decision.kind == "accept":
                assert decision.offer == offers[name]
                assert agenda.legal(decision.offer)
                signed.append((name, decision.offer))
            elif decision.offer is not None:
                assert agenda.legal(decision.offer)
                self.pending[name] = decision.offer
            else:
                self.threads.pop(name)
        for name, offer in signed:
            self.sign(name, offer)

    def answer_proposals(self):
        for name, offer in list(self.pending.items()):
            if self.data.draw(st.booleans()):
                del self.pending[name]
                self.sign(name, offer)

    def sign(self, name, offer):
        buying = self.threads.pop(name)
        lead = offer.time - self.obs.day
        units = list(self.calendar.bought if buying else self.calendar.sold)
        value = list(self.calendar.bought_value if buying else self.calendar.sold_value)
        units[lead] += offer.quantity
        value[lead] += offer.quantity * offer.price
        if buying:
            self.calendar = replace(self.calendar, bought=tuple(units), bought_value=tuple(value))
        else:
            self.calendar = replace(self.calendar, sold=tuple(units), sold_value=tuple(value))
        self.brain.contract(name, buying=buying, offer=offer)


class SilentMarket(Market):
    """Partners that never take our proposals."""

    def answer_proposals(self):
        self.pending.clear()


@pytest.fixture(scope="session")
def market():
    return Market


@pytest.fixture(scope="session")
def silent_market():
    return SilentMarket


def missing_units(obs, calendar, regime):
    """Units that cannot be delivered, day by day, if nothing else is agreed and no exogenous goods come."""
    stock, missing = obs.stock_in, []
    for lead, (bought, sold) in enumerate(zip(calendar.bought, calendar.sold, strict=True)):
        bought += obs.exogenous_in if lead == 0 else 0
        sold += obs.exogenous_out if lead == 0 else 0
        produced = min(stock + bought, obs.n_lines, sold)
        missing.append(sold - produced)
        stock = stock + bought - produced if regime is Regime.DEPLETING else stock
    return missing


def bounds_of(obs, calendar, regime):
    """L1's bounds of one factory."""
    persistent = np.array([regime is Regime.PERSISTENT])
    made = bounds(ObservationBatch.of([obs]), CalendarBatch.of([calendar]), persistent)
    return made.row(0, obs.horizon + 1)


@pytest.fixture(scope="session")
def one_bounds():
    return bounds_of


@pytest.fixture(scope="session")
def shortfall():
    return missing_units


@pytest.fixture(scope="session")
def same():
    """Whether two sets of arrays are equal, bit by bit."""

    def compare(one, other):
        pairs = [(getattr(one, name), getattr(other, name)) for name in one.__slots__]
        return all((a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()) for a, b in pairs)

    return compare
