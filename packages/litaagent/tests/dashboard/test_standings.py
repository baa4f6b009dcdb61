"""The dashboard's statistics are the tournament's, computed for all resamples at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litaagent_std.dashboard.standings import (
    interval_of_mean,
    interval_of_truncated_mean,
    length_names,
    pairs_of,
    ranks_of,
)
from litaagent_std.dashboard.views.tournament import played_in
from litaagent_std.dashboard.warehouse import Warehouse
from litaagent_std.records.reader import open_records
from litaagent_std.tournament.standings import bootstrap_interval, results_of, truncated_mean


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_intervals_are_those_of_the_tournament(data):
    n_groups = data.draw(st.integers(2, 6))
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=n_groups, max_size=n_groups))
    groups = [group for group, size in enumerate(sizes) for _ in range(size)]
    values = np.array(data.draw(st.lists(st.floats(-2, 3), min_size=len(groups), max_size=len(groups))))
    places = [np.flatnonzero(np.array(groups) == group) for group in range(n_groups)]
    expected = bootstrap_interval(values, places, lambda some: float(some.mean()))
    assert interval_of_mean(values, groups) == pytest.approx(expected, abs=1e-9)


def test_truncated_intervals_are_those_of_the_tournament():
    draw = np.random.default_rng(4)
    values = np.concatenate([draw.normal(1, 0.2, 57), [9.0, 8.0, -3.0]])  # outliers on both sides
    groups = [int(group) for group in draw.integers(0, 7, 60)]
    places = [np.flatnonzero(np.array(groups) == group) for group in sorted(set(groups))]
    expected = bootstrap_interval(values, places, truncated_mean)
    assert interval_of_truncated_mean(values, groups) == pytest.approx(expected, abs=1e-9)


def test_one_configuration_gives_no_interval():
    assert interval_of_mean(np.array([1.0, 2.0]), [5, 5]) == (None, None)
    assert interval_of_truncated_mean(np.array([1.0, 2.0]), [5, 5]) == (None, None)


def test_a_recorded_tournament_has_the_standings_that_it_printed(recorded):
    folder = recorded / "tournament_history/small"
    expected = results_of(open_records(folder))
    played = played_in(Warehouse(folder / "records"))
    ranks = ranks_of(played)
    assert [rank.competitor for rank in ranks] == [one.competitor for one in expected.standings]
    for rank, one in zip(ranks, expected.standings, strict=True):
        assert (rank.score, rank.low, rank.high, rank.mean) == pytest.approx((one.score, one.low, one.high, one.mean))
    pairs = pairs_of(played, [rank.competitor for rank in ranks])
    for pair, one in zip(pairs, expected.paired, strict=True):
        assert (pair.first, pair.second, pair.pairs) == (one.first, one.second, one.pairs)
        assert (pair.difference, pair.low, pair.high) == pytest.approx((one.difference, one.low, one.high))


def test_few_lengths_keep_their_names_and_many_are_classed():
    assert length_names([50, 200, 50]) == {50: "50 days", 200: "200 days"}
    many = length_names([50, 99, 100, 149, 150, 200])
    assert many[99] == many[50] != many[100] == many[149] != many[150] == many[200]
