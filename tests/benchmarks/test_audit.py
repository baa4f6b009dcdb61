"""The audit finds what is unsafe, whoever does it, and nothing else."""

from types import SimpleNamespace

import pytest
from benchmarks.audit import Auditor, audited_path
from negmas import ResponseType
from negmas.sao import SAOResponse
from scml.std.agent import StdSyncAgent

from litaagent_std.world.events import ContractSigned, DayStart, Exogenous, NegotiationRef, WorldStart
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import AgentSpec, official_setup

ISSUES = (((1, 30), (0, 10), (9, 11)), ((1, 30), (0, 10), (18, 22)), ((1, 30), (0, 10), (27, 33)))
SUPPLY = NegotiationRef(0, 0, "us", "supplier", "us", "supplier", 1)
DEMAND = NegotiationRef(0, 1, "us", "buyer", "buyer", "us", 2)
OTHER = NegotiationRef(0, 2, "us", "other", "other", "us", 2)


def make_auditor(balance=400.0, stock=6, exogenous=(), **options):
    """An auditor on the first day of a factory with ten lines between suppliers and buyers."""
    audit = Auditor(**options)
    agents = ("supplier", "us", "buyer", "other")
    facts = {"levels": (0, 1, 2, 2), "agent_types": agents, "n_lines": (10,) * 4, "costs": (1.0,) * 4}
    facts |= {"daily_costs": (), "controllers": (None,) * 4}
    start = WorldStart(
        agents, **facts, initial_balances=(500.0,) * 4, catalog_prices=(10, 20, 30), n_days=20, n_rounds=20, horizon=10
    )
    audit.on_world_start(start)
    day = DayStart(0, (10.0, 20.0, 30.0), exogenous, (balance,) * 4, (stock,) * 4, ISSUES)
    audit.on_day_start(day)
    for negotiation in (SUPPLY, DEMAND, OTHER):
        audit.on_negotiation_start(negotiation)
    audit.watch("us")
    return audit


@pytest.mark.parametrize(
    "offer", [(1, 0, 30.0), (1.0, 0, 30), (0, 0, 30), (31, 0, 30), (1, 11, 30), (1, 0, 34), (1, 0), [1, 0, 30], "x"]
)
def test_an_offer_must_be_whole_numbers_inside_the_ranges(offer):
    audit = make_auditor()
    audit.check_proposals("us", {"buyer": (10, 3, 33), "supplier": (2, 1, 22), "other": None})
    assert not audit.violations
    audit.check_proposals("us", {"buyer": offer})
    assert audit.violations == {"illegal": 1}
    assert repr(offer) in audit.examples[0]


def test_sales_of_a_day_are_held_against_its_lines_together():
    audit = make_auditor()
    audit.on_contract(ContractSigned(DEMAND, 4, 5, 30))
    audit.check_acceptances("us", {"buyer": (3, 5, 30), "other": (3, 5, 30)}, ["buyer", "other"])
    assert not audit.violations
    audit.check_acceptances("us", {"buyer": (3, 5, 30), "other": (4, 5, 30)}, ["buyer", "other"])
    assert audit.violations == {"lines": 1}
    audit.check_proposals("us", {"buyer": (7, 5, 30), "other": (6, 5, 30)})
    assert audit.violations == {"lines": 2}
    assert audit.checked == 6


def test_a_forced_sale_takes_lines_today_alone():
    audit = make_auditor(exogenous=(Exogenous("SYSTEM", "us", 2, 8, 30),))
    audit.check_proposals("us", {"buyer": (3, 1, 30)})
    assert not audit.violations
    audit.check_proposals("us", {"buyer": (3, 0, 30)})
    assert audit.violations == {"lines": 1}


def test_purchases_are_held_against_cash_that_nothing_claims():
    audit = make_auditor(exogenous=(Exogenous("us", "SYSTEM", 1, 5, 20),))
    audit.on_contract(ContractSigned(SUPPLY, 5, 8, 20))
    audit.check_acceptances("us", {"supplier": (10, 1, 20)}, ["supplier"])
    assert not audit.violations
    audit.check_acceptances("us", {"supplier": (11, 1, 20)}, ["supplier"])
    audit.check_proposals("us", {"supplier": (11, 1, 20)})
    assert audit.violations == {"cash": 2}


def test_contracts_with_the_bankrupt_are_struck():
    audit = make_auditor()
    audit.on_contract(ContractSigned(DEMAND, 10, 5, 30))
    audit.on_contract(ContractSigned(OTHER, 10, 6, 30))
    audit.on_bankruptcy(0, "buyer", -1.0)
    audit.check_proposals("us", {"other": (10, 5, 30)})
    assert not audit.violations
    audit.check_proposals("us", {"other": (1, 6, 30)})
    assert audit.violations == {"lines": 1}


def test_covered_sales_need_input():
    audit = make_auditor(covered=True)
    audit.on_contract(ContractSigned(SUPPLY, 2, 3, 20))
    audit.check_proposals("us", {"buyer": (8, 3, 30)})
    assert not audit.violations
    audit.check_proposals("us", {"buyer": (7, 4, 30)})
    assert audit.violations == {"input": 1}


def test_oversold_days_and_shortfall_are_counted_for_the_audited_alone():
    audit = make_auditor()
    audit.on_contract(ContractSigned(DEMAND, 7, 0, 30))
    audit.on_contract(ContractSigned(OTHER, 7, 0, 30))
    for agent in ("us", "buyer"):
        day = {"day": 0, "agent": agent, "shortfall_quantity": 4, "shortfall_penalty": 25.0}
        audit.on_settlement(SimpleNamespace(**day))
    assert (audit.oversold, audit.shortfall_units, audit.shortfall) == (1, 4, {"us": 0.05})


class WildAgent(StdSyncAgent):
    """Offers fractions, accepts everything, and fails on the fifth day."""

    def step(self):
        if self.awi.current_step == 4:
            raise RuntimeError("on purpose")

    def first_proposals(self):
        return {name: (1.5, self.awi.current_step, 10) for name in self.negotiators}

    def counter_all(self, offers, states):
        return {name: SAOResponse(ResponseType.ACCEPT_OFFER, offers[name]) for name in offers}


def audited_world(path, seed=0):
    setup = official_setup(seed, [AgentSpec(audited_path(path))], n_days=8, n_levels=2)
    with Auditor() as audit:
        run_world(setup, observers=[audit], defaults="native")
    return audit


def test_a_wild_agent_is_found_out():
    audit = audited_world(f"{__name__}.WildAgent")
    assert audit.violations["illegal"] > 0
    assert audit.violations["lines"] + audit.violations["cash"] > 0
    assert any("on purpose" in error for error in audit.errors)


@pytest.mark.parametrize("seed", [0, 1])
def test_our_agent_is_safe(seed):
    audit = audited_world("litaagent_std.agents.hrl.LitaAgentHRL", seed)
    assert audit.checked > 20
    assert not audit.violations
    assert audit.errors == []
