from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litaagent_std.policy.brain import Brain
from litaagent_std.policy.layers import Layers
from litaagent_std.policy.observation import ThreadObservation
from litaagent_std.policy.parameters import Parameters
from litaagent_std.policy.plan import Books, Goals, best_subsets, greedy_subsets


def chosen_of(choose, groups, rooms):
    """The offers that are chosen of each group, as indices in it."""
    group = np.repeat(np.arange(len(groups)), [len(offers) for offers in groups])
    offers = [offer for offers in groups for offer in offers]
    quantity, value = np.array([q for q, _ in offers], np.int64), np.array([v for _, v in offers], float)
    taken = choose(group, quantity, value, np.array(rooms))
    return [np.flatnonzero(taken[group == number]).tolist() for number in range(len(groups))]


OFFERS = st.lists(st.tuples(st.integers(1, 12), st.floats(-5, 50)), max_size=7)


@given(OFFERS, st.integers(0, 20))
def test_the_subset_is_the_best_of_all(offers, room):
    quantities, values = [q for q, _ in offers], [v for _, v in offers]
    best = max(
        sum(values[i] for i in chosen)
        for size in range(len(offers) + 1)
        for chosen in combinations(range(len(offers)), size)
        if sum(quantities[i] for i in chosen) <= room
    )
    [chosen] = chosen_of(best_subsets, [offers], [room])
    assert sum(quantities[i] for i in chosen) <= room
    assert sum(values[i] for i in chosen) == pytest.approx(best)


@pytest.mark.parametrize("choose", [best_subsets, greedy_subsets])
@given(st.lists(st.tuples(OFFERS, st.integers(0, 20)), min_size=1, max_size=5))
def test_groups_are_chosen_together_as_one_by_one(choose, groups):
    together = chosen_of(choose, [offers for offers, _ in groups], [room for _, room in groups])
    assert together == [chosen_of(choose, [offers], [room])[0] for offers, room in groups]


def test_of_equal_values_fewer_units_are_given_away():
    assert chosen_of(best_subsets, [[(5, 10.0), (3, 10.0)]], [5]) == [[1]]


def test_greedy_takes_the_best_unit_first():
    assert chosen_of(greedy_subsets, [[(4, 8.0), (3, 9.0), (2, -1.0), (3, 5.0)]], [7]) == [[0, 1]]


@given(
    st.lists(st.tuples(st.integers(1, 10), st.floats(0, 1)), max_size=4),
    st.integers(0, 12),
    st.integers(1, 10),
)
def test_added_excess_equals_enumeration(proposals, room, quantity):
    def excess(extra):
        total_excess = 0.0
        for taken in product((False, True), repeat=len(proposals)):
            chance, total = 1.0, extra
            for accepted, (units, probability) in zip(taken, proposals, strict=True):
                chance *= probability if accepted else 1.0 - probability
                total += units if accepted else 0
            total_excess += chance * max(0, total - room)
        return total_excess

    books = Books(np.array([[room, 99], [3, room]]), 10, 4)  # the second factory's second day, too
    both = (np.array([0, 1]), np.array([0, 1]))
    for units, probability in proposals:
        books.add(*both, np.array([units] * 2), np.array([probability] * 2))
    assert books.excess[0, 0].tolist() == books.excess[1, 1].tolist()
    assert books.excess[0, 0, quantity] == pytest.approx(excess(quantity) - excess(0), abs=1e-9)


@pytest.fixture
def spread_of(observation):
    """Proposals of a brain whose partners' acceptance is known, for a goal of some units for today and tomorrow."""

    def propose(room, risk_budget, chances, model_weight=0.0, partners=3):
        parameters = Parameters(risk_budget=risk_budget, model_weight=model_weight, impatience=0.0, urgency_high=0.0)
        goals = Goals((0,) * 11, (0.0,) * 11, (*room, *(0,) * 9), (18.0,) * 11, (0.0,) * 11, 0.0)
        obs = observation(stock_in=30, shortfall_penalty_mean=0.5)
        brain = Brain(parameters, Layers(l3="model"), goal_layer=Says(goals))
        brain.start_day(obs)
        model = brain._batch.sides[1].acceptance
        model.probabilities = lambda partner, weights, table, lead, quantity, price: np.array(
            [chances(p) for p in price.tolist()]
        )
        threads = [
            ThreadObservation(obs.day, f"c{i}", False, 19, 20, 0.95, True, None, (), obs.calendar)
            for i in range(partners)
        ]
        return [brain.propose(threads)[thread.partner] for thread in threads]

    return propose


class Says:
    """An L2 that sets the same goals every day."""

    def __init__(self, goals):
        self._goals = goals

    def goals(self, obs, calendar, limits, memory):
        return self._goals


def test_without_a_risk_budget_nothing_is_offered_twice(spread_of):
    assert spread_of([10, 4], 0.0, lambda price: 0.1) == [(10, 5, 22), (4, 6, 22), None]


def test_with_a_risk_budget_unlikely_proposals_share_capacity(spread_of):
    assert spread_of([10, 0], 1.0, lambda price: 0.1, partners=2) == [(10, 5, 22), (10, 5, 22)]


def test_a_sure_acceptance_leaves_nothing_to_share(spread_of):
    assert spread_of([10, 0], 1.0, lambda price: 1.0, partners=2) == [(10, 5, 22), None]


def test_the_weight_moves_the_choice_from_value_to_likelihood(spread_of):
    for weight, price in ((0.0, 22), (1.0, 18)):
        [offer] = spread_of([10, 0], 0.0, lambda p: {22: 0.01, 18: 0.9}.get(p, 0.02), weight, partners=1)
        assert offer.price == price
