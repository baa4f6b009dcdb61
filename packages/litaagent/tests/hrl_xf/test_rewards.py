from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litaagent_std.hrl_xf.rewards import (
    DayWeights,
    ReturnScales,
    ThreadWeights,
    calendar_value,
    centred,
    day_reward,
    day_terms,
    potential,
    shortfall_risk,
    thread_reward,
    thread_terms,
)
from litaagent_std.policy.memory import Regime
from litaagent_std.policy.observation import Agenda, Calendar, Observation, Offer


def calendar(bought=(0, 0), bought_value=(0, 0), sold=(0, 0), sold_value=(0, 0)):
    return Calendar(tuple(bought), tuple(bought_value), tuple(sold), tuple(sold_value))


@pytest.fixture
def obs():
    agenda = Agenda(1, 30, 4, 5, 9, 11)
    return Observation(
        day=4, n_days=20, horizon=1, level=1, n_levels=3, n_lines=10, perishable=False, cash=900.0,
        initial_balance=1000.0, stock_in=5, stock_out=0, needed_sales=0, needed_supplies=0, exogenous_in=0,
        exogenous_in_value=0.0, exogenous_out=0, exogenous_out_value=0.0, production_cost=2.0, shortfall_penalty=0.5,
        storage_cost=0.02, disposal_cost=0.0, shortfall_penalty_mean=0.5, storage_cost_mean=0.02,
        disposal_cost_mean=0.0, trading_prices=(5.0, 10.0, 20.0, 30.0), catalog_prices=(5.0, 10.0, 20.0, 30.0),
        price_history=((5.0, 10.0, 20.0, 30.0),), market_exogenous_quantity=(0.0,) * 4,
        market_exogenous_value=(0.0,) * 4, buy_agenda=agenda, sell_agenda=agenda, calendar=calendar(), suppliers=(),
        consumers=(), competitors=(),
    )  # fmt: skip


def test_a_covered_sale_counts_with_its_margin_and_an_uncovered_one_with_its_penalty(obs):
    covered = calendar(sold=(4, 0), sold_value=(80, 0))
    assert calendar_value(obs, covered) == pytest.approx(4 * (20 - 2) / 1000)
    too_much = calendar(sold=(8, 0), sold_value=(160, 0))
    assert calendar_value(obs, too_much) == pytest.approx((5 * 18 - 3 * 0.5 * 20) / 1000)


def test_where_stock_depletes_a_unit_is_sold_once(obs):
    twice = calendar(sold=(5, 5), sold_value=(100, 100))
    persistent = calendar_value(obs, twice)
    depleting = calendar_value(obs, twice, Regime.DEPLETING)
    assert persistent == pytest.approx(10 * 18 / 1000)
    assert depleting == pytest.approx((5 * 18 - 5 * 10) / 1000)


def test_stock_is_worth_nothing_unless_the_inventory_form_is_chosen(obs):
    assert potential(obs, "calendar") == 0.0
    assert potential(obs, "inventory") == pytest.approx(5 * 10 / 1000)
    assert potential(obs, "none") == 0.0


def test_the_terms_of_a_day_by_hand(obs):
    end_calendar = calendar(sold=(8, 0), sold_value=(160, 0))
    after = replace(obs, day=5, cash=1000.0)
    terms = day_terms(obs, end_calendar, after, 0.0, DayWeights())
    assert terms["cash"] == pytest.approx(0.1)
    assert terms["potential"] == 0.0  # neither observation holds a contract
    assert terms["risk"] == pytest.approx(-3 * 0.5 * 20 / 1000)
    assert terms["liquidity"] == pytest.approx(0.8)
    assert shortfall_risk(obs, end_calendar) == -terms["risk"]
    weights = DayWeights(cash=2.0, potential=1.0, risk=1.0, liquidity=0.5)
    assert day_reward(terms, weights) == pytest.approx(0.2 - 0.03 + 0.4)


def test_shaping_sums_to_nothing_over_a_world(obs):
    calendars = [calendar(), calendar(sold=(0, 5), sold_value=(0, 100)), calendar(sold=(5, 0), sold_value=(100, 0))]
    days = [replace(obs, day=day, calendar=commitments) for day, commitments in enumerate(calendars)]
    after = [*days[1:], None]
    pairs = zip(days, after, strict=True)
    shaped = [day_terms(day, day.calendar, then, 0.0, DayWeights())["potential"] for day, then in pairs]
    assert sum(shaped) == pytest.approx(0.0)
    assert shaped[0] > 0  # the contract is rewarded when it is made


def test_the_terms_of_a_thread_by_hand(obs):
    sale = thread_terms(obs, buying=False, deal=Offer(6, 4, 22), goal_quantity=8, goal_price=21)
    assert sale == pytest.approx({"quantity": -0.2, "price": -0.05, "advantage": 0.06, "liquidity": 1.0})
    purchase = thread_terms(obs, buying=True, deal=Offer(6, 4, 11), goal_quantity=6, goal_price=11)
    assert purchase["advantage"] == pytest.approx(-0.06)
    nothing = thread_terms(obs, buying=True, deal=None, goal_quantity=3, goal_price=11)
    assert nothing == pytest.approx({"quantity": -0.3, "price": 0.0, "advantage": 0.0, "liquidity": 0.0})
    assert thread_reward(sale, ThreadWeights(quantity=1, price=1, advantage=1, liquidity=1)) == pytest.approx(0.81)


def test_the_reference_is_taken_off_day_by_day_and_days_without_a_decision_count():
    assert centred([1.0, 2.0], [0, 2], [0.1, 0.2, 0.3, 0.4]) == pytest.approx([0.7, 1.3])
    assert centred([1.0, 2.0], [0, 2], ()) == [1.0, 2.0]


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4), st.lists(st.floats(-1, 1), min_size=4, max_size=4))
def test_centring_takes_exactly_the_reference_s_return(own, reference):
    assert sum(centred(own, [0, 1, 2, 3], reference)) == pytest.approx(sum(own) - sum(reference), abs=1e-9)


def test_scales_are_kept_apart_by_kind_and_survive_a_restart():
    scales = ReturnScales(floor=0.1, rate=0.5)
    assert scales.scale("3-middle") == 1.0
    scales.update("3-middle", [2.0, 0.0])
    scales.update("2-first", [0.001])
    assert scales.scale("3-middle") == pytest.approx(2**0.5)
    assert scales.scale("2-first") == 0.1
    restored = ReturnScales(floor=0.1, rate=0.5)
    restored.load_state_dict(scales.state_dict())
    assert restored.scale("3-middle") == scales.scale("3-middle")
