"""Who negotiates with whom, and the ranges of the issues."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litaagent_std.world.rules.contracts import delivery_days, negotiation_pairs, quantities


@given(st.lists(st.integers(1, 4), min_size=2, max_size=5))
def test_all_neighbours_negotiate_once(sizes):
    levels = [[(level, index) for index in range(size)] for level, size in enumerate(sizes)]
    trades = []
    for caller, partner, buys in negotiation_pairs(levels):
        seller, buyer = (partner, caller) if buys else (caller, partner)
        assert buyer[0] == seller[0] + 1
        trades.append((seller, buyer))
    expected = {(seller, buyer) for low, high in itertools.pairwise(levels) for seller in low for buyer in high}
    assert len(trades) == len(expected)
    assert set(trades) == expected


def test_every_other_level_calls_counted_from_the_last():
    levels = [["a"], ["b"], ["c"], ["d"]]
    assert negotiation_pairs(levels) == [("d", "c", True), ("b", "a", True), ("b", "c", False)]


@pytest.mark.parametrize(("today", "days"), [(0, (0, 10)), (45, (45, 49)), (49, (49, 49)), (50, (49, 49))])
def test_delivery_days_stay_within_the_world(today, days):
    assert delivery_days(today, 10, 50) == days


def test_quantities_start_at_one():
    assert quantities(10, 3) == (1, 30)
    assert quantities(0, 3) == (1, 1)
