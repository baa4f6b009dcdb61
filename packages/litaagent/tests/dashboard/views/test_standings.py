"""The dashboard's statistics are the tournament's, computed for all resamples at once."""

import pytest

from litaagent_std.dashboard.views.standings import length_names, pairs_of, ranks_of
from litaagent_std.dashboard.views.tournament import played_in
from litaagent_std.dashboard.warehouse import Warehouse
from litaagent_std.records.reader import open_records
from litaagent_std.tournament.standings import results_of


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
