"""Reports: strata of the worlds, statistics as plain values, and what the title of the comparisons says."""

from apexrl.statistics import summarize
from litaagent_std.arena.report import statistics_values, strata
from litaagent_std.arena.sequential import comparison_title


def test_strata_are_levels_and_lengths():
    units = [{"level": "last", "n_days": 50}, {"level": "first", "n_days": 200}, {"level": "last", "n_days": 200}]
    assert strata(units) == {"all": [0, 1, 2], "first": [1], "last": [0, 2], "50 days": [0], "200 days": [1, 2]}


def test_observations_of_a_report_are_worlds():
    assert list(statistics_values(summarize([1.0, 2.0]))) == ["worlds", "mean", "truncated", "low_tail", "worst"]


def test_the_title_says_when_the_intervals_of_several_opponents_hold_together():
    report = {"focal": "lita", "alpha": 0.025, "comparisons": [{}, {}]}
    assert comparison_title(report).endswith("(at any time: all 2 hold together)")
    assert comparison_title(report | {"alpha": 0.05, "comparisons": [{}]}) == "lita minus the other, in the same worlds"
