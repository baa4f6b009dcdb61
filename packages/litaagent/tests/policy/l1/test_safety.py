import pytest
from hypothesis import given
from hypothesis import strategies as st

from litaagent_std.policy.columns import ObservationBatch
from litaagent_std.policy.l1.safety import clip_offer
from litaagent_std.policy.memory import Memory, Regime
from litaagent_std.policy.observation import Agenda, Calendar, Offer
from litaagent_std.policy.parameters import ParameterColumns, Parameters


def calendar(sold=(), bought=(), price=15.0, leads=11):
    sold, bought = ((*x, *(0,) * (leads - len(x))) for x in (sold, bought))
    return Calendar(tuple(bought), tuple(q * price for q in bought), tuple(sold), tuple(q * 20.0 for q in sold))


def test_a_persistent_stock_feeds_every_day(observation, one_bounds):
    limits = one_bounds(observation(stock_in=7), calendar(sold=(2, 0, 9)), Regime.PERSISTENT)
    assert limits.lines[:4] == (8, 10, 1, 10)
    assert limits.covered[:4] == (5, 7, 0, 7)
    assert limits.spare[2] == -2


def test_a_depleting_stock_is_sold_once(observation, one_bounds):
    limits = one_bounds(observation(stock_in=12), calendar(sold=(2, 0, 5), bought=(0, 3)), Regime.DEPLETING)
    # 12 + 3 units are there and 7 are promised: 8 are left; on the third day the lines leave room for 5.
    assert limits.covered[:4] == (8, 8, 5, 8)
    scarce = one_bounds(observation(stock_in=4), calendar(sold=(0, 4)), Regime.DEPLETING)
    assert scarce.covered == (0,) * 11


def test_exogenous_contracts_count_today_only(observation, one_bounds):
    obs = observation(exogenous_out=4, exogenous_in=3, stock_in=2)
    limits = one_bounds(obs, calendar(), Regime.PERSISTENT)
    assert limits.lines[:2] == (6, 10)
    assert limits.covered[:2] == (1, 2)


def test_nothing_is_sold_beyond_the_last_day(observation, one_bounds):
    obs = observation(day=48, sell_agenda=Agenda(1, 30, 48, 49, 18, 22))
    assert one_bounds(obs, calendar(), Regime.PERSISTENT).lines == (10, 10, *(0,) * 9)


def test_purchases_stay_within_free_cash(observation, one_bounds):
    # 1000 − 20·15 already owed − 5 units produced today at 2 = 690; a unit costs at most 16 + 2.
    limits = one_bounds(observation(cash=1000.0), calendar(sold=(5,), bought=(0, 20)), Regime.PERSISTENT)
    assert limits.buy == 690 // 18
    assert one_bounds(observation(cash=-5.0), calendar(), Regime.PERSISTENT).buy == 0


def after_a_day(observation, prior, stock, bought, sold, after):
    """What is remembered of a day with a stock, deliveries and sales, and the next day's stock."""
    memory = Memory(1, 11, ParameterColumns.of([Parameters(assume_persistent=prior is Regime.PERSISTENT)]))
    memory.start_day(ObservationBatch.of([observation(stock_in=stock)]))
    memory.note_due(bought, sold)
    memory.start_day(ObservationBatch.of([observation(day=6, stock_in=after)]))
    return memory.now.row(0, 11)


@pytest.mark.parametrize(
    ("after", "regime", "known"),
    [(10, Regime.PERSISTENT, True), (6, Regime.DEPLETING, True), (3, Regime.PERSISTENT, False)],
)
def test_the_regime_is_read_from_the_books(observation, after, regime, known):
    row = after_a_day(observation, Regime.PERSISTENT, 10, 2, 6, after)
    assert (row.regime, row.regime_known) == (regime, known)


def test_a_day_that_used_only_what_it_received_tells_nothing(observation):
    assert not after_a_day(observation, Regime.DEPLETING, 4, 6, 6, 4).regime_known


@given(st.integers(-5, 60), st.integers(-5, 60), st.integers(-5, 60), st.integers(-5, 40))
def test_a_clipped_offer_is_legal_and_within_the_bound(quantity, time, price, most):
    agenda = Agenda(1, 30, 3, 7, 14, 17)
    clipped = clip_offer(Offer(quantity, time, price), agenda, most)
    if clipped is None:
        assert min(quantity, most) < 1
    else:
        assert agenda.legal(clipped)
        assert clipped.quantity <= most
