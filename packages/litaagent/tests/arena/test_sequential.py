"""The sequential test: formula, rate of false alarms, power, and the number of worlds that are missing."""

import numpy as np
import pytest

from litaagent_std.arena.sequential import (
    ALPHA,
    EARLY,
    EFFECT_VARIANCE,
    FEWEST,
    confidence_sequence,
    decide,
    half_widths,
    worlds_needed,
)

RUNS, WORLDS = 1000, 1000


def draws(kind):
    luck = np.random.default_rng(7)
    shape = (RUNS, WORLDS)
    if kind == "normal":
        return luck.normal(size=shape)
    if kind == "heavy":
        return luck.standard_t(3, size=shape)
    if kind == "skewed":
        return luck.exponential(size=shape) - 1
    return luck.normal(0, 0.1, size=shape) - (luck.random(shape) < 0.02) + 0.02


@pytest.mark.parametrize(("kind", "most"), [("normal", ALPHA), ("heavy", ALPHA), ("skewed", 0.08), ("disasters", 0.12)])
def test_the_rate_of_false_alarms(kind, most):
    """A look after every world; `most` is the nominal level, or what the module admits for skewed differences."""
    alarms = np.mean([decide(values).answer != "open" for values in draws(kind)])
    assert 0.005 < alarms <= most


def test_with_several_opponents_all_answers_together_err_at_most_as_often_as_one():
    """Four opponents without a difference in worlds that all of them share; the differences are correlated."""
    rng = np.random.default_rng(11)
    runs, opponents, worlds = 400, 4, 400
    focal, others = rng.normal(size=(runs, 1, worlds)), rng.normal(size=(runs, opponents, worlds))

    def family_error(alpha):
        answers = [[decide(values, alpha=alpha).answer for values in run] for run in focal - others]
        return np.mean([set(run) != {"open"} for run in answers])

    assert family_error(ALPHA / opponents) <= ALPHA < family_error(ALPHA)


@pytest.mark.parametrize("kind", ["normal", "heavy", "skewed", "disasters"])
def test_who_waits_for_200_worlds_keeps_the_level_although_what_is_plain_counts_before(kind):
    verdicts = [decide(values, fewest=200) for values in draws(kind)]
    assert np.mean([one.answer != "open" for one in verdicts]) <= ALPHA
    assert np.mean([one.answer != "open" and one.worlds < 200 for one in verdicts]) <= 0.01


def test_what_is_plain_is_decided_before_the_worlds_that_were_asked_for():
    values = np.random.default_rng(5).normal(0.2, 0.2, size=300)
    assert EARLY <= decide(values, fewest=200).worlds < 80
    faint = np.random.default_rng(5).normal(0.06, 0.2, size=300)
    assert decide(faint).worlds < 200 <= decide(faint, fewest=200).worlds
    assert decide(values[: EARLY - 1], fewest=200).low == -np.inf


def test_the_interval_is_where_the_bayes_factor_reaches_its_bound():
    values = np.random.default_rng(0).normal(0.3, 1.0, size=60)
    _, low, high = (ends[-1] for ends in confidence_sequence(values))
    n, nu, k = 60, 59, 1 + 60 * EFFECT_VARIANCE
    for end in (low, high):
        t2 = n * (values.mean() - end) ** 2 / values.var(ddof=1)
        factor = k**-0.5 * ((1 + t2 / nu) / (1 + t2 / (k * nu))) ** (n / 2)
        assert factor == pytest.approx(1 / ALPHA)


def test_it_stops_at_a_clear_difference_and_ignores_what_follows():
    values = np.random.default_rng(2).normal(0.1, 0.2, size=600)
    clear = decide(values)
    assert clear.answer == "better"
    assert FEWEST <= clear.worlds < 200
    assert clear.low > 0
    assert clear.needed == 0
    assert decide(values[: clear.worlds]) == clear
    assert decide(-values).answer == "not better"
    assert decide(values, stop=False).worlds == 600


def test_the_lead_that_is_asked_for_moves_the_question():
    values = np.random.default_rng(2).normal(0.1, 0.2, size=600)
    assert decide(values, lead=0.2).answer == "not better"
    assert decide(values + 0.2, lead=0.2).answer == "better"


def test_nothing_is_decided_by_few_or_equal_differences():
    assert decide([]).answer == "open"
    assert decide([1.0]).answer == "open"
    assert decide(np.linspace(1.0, 1.01, FEWEST - 1)).answer == "open"
    assert decide(np.full(500, 0.3)).answer == "open"


def test_the_number_of_missing_worlds_is_about_right():
    luck = np.random.default_rng(3)
    asked = worlds_needed(0.05, 0.2, 0)
    took = [decide(luck.normal(0.05, 0.2, size=3000)).worlds for _ in range(200)]
    assert 0.5 < np.median(took) / asked < 1.5
    assert worlds_needed(0.0, 0.2, 10) is None


def test_half_widths_shrink_and_are_infinite_where_nothing_is_known():
    widths = half_widths(np.arange(1.0, 2000.0))
    assert np.isinf(widths[:5]).all()
    finite = widths[np.isfinite(widths)]
    assert finite.size > 1900
    assert (np.diff(finite) < 0).all()
