from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litaagent_std.policy.l3.heuristic import OfferGrid
from litaagent_std.policy.l4.heuristic import Spreader
from litaagent_std.policy.observation import Agenda
from litaagent_std.policy.plan import Book, best_subset


@given(st.lists(st.tuples(st.integers(1, 12), st.floats(-5, 50)), max_size=7), st.integers(0, 20))
def test_the_subset_is_the_best_of_all(offers, room):
    quantities, values = [q for q, _ in offers], [v for _, v in offers]
    best = max(
        sum(values[i] for i in chosen)
        for size in range(len(offers) + 1)
        for chosen in combinations(range(len(offers)), size)
        if sum(quantities[i] for i in chosen) <= room
    )
    chosen = best_subset(quantities, values, room)
    assert sum(quantities[i] for i in chosen) <= room
    assert sum(values[i] for i in chosen) == pytest.approx(best)


def test_of_equal_values_fewer_units_are_given_away():
    assert best_subset([5, 3], [10.0, 10.0], 5) == {1}


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

    book = Book(room, np.ones(1))
    for units, probability in proposals:
        book.add(units, probability)
    found = book.added_excess(np.array([quantity]))[0]
    assert found == pytest.approx(excess(quantity) - excess(0), abs=1e-9)


def spreader(room, budget):
    grid = OfferGrid.of(Agenda(1, 30, 0, 1, 18, 22), 0, 2, 10, selling=True)
    gain, cost = grid.price.astype(float), np.full(len(grid.lead), 10.0)
    return grid, Spreader(grid, room, room, gain, cost, [budget] * 2)


def test_without_a_risk_budget_nothing_is_offered_twice():
    grid, spread = spreader([10, 4], 0.0)
    acceptance, anything = np.full(len(grid.lead), 0.1), np.ones(len(grid.lead), dtype=bool)
    chosen = [spread.choose(acceptance, 0.0, anything) for _ in range(3)]
    assert [grid.offer(i, 0) for i in chosen if i is not None] == [(10, 0, 22), (4, 1, 22)]
    assert chosen[2] is None


def test_with_a_risk_budget_unlikely_proposals_share_capacity():
    grid, spread = spreader([10, 0], 1000.0)
    acceptance, anything = np.full(len(grid.lead), 0.1), np.ones(len(grid.lead), dtype=bool)
    chosen = [grid.offer(spread.choose(acceptance, 0.0, anything), 0) for _ in range(2)]
    assert chosen == [(10, 0, 22), (10, 0, 22)]


def test_a_sure_acceptance_leaves_nothing_to_share():
    grid, spread = spreader([10, 0], 1000.0)
    anything = np.ones(len(grid.lead), dtype=bool)
    assert spread.choose(np.full(len(grid.lead), 1.0), 0.0, anything) is not None
    assert spread.choose(np.full(len(grid.lead), 1.0), 0.0, anything) is None


def test_the_weight_moves_the_choice_from_value_to_likelihood():
    acceptance_of = {22: 0.01, 18: 0.9}
    for weight, price in ((0.0, 22), (1.0, 18)):
        grid, spread = spreader([10, 0], 0.0)
        acceptance = np.array([acceptance_of.get(int(p), 0.02) for p in grid.price])
        chosen = spread.choose(acceptance, weight, np.ones(len(grid.lead), dtype=bool))
        assert grid.offer(chosen, 0).price == price
