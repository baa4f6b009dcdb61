"""Reports: strata of the worlds, and statistics as plain values."""

from apexrl.statistics import summarize
from litaagent_std.arena.report import statistics_values, strata


def test_strata_are_levels_and_lengths():
    units = [{"level": "last", "n_days": 50}, {"level": "first", "n_days": 200}, {"level": "last", "n_days": 200}]
    assert strata(units) == {"all": [0, 1, 2], "first": [1], "last": [0, 2], "50 days": [0], "200 days": [1, 2]}


def test_observations_of_a_report_are_worlds():
    assert list(statistics_values(summarize([1.0, 2.0]))) == ["worlds", "mean", "truncated", "low_tail", "worst"]
