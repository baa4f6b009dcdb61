"""The guard: the expected cost of what could be taken beyond a cap stays within the budget."""

from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from litaagent_std.policy.l1.guard import Allowance, guard, wanted_plan
from litaagent_std.policy.l1.safety import bounds
from litaagent_std.policy.l2.heuristic import HeuristicGoals
from litaagent_std.policy.layers import Action, Situation
from litaagent_std.policy.memory import Memory
from litaagent_std.policy.observation import Offer, ThreadObservation
from litaagent_std.policy.parameters import Parameters
from litaagent_std.policy.plan import Plan

NAMES = ("a", "b", "c", "d")


@pytest.fixture
def situation(observation):
    def make(offers=(), outstanding=None):
        obs = observation()
        memory = Memory(11, assume_persistent=True, rate=0.2)
        limits = bounds(obs, obs.calendar, memory.regime)
        goals = HeuristicGoals(Parameters()).goals(obs, obs.calendar, limits, memory)
        received = dict(offers)
        threads = tuple(
            ThreadObservation(obs.day, name, False, 1, 20, 0.1, True, received.get(name), (), obs.calendar)
            for name in NAMES
        )
        empty = Plan(frozenset(), {})
        agenda = obs.sell_agenda
        return Situation(obs, threads, True, agenda, goals, limits, outstanding or {}, memory, empty, empty)

    return make


def expected_excess(offers, cap, chance):
    """Expected units beyond a cap, by counting all cases."""
    total = 0.0
    for taken in product((False, True), repeat=len(offers)):
        units = sum(offer.quantity for offer, yes in zip(offers, taken, strict=True) if yes)
        total += max(0, units - cap) * chance ** sum(taken) * (1 - chance) ** (len(offers) - sum(taken))
    return total


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    quantities=st.lists(st.integers(1, 10), min_size=4, max_size=4),
    cap=st.integers(0, 10),
    chance=st.floats(0.05, 1.0),
    budget=st.floats(0.0, 60.0),
)
def test_risk_stays_within_the_budget(situation, quantities, cap, chance, budget):
    now = situation()
    wanted = Plan(frozenset(), {name: Offer(q, 5, 20) for name, q in zip(NAMES, quantities, strict=True)})
    budgets = [budget] * 11
    safe = guard(now, wanted, Allowance((cap,) * 11, None, 10.0, budgets, lambda thread, offer: chance))
    made = [offer for offer in safe.offers.values() if offer is not None]
    cost = 10.0 * expected_excess(made, cap, chance)
    assert cost <= budget + 1e-6
    assert budgets[0] == pytest.approx(budget - cost, abs=1e-6), "what is risked is taken off the budget"
    assert all(
        safe.offers[name] is None or safe.offers[name].quantity <= wanted.offers[name].quantity for name in NAMES
    )
    if budget == 0.0:
        assert sum(offer.quantity for offer in made) <= cap


def test_what_is_on_other_tables_counts(situation):
    now = situation({"a": Offer(4, 5, 20), "b": Offer(3, 5, 22)}, outstanding={"z": Offer(5, 5, 22)})
    wanted = Plan(frozenset("ab"), {"c": Offer(9, 5, 22), "d": Offer(9, 6, 22)})
    safe = guard(now, wanted, Allowance((8,) * 11, None, 10.0, [0.0] * 11, lambda thread, offer: 0.5))
    assert safe.accept == {"b"}, "of 8 units 5 are offered elsewhere, so 3 can be accepted"
    assert safe.offers == {"a": None, "c": None, "d": Offer(8, 6, 22)}


def test_actions_take_the_place_of_the_plan(situation):
    now = situation({"a": Offer(4, 5, 20)})
    said = {"a": Action("accept"), "b": Action("accept"), "c": Action("counter", Offer(2, 5, 20))}
    plan = wanted_plan(now, said)
    assert plan.accept == {"a"}, "there is nothing to accept from b"
    assert plan.offers == {"a": None, "b": None, "c": Offer(2, 5, 20)}
