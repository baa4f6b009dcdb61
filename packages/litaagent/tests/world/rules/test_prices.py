import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litaagent_std.world.rules.prices import Market, mean_price, next_market, price_band


def test_price_moves_to_what_was_paid():
    market = next_market(Market(10.0, 50.0), sold=5, mean=20.0, discount=0.9)
    assert market.price == pytest.approx((0.9 * 50 * 10 + 5 * 20) / (0.9 * 50 + 5))
    assert market.weight == pytest.approx(0.9 * 50 + 5)


def test_price_stands_without_trade():
    assert next_market(Market(10.0, 50.0), sold=0, mean=0.0, discount=0.9) == Market(10.0, 50.0)


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 60)), min_size=1, max_size=20))
def test_mean_price_is_the_mean(trades):
    mean, quantity = 0.0, 0
    for more, price in trades:
        mean, quantity = mean_price(mean, quantity, more, price), quantity + more
    assert mean == pytest.approx(np.average([price for _, price in trades], weights=[q for q, _ in trades]))


@pytest.mark.parametrize(("price", "band"), [(10.0, (9, 11)), (16.1, (14, 17)), (1.0, (1, 1)), (0.5, (0, 1))])
def test_band_around_the_price(price, band):
    assert price_band(price, 0.1) == band
