import pytest

from litaagent_std.world.rules.bankruptcy import is_bankrupt, score


@pytest.mark.parametrize(
    ("was_bankrupt", "balance", "expected"),
    [(False, 0.0, False), (False, -0.01, True), (False, 10.0, False), (True, 10.0, True)],
)
def test_a_negative_balance_is_bankruptcy_for_good(was_bankrupt, balance, expected):
    assert is_bankrupt(was_bankrupt, balance) is expected


def test_the_score_is_relative_to_the_initial_balance():
    assert score(150.0, 100.0) == 1.5
    assert score(150.0, 0) == 150.0
