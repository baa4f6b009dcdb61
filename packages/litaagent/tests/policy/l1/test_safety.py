import pytest
from hypothesis import given
from hypothesis import strategies as st

from litaagent_std.policy.l1.safety import bounds, clip
from litaagent_std.policy.memory import Regime, RegimeDetector
from litaagent_std.policy.observation import Agenda, Calendar, Offer


def calendar(sold=(), bought=(), price=15.0, leads=11):
    sold, bought = ((*x, *(0,) * (leads - len(x))) for x in (sold, bought))
    return Calendar(tuple(bought), tuple(q * price for q in bought), tuple(sold), tuple(q * 20.0 for q in sold))


def test_a_persistent_stock_feeds_every_day(observation):
    limits = bounds(observation(stock_in=7), calendar(sold=(2, 0, 9)), Regime.PERSISTENT)
    assert limits.lines[:4] == (8, 10, 1, 10)
    assert limits.covered[:4] == (5, 7, 0, 7)
    assert limits.spare[2] == -2


def test_a_depleting_stock_is_sold_once(observation):
    limits = bounds(observation(stock_in=12), calendar(sold=(2, 0, 5), bought=(0, 3)), Regime.DEPLETING)
    # 12 + 3 units are there and 7 are promised: 8 are left; on the third day the lines leave room for 5.
    assert limits.covered[:4] == (8, 8, 5, 8)
    scarce = bounds(observation(stock_in=4), calendar(sold=(0, 4)), Regime.DEPLETING)
    assert scarce.covered == (0,) * 11


def test_exogenous_contracts_count_today_only(observation):
    obs = observation(exogenous_out=4, exogenous_in=3, stock_in=2)
    limits = bounds(obs, calendar(), Regime.PERSISTENT)
    assert limits.lines[:2] == (6, 10)
    assert limits.covered[:2] == (1, 2)


def test_nothing_is_sold_beyond_the_last_day(observation):
    obs = observation(day=48, sell_agenda=Agenda(1, 30, 48, 49, 18, 22))
    assert bounds(obs, calendar(), Regime.PERSISTENT).lines == (10, 10, *(0,) * 9)


def test_purchases_stay_within_free_cash(observation):
    # 1000 − 20·15 already owed − 5 units produced today at 2 = 690; a unit costs at most 16 + 2.
    limits = bounds(observation(cash=1000.0), calendar(sold=(5,), bought=(0, 20)), Regime.PERSISTENT)
    assert limits.buy == 690 // 18
    assert bounds(observation(cash=-5.0), calendar(), Regime.PERSISTENT).buy == 0


@pytest.mark.parametrize(
    ("after", "regime", "known"),
    [(10, Regime.PERSISTENT, True), (6, Regime.DEPLETING, True), (3, Regime.PERSISTENT, False)],
)
def test_the_regime_is_read_from_the_books(after, regime, known):
    detector = RegimeDetector(Regime.PERSISTENT)
    detector.update(stock_before=10, bought=2, produced=6, stock_after=after)
    assert (detector.regime, detector.known) == (regime, known)


def test_a_day_that_used_only_what_it_received_tells_nothing():
    detector = RegimeDetector(Regime.DEPLETING)
    detector.update(stock_before=4, bought=6, produced=6, stock_after=4)
    assert not detector.known


@given(st.integers(-5, 60), st.integers(-5, 60), st.integers(-5, 60), st.integers(-5, 40))
def test_a_clipped_offer_is_legal_and_within_the_bound(quantity, time, price, most):
    agenda = Agenda(1, 30, 3, 7, 14, 17)
    clipped = clip(Offer(quantity, time, price), agenda, most)
    if clipped is None:
        assert min(quantity, most) < 1
    else:
        assert agenda.legal(clipped)
        assert clipped.quantity <= most
