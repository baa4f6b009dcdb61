"""Statistics of scores, against values computed by hand."""

import numpy as np
import pytest

from litaagent_std.arena.statistics import paired_difference, strata, summarize


def test_a_summary():
    scores = [1.0, 1.1, 1.2, 1.3, 9.0]
    found = summarize(scores)
    assert found.worlds == 5
    assert found.mean == pytest.approx(2.72)
    assert found.truncated == pytest.approx(1.15)  # 9.0 is above Q3 + 2 (Q3 - Q1) = 1.3 + 0.4
    assert found.low_tail == pytest.approx(1.02)
    assert found.worst == 1.0


def test_a_paired_difference_sees_through_the_worlds():
    luck = np.random.default_rng(0)
    worlds = luck.normal(1.0, 1.0, size=200)
    found = paired_difference(worlds + luck.normal(0.1, 0.05, size=200), worlds)
    assert found.mean == pytest.approx(0.1, abs=0.01)
    assert 0.08 < found.low < found.mean < found.high < 0.12
    assert found.deviation == pytest.approx(0.05, rel=0.2)
    assert found.won > 0.9


def test_a_tie_is_half_won_and_a_single_pair_has_no_interval():
    found = paired_difference([1.0], [1.0])
    assert (found.won, found.low, found.high, found.deviation) == (0.5, None, None, None)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="same worlds"):
        paired_difference([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="at least one world"):
        summarize([])


def test_strata_are_levels_and_lengths():
    units = [{"level": "last", "n_days": 50}, {"level": "first", "n_days": 200}, {"level": "last", "n_days": 200}]
    assert strata(units) == {"all": [0, 1, 2], "first": [1], "last": [0, 2], "50 days": [0], "200 days": [1, 2]}
