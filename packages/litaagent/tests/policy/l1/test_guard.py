"""The guard: the expected cost of what could be taken beyond a cap stays within the budget."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from litaagent_std.policy.columns import ObservationBatch, live_threads
from litaagent_std.policy.l1.guard import Allowance, guard, wanted_plan
from litaagent_std.policy.l1.safety import bounds
from litaagent_std.policy.l2.heuristic import heuristic_goals
from litaagent_std.policy.layers import ACCEPT, COUNTER, END, KEEP, Action, ActionBatch, DayBatch, SituationBatch
from litaagent_std.policy.memory import Memory
from litaagent_std.policy.observation import Offer, ThreadObservation
from litaagent_std.policy.parameters import ParameterColumns, Parameters
from litaagent_std.policy.plan import PlanBatch

NAMES = ("a", "b", "c", "d")


NOTHING = Offer(0, 0, 0)


def actions(**said):
    """What a layer says of the threads, as a batch."""
    kinds = {"accept": ACCEPT, "counter": COUNTER, "end": END}
    rows = [said.get(name) for name in NAMES]
    return ActionBatch(
        np.array([KEEP if row is None else kinds[row.kind] for row in rows]),
        np.array([NOTHING if row is None or row.offer is None else row.offer for row in rows]),
    )


@pytest.fixture
def situation(observation):
    def make(offers=(), outstanding=None):
        obs = observation(consumers=tuple(replace(observation().consumers[0], name=name) for name in (*NAMES, "z")))
        batch, p = ObservationBatch.of([obs]), ParameterColumns.of([Parameters()])
        memory = Memory(1, 11, p)
        memory.start_day(batch)
        limits = bounds(batch, batch.calendar, memory.now.persistent)
        goals = heuristic_goals(batch, batch.calendar, limits, memory.now, p)
        received = dict(offers)
        threads = [
            ThreadObservation(obs.day, name, False, 1, 20, 0.1, True, received.get(name), (), obs.calendar)
            for name in NAMES
        ]
        pending, proposals = np.zeros((1, 5), bool), np.zeros((1, 5, 3), np.int64)
        for name, offer in (outstanding or {}).items():
            column = [partner.name for partner in obs.consumers].index(name)
            pending[0, column], proposals[0, column] = True, offer
        nothing = PlanBatch(np.zeros(4, bool), np.zeros(4, bool), np.zeros((4, 3), np.int64))
        return SituationBatch(
            True, np.array([0]), DayBatch(batch, batch.calendar, limits, memory.now, p), goals, batch.agenda[:, 1],
            live_threads(threads, [obs], [0] * 4), pending, proposals, nothing,
        )  # fmt: skip

    return make


def safe_plan(now, wanted, cap, budget, chance):
    """What the guard leaves: accepted partners, proposals by name, and what remains of the budgets."""
    budgets = np.full((1, 11), budget)
    caps = np.full((1, 11), cap)
    allowance = Allowance(caps, None, np.array([10.0]), budgets, lambda row, *_: np.full(len(row), chance))
    safe = guard(now, wanted, allowance)
    accept = {name for name, yes in zip(NAMES, safe.accept, strict=True) if yes}
    offers = {
        name: Offer(*safe.offer[row].tolist()) if safe.propose[row] else None
        for row, name in enumerate(NAMES)
        if not safe.accept[row]
    }
    return accept, offers, budgets[0]


def expected_excess(offers, cap, chance):
    """Expected units beyond a cap, by counting all cases."""
    total = 0.0
    for taken in product((False, True), repeat=len(offers)):
        units = sum(offer.quantity for offer, yes in zip(offers, taken, strict=True) if yes)
        total += max(0, units - cap) * chance ** sum(taken) * (1 - chance) ** (len(offers) - sum(taken))
    return total


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    quantities=st.lists(st.integers(1, 10), min_size=4, max_size=4),
    cap=st.integers(0, 10),
    chance=st.floats(0.05, 1.0),
    budget=st.floats(0.0, 60.0),
)
def test_risk_stays_within_the_budget(situation, quantities, cap, chance, budget):
    wanted = {name: Offer(q, 5, 20) for name, q in zip(NAMES, quantities, strict=True)}
    now = situation()
    said = wanted_plan(now, actions(**{name: Action("counter", offer) for name, offer in wanted.items()}))
    _, offers, budgets = safe_plan(now, said, cap, budget, chance)
    made = [offer for offer in offers.values() if offer is not None]
    cost = 10.0 * expected_excess(made, cap, chance)
    assert cost <= budget + 1e-6
    assert budgets[0] == pytest.approx(budget - cost, abs=1e-6), "what is risked is taken off the budget"
    assert all(offers[name] is None or offers[name].quantity <= wanted[name].quantity for name in NAMES)
    if budget == 0.0:
        assert sum(offer.quantity for offer in made) <= cap


def test_what_is_on_other_tables_counts(situation):
    now = situation({"a": Offer(4, 5, 20), "b": Offer(3, 5, 22)}, outstanding={"z": Offer(5, 5, 22)})
    said = actions(
        a=Action("accept"),
        b=Action("accept"),
        c=Action("counter", Offer(9, 5, 22)),
        d=Action("counter", Offer(9, 6, 22)),
    )
    accept, offers, _ = safe_plan(now, wanted_plan(now, said), 8, 0.0, 0.5)
    assert accept == {"b"}, "of 8 units 5 are offered elsewhere, so 3 can be accepted"
    assert offers == {"a": None, "c": None, "d": Offer(8, 6, 22)}


def test_actions_take_the_place_of_the_plan(situation):
    now = situation({"a": Offer(4, 5, 20)})
    said = actions(a=Action("accept"), b=Action("accept"), c=Action("counter", Offer(2, 5, 20)))
    plan = wanted_plan(now, said)
    assert plan.accept.tolist() == [True, False, False, False], "there is nothing to accept from b"
    assert plan.propose.tolist() == [False, False, True, False]
    assert plan.offer[2].tolist() == [2, 5, 20]
