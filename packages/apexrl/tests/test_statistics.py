"""Statistics, against values computed by hand and against resampling written out."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import trim_mean

from apexrl.statistics import (
    RESAMPLES,
    bootstrap_estimates,
    bootstrap_interval,
    cluster_p_value,
    fast_bootstrap_interval,
    holm_adjusted,
    interquartile_mean,
    interval_over_seeds,
    mean,
    paired_difference,
    percentile_interval,
    resample,
    summarize,
    truncated_mean,
)


@st.composite
def grouped_values(draw):
    """Values with 2 to 6 groups of 1 to 6 values, in mixed order."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=2, max_size=6))
    groups = draw(st.permutations([group for group, size in enumerate(sizes) for _ in range(size)]))
    values = draw(st.lists(st.floats(-2, 3), min_size=len(groups), max_size=len(groups)))
    return np.array(values), groups


def written_out(values, groups, statistic, resamples=RESAMPLES):
    """Draw the groups of one resample after the other, and compute the statistic of their values."""
    rng = np.random.default_rng(0)
    members = [np.flatnonzero(np.array(groups) == group) for group in sorted(set(groups))]
    estimates = []
    for _ in range(resamples):
        chosen = rng.integers(len(members), size=len(members))
        estimates.append(statistic(values[np.concatenate([members[index] for index in chosen])]))
    return np.array(estimates)


def test_importing_statistics_needs_nothing_but_numpy():
    code = "import sys, apexrl.statistics; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert "numpy" in loaded
    assert not loaded & {"torch", "pydantic", "scipy", "gymnasium", "yaml", "rich"}


def test_the_truncated_mean_leaves_out_only_the_top():
    values = np.array([-9.0, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 9.0])
    assert truncated_mean(values) == pytest.approx(values[:-1].mean())


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=40))
def test_the_interquartile_mean_is_scipys(values):
    assert interquartile_mean(np.array(values)) == float(trim_mean(np.array(values), 0.25))


@settings(max_examples=20)
@given(grouped_values(), st.sampled_from([mean, truncated_mean]))
def test_whole_groups_are_resampled(sample, statistic):
    values, groups = sample
    expected = written_out(values, groups, statistic, 50)
    assert np.array_equal(bootstrap_estimates(values, groups, statistic, resamples=50), expected)
    assert bootstrap_interval(values, groups, statistic, resamples=50) == percentile_interval(expected)


@settings(max_examples=20)
@given(st.lists(st.floats(-2, 3), min_size=2, max_size=70), st.sampled_from([mean, interquartile_mean]))
def test_without_groups_each_value_is_its_own(values, statistic):
    expected = written_out(np.array(values), range(len(values)), statistic, 50)
    assert np.array_equal(bootstrap_estimates(np.array(values), statistic=statistic, resamples=50), expected)


def test_resamples_drawn_at_once_are_those_drawn_one_by_one():
    rng = np.random.default_rng(7)
    assert np.array_equal(resample(13, 40, seed=7), [rng.integers(13, size=13) for _ in range(40)])


@settings(max_examples=20)
@given(grouped_values())
def test_the_fast_interval_of_the_mean_is_the_interval(sample):
    values, groups = sample
    assert fast_bootstrap_interval(values, groups, mean) == pytest.approx(bootstrap_interval(values, groups), abs=1e-9)


def test_the_fast_interval_of_the_truncated_mean_is_the_interval():
    rng = np.random.default_rng(4)
    values = np.concatenate([rng.normal(1, 0.2, 57), [9.0, 8.0, -3.0]])  # outliers on both sides
    groups = [int(group) for group in rng.integers(0, 7, 60)]
    expected = bootstrap_interval(values, groups, truncated_mean)
    assert fast_bootstrap_interval(values, groups, truncated_mean) == pytest.approx(expected, abs=1e-9)


def test_the_fast_interval_refuses_other_statistics():
    with pytest.raises(ValueError, match="use bootstrap_interval"):
        fast_bootstrap_interval(np.array([1.0, 2.0]), [0, 1], interquartile_mean)


@pytest.mark.parametrize("interval", [bootstrap_interval, fast_bootstrap_interval])
@pytest.mark.parametrize("statistic", [mean, truncated_mean])
def test_one_group_gives_no_interval(interval, statistic):
    assert interval(np.array([1.0, 2.0]), [5, 5], statistic) == (None, None)


def test_the_interval_over_seeds_covers_the_mean_and_narrows_with_seeds():
    rng = np.random.default_rng(0)
    few, many = rng.normal(size=10), rng.normal(size=1000)
    low, high = interval_over_seeds(few)
    assert low < few.mean() < high
    narrow = interval_over_seeds(many)
    assert narrow[1] - narrow[0] < (high - low) / 3
    assert interval_over_seeds(np.array([0.5])) == (0.5, 0.5)


def test_a_summary():
    summary = summarize([1.0, 1.1, 1.2, 1.3, 9.0])
    assert summary.count == 5
    assert summary.mean == pytest.approx(2.72)
    assert summary.truncated == pytest.approx(1.15)  # 9.0 is above Q3 + 2 (Q3 - Q1) = 1.3 + 0.4
    assert summary.low_tail == pytest.approx(1.02)
    assert summary.worst == 1.0


def test_a_paired_difference_removes_what_the_units_share():
    rng = np.random.default_rng(0)
    units = rng.normal(1.0, 1.0, size=200)
    difference = paired_difference(units + rng.normal(0.1, 0.05, size=200), units)
    assert difference.mean == pytest.approx(0.1, abs=0.01)
    assert 0.08 < difference.low < difference.mean < difference.high < 0.12
    assert difference.deviation == pytest.approx(0.05, rel=0.2)
    assert difference.won > 0.9


def test_a_tie_is_half_won_and_a_single_pair_has_no_interval():
    difference = paired_difference([1.0], [1.0])
    assert (difference.won, difference.low, difference.high, difference.deviation) == (0.5, None, None, None)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="same units"):
        paired_difference([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="at least one"):
        summarize([])


def test_holm_multiplies_by_the_hypotheses_that_are_left_and_keeps_the_order():
    adjusted = holm_adjusted([0.04, 0.01, 0.03, 0.5])
    assert adjusted == pytest.approx([0.09, 0.04, 0.09, 0.5])  # 0.04 · 2 = 0.08 is raised to that of 0.03 · 3
    assert holm_adjusted([0.6, 0.7]) == pytest.approx([1.0, 1.0])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_lies_between_no_correction_and_bonferroni(values):
    p_values = np.array(values)
    adjusted = holm_adjusted(p_values)
    assert np.all(adjusted >= p_values)
    assert np.all(adjusted <= np.minimum(p_values * len(values), 1.0))


def test_the_p_value_of_groups_is_the_t_test_of_their_means_if_they_are_of_one_size():
    from scipy.stats import ttest_1samp

    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(12), 5)
    values = rng.normal(0.1, 1.0, 60) + np.repeat(rng.normal(0, 1.0, 12), 5)
    by_group = values.reshape(12, 5).mean(axis=1)
    assert cluster_p_value(values, groups.tolist()) == pytest.approx(ttest_1samp(by_group, 0.0).pvalue)
    assert cluster_p_value(values) == pytest.approx(ttest_1samp(values, 0.0).pvalue)
    assert cluster_p_value(values, ["one"] * 60) is None
    assert cluster_p_value([0.5, 0.5, 0.5]) == 1.0


def test_p_values_are_uniform_without_a_difference_and_holm_keeps_the_family_error():
    rng = np.random.default_rng(1)
    groups = [group for group in range(20) for _ in range(3)]
    found = 0
    for _ in range(200):  # families of 10 comparisons without any difference
        p_values = []
        for _ in range(10):
            values = rng.normal(size=60) + np.repeat(rng.normal(size=20), 3)
            p_values.append(cluster_p_value(values, groups))
        found += holm_adjusted(p_values).min() <= 0.05
    assert found <= 22  # 5 % of 200 is 10, with the 0.1 % quantile of the binomial distribution above it
