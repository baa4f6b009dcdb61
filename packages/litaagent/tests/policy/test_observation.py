import json

import pytest

from litaagent_std.policy.observation import (
    Agenda,
    Calendar,
    Offer,
    ThreadObservation,
    Turn,
    observation_from_plain,
    observe_calendar,
    observe_day,
    thread_from_plain,
    to_plain,
)


def test_a_day_is_read_from_the_public_interface(interface):
    day = observe_day(interface())
    assert (day.day, day.n_days, day.horizon, day.level, day.n_levels, day.n_lines) == (3, 20, 4, 1, 3, 10)
    assert (day.cash, day.initial_balance, day.stock_in) == (1000.5, 1000.5, 6)
    assert day.buy_agenda == Agenda(1, 30, 3, 7, 14, 17)
    assert day.sell_agenda == Agenda(1, 30, 3, 7, 21, 26)
    assert (day.price_in, day.price_out, day.days_left) == (16.0, 24.0, 17)
    assert day.market_exogenous_quantity == (20.0, 0.0, 0.0, 18.0)
    assert (day.first_level, day.last_level) == (False, False)


def test_contracts_with_the_bankrupt_and_beyond_the_horizon_do_not_count(interface):
    calendar = observe_calendar(interface())
    assert calendar.bought == (5, 2, 0, 0, 0)
    assert calendar.bought_value == (75.0, 30.0, 0.0, 0.0, 0.0)
    assert calendar.sold == (4, 0, 0, 0, 10)
    assert calendar.sold_value == (100.0, 0.0, 0.0, 0.0, 250.0)


def test_partners_carry_their_reports(interface):
    first, second = observe_day(interface()).suppliers
    assert (first.name, first.bankrupt, first.report_days, first.report_cash) == ("s1", False, (0,), (500.0,))
    assert (first.assets, first.breach_probability, first.breach_level) == (7.0, 0.25, 0.125)
    assert (second.bankrupt, second.report_days) == (True, ())


def test_history_and_initial_balance_continue_from_yesterday(interface):
    yesterday = observe_day(interface(current_step=2, current_balance=900.0, trading_prices=[1.0, 2.0, 3.0, 4.0]))
    today = observe_day(interface(), yesterday)
    assert today.initial_balance == 900.0
    assert today.price_history == ((1.0, 2.0, 3.0, 4.0), (10.0, 16.0, 24.0, 30.0))


def test_the_system_is_no_partner_and_the_edge_has_no_agenda(interface):
    first = observe_day(interface(is_first_level=True, level=0, my_suppliers=["SELLER"]))
    assert first.suppliers == ()
    assert first.buy_agenda is None
    assert first.sell_agenda is not None


def test_observations_survive_json(interface):
    day = observe_day(interface(), observe_day(interface(current_step=2)))
    assert observation_from_plain(json.loads(json.dumps(to_plain(day)))) == day
    thread = ThreadObservation(
        day=3,
        partner="c1",
        buying=False,
        round=2,
        n_rounds=20,
        relative_time=0.125,
        opens=True,
        offer=Offer(3, 4, 22),
        turns=(Turn(0, True, Offer(10, 7, 26)), Turn(1, False, Offer(2, 3, 21))),
        calendar=Calendar((0,), (0.0,), (1,), (22.0,)),
    )
    assert thread_from_plain(json.loads(json.dumps(to_plain(thread)))) == thread


def test_observations_cannot_be_changed(interface):
    day = observe_day(interface())
    with pytest.raises(AttributeError):
        day.cash = 0.0


@pytest.mark.parametrize(
    ("offer", "legal"),
    [
        (Offer(1, 3, 14), True),
        (Offer(30, 7, 17), True),
        (Offer(31, 3, 14), False),
        (Offer(1, 8, 14), False),
        (Offer(1, 3, 13), False),
        (Offer(1, 3, 14.0), False),
        (Offer(True, 3, 14), False),
    ],
)
def test_an_agenda_knows_what_is_legal(offer, legal):
    assert Agenda(1, 30, 3, 7, 14, 17).legal(offer) is legal
