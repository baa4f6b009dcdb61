"""Features: finite, without units, blind to deals of the day, and named by one table."""

import hashlib
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from litaagent_std.policy import features
from litaagent_std.policy.columns import ObservationBatch, histories, live_threads
from litaagent_std.policy.features import (
    DAY_FEATURES,
    LIMIT,
    THREAD_FEATURES,
    WiderHorizonWarning,
    as_markdown,
    check_digest,
    features_digest,
    of_day,
    of_thread,
)
from litaagent_std.policy.observation import Agenda, Calendar, Offer, Partner, ThreadObservation, Turn

PAGE = Path(__file__).parents[5] / "docs" / "league" / "features.md"
QUICK = settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
)
EMPTY = Calendar((0,) * 11, (0.0,) * 11, (0,) * 11, (0.0,) * 11)


def arrays(made):
    return {name: getattr(made, name) for name in made.__slots__}


def value(made, array, name, row=None):
    column = (DAY_FEATURES | THREAD_FEATURES)[array].index(name)
    return getattr(made, array)[column if row is None else (row, column)]


def make_thread(**changes):
    values = {
        "day": 5,
        "partner": "c1",
        "buying": False,
        "round": 2,
        "n_rounds": 20,
        "relative_time": 3 / 21,
        "opens": True,
        "offer": Offer(5, 7, 22),
        "turns": (
            Turn(0, True, Offer(10, 15, 22)),
            Turn(0, False, Offer(2, 5, 18)),
            Turn(1, True, Offer(10, 15, 21)),
            Turn(1, False, Offer(2, 5, 20)),
            Turn(2, True, Offer(10, 5, 20)),
        ),
        "calendar": EMPTY,
    }
    return ThreadObservation(**(values | changes))


@st.composite
def moments(draw, any_observation):
    """A day and one of its threads, at any point of any history."""
    obs = draw(any_observation)
    sides = [
        (buying, agenda, partners)
        for buying, agenda, partners in ((True, obs.buy_agenda, obs.suppliers), (False, obs.sell_agenda, obs.consumers))
        if agenda is not None and partners
    ]
    assume(sides)
    buying, agenda, partners = draw(st.sampled_from(sides))
    offers = st.builds(
        Offer,
        st.integers(agenda.quantity_min, agenda.quantity_max),
        st.integers(agenda.time_min, agenda.time_max),
        st.integers(agenda.price_min, agenda.price_max),
    )
    n_rounds = draw(st.integers(1, 20))
    round_, opens = draw(st.integers(0, n_rounds - 1)), draw(st.booleans())
    answers = not opens or round_ > 0
    count = 2 * round_ - 1 if opens and answers else 2 * round_
    turns = tuple(Turn(i // 2, (i % 2 == 0) == opens, draw(offers)) for i in range(count))
    return obs, ThreadObservation(
        obs.day,
        draw(st.sampled_from(partners)).name,
        buying,
        round_,
        n_rounds,
        (round_ + 1) / (n_rounds + 1),
        opens,
        draw(offers) if answers else None,
        turns,
        obs.calendar,
    )


# -- the table


def test_the_documentation_has_every_feature():
    assert as_markdown() in PAGE.read_text(encoding="utf-8")


def test_names_are_unique_and_every_row_is_complete():
    for rows in features.FEATURES.values():
        names = [row.name for row in rows]
        assert len(set(names)) == len(names)
        assert all(row.formula and row.scale > 0 and "|" not in row.source + row.formula for row in rows)


def test_arrays_have_a_column_for_each_name(observation):
    day, thread = of_day(observation()), of_thread(make_thread(), observation())
    for made, table in ((day, DAY_FEATURES), (thread, THREAD_FEATURES)):
        for name, columns in table.items():
            assert getattr(made, name).shape[-1] == len(columns)
            assert getattr(made, name).dtype == np.float32
        assert made.mask.dtype == np.bool_


def test_the_digest_follows_every_part_of_a_row(monkeypatch):
    before = features_digest()
    first, *others = features.FEATURES["x_role"]
    for change in ({"name": "x"}, {"source": "x"}, {"formula": "x"}, {"scale": 2.0}):
        rows = (replace(first, **change), *others)
        monkeypatch.setattr(features, "FEATURES", {**features.FEATURES, "x_role": rows})
        assert features_digest() != before
    with pytest.raises(ValueError, match=r"l2\.npz was made with features 0123"):
        check_digest("0123456789abcdef", "l2.npz")


def test_values_change_only_together_with_the_digest(observation):
    """When this fails, values have changed: change the row, or raise `REVISION`, and then both figures here."""
    partner = Partner("c1", False, (0, 5), (9000.0, 8000.0), 100.0, 0.25, 0.125)
    history = tuple((10.0 + d, 15.0 + d / 2, 20.0 + d / 4, 30.0 - d) for d in range(13))
    leads = range(1, 12)
    obs = observation(
        **{"day": 12, "n_days": 21, "cash": 12_345.0, "stock_in": 7, "stock_out": 1, "needed_supplies": 3},
        **{"exogenous_in": 3, "exogenous_in_value": 65.0, "exogenous_out": 2, "exogenous_out_value": 50.0},
        **{"perishable": True, "disposal_cost": 0.01, "disposal_cost_mean": 0.02, "storage_cost_mean": 0.03},
        **dict.fromkeys(
            ("suppliers", "consumers", "competitors"), (partner, replace(partner, name="x", bankrupt=True))
        ),
        trading_prices=history[-1],
        catalog_prices=(12.0, 14.0, 22.0, 31.0),
        price_history=history,
        calendar=Calendar(tuple(leads), tuple(17.0 * k for k in leads), (4,) * 11, tuple(80.0 + k for k in leads)),
    )
    thread = make_thread(day=12, offer=Offer(5, 14, 22))
    made = [*arrays(of_day(obs)).values(), *arrays(of_thread(thread, obs)).values()]
    values = hashlib.sha256(b"".join(array.tobytes() for array in made)).hexdigest()
    assert (features_digest()[:16], values[:16]) == ("8b436797ae7f5113", "1313ca03b2e18f67")


# -- values


def test_a_day_by_hand(observation):
    calendar = Calendar((2, *(0,) * 10), (33.0, *(0.0,) * 10), (0, 5, *(0,) * 9), (0.0, 110.0, *(0.0,) * 9))
    made = of_day(observation(cash=12_500.0, stock_in=30, calendar=calendar))
    assert value(made, "x_static", "cash") == 0.25
    assert value(made, "x_static", "stock_in") == 0.75
    assert value(made, "x_static", "margin") == np.float32(3 / 20)
    assert value(made, "x_static", "sell_price_max") == pytest.approx(1.0)
    assert value(made, "x_temporal", "bought", 0) == np.float32(0.2)
    assert value(made, "x_temporal", "bought_price", 0) == pytest.approx(1.0)
    assert value(made, "x_temporal", "sold", 1) == 0.5
    assert value(made, "x_temporal", "stock", 1) == pytest.approx(2.7 / 3.7)
    assert made.x_role.tolist() == [1.0, 1.0]


def test_a_thread_by_hand(observation):
    made = of_thread(make_thread(), observation())
    assert made.mask.sum() == 6
    assert made.history.shape == (40, len(THREAD_FEATURES["history"]))
    assert made.history[:6, 0].tolist() == [1, 0, 1, 0, 1, 0]
    assert made.history[:6, 1] == pytest.approx(np.array([1, 1, 2, 2, 3, 3]) / 21)
    assert not made.history[6:].any()
    assert value(made, "history", "advantage", 1) == 0.0
    assert value(made, "history", "advantage", 5) == 1.0
    assert value(made, "x_thread", "offer_price") == pytest.approx(1.0)
    assert value(made, "x_thread", "offer_lead") == np.float32(0.2)
    assert made.ranges == pytest.approx([0.1, 3.0, 0.0, 1.0, -1.0, 1.0])


def test_what_is_good_for_a_seller_is_bad_for_a_buyer(observation):
    obs = observation(buy_agenda=Agenda(1, 30, 5, 15, 10, 20))
    best, worst = (make_thread(partner="s1", buying=True, offer=Offer(1, 5, price), turns=()) for price in (10, 20))
    assert value(of_thread(best, obs), "x_thread", "offer_advantage") == 1.0
    assert value(of_thread(worst, obs), "x_thread", "offer_advantage") == 0.0


def test_extreme_values_are_cut(observation):
    assert value(of_day(observation(cash=1e9)), "x_static", "cash") == LIMIT
    assert value(of_day(observation(cash=-1e9)), "x_static", "cash") == -LIMIT


def test_changes_of_prices_go_back_to_the_first_day(observation):
    history = tuple((10.0, 20.0, 16.0 + d, 30.0) for d in range(5))
    made = of_day(observation(day=4, price_history=history, trading_prices=history[-1]))
    assert value(made, "x_static", "price_out_change_1") == pytest.approx((20 / 19 - 1) / 0.05)
    assert value(made, "x_static", "price_out_change_10") == pytest.approx((20 / 16 - 1) / 0.2)
    assert value(made, "x_static", "price_in_change_10") == 0.0


def test_sides_without_agenda_or_living_partner_are_not_negotiable(observation):
    assert of_day(observation(level=0, buy_agenda=None)).x_role.tolist() == [0.0, 1.0]
    dead = tuple(replace(partner, bankrupt=True) for partner in observation().consumers)
    assert of_day(observation(consumers=dead)).x_role.tolist() == [1.0, 0.0]


def test_days_beyond_the_end_are_masked(observation):
    made = of_day(observation(day=47))
    assert made.mask.tolist() == [True] * 3 + [False] * 8
    assert not made.x_temporal[3:].any()


def test_a_wider_horizon_is_accepted_masked_and_said(observation):
    with pytest.warns(WiderHorizonWarning, match="leads 11 to 40 are masked"):
        wide = of_day(observation(), horizon=40)
    own = of_day(observation())
    assert wide.x_temporal.shape[0] == wide.mask.shape[0] == 41
    assert wide.mask.sum() == 11
    assert wide.x_temporal[:11].tobytes() == own.x_temporal.tobytes()
    assert not wide.x_temporal[11:].any()
    with pytest.raises(ValueError, match="horizon=9 is smaller than the league's 10"):
        of_day(observation(), horizon=9)


def test_of_a_long_history_the_latest_offers_stay(observation):
    whole, short = (of_thread(make_thread(), observation(), length=n) for n in (None, 4))
    assert short.history.tobytes() == whole.history[2:6].tobytes()
    assert short.mask.all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"day": 4}, "of day 4, the observation of day 5"),
        ({"partner": "s1"}, "sells with 's1'"),
        ({"partner": "c9", "buying": True}, "buys with 'c9'"),
    ],
)
def test_threads_of_another_day_or_partner_are_refused(observation, changes, message):
    with pytest.raises(ValueError, match=message):
        of_thread(make_thread(**changes), observation())


def test_bad_input_is_refused(observation):
    with pytest.raises(ValueError, match="has no agenda"):
        of_thread(make_thread(), observation(sell_agenda=None))
    with pytest.raises(ValueError, match="length=0"):
        of_thread(make_thread(), observation(), length=0)
    with pytest.raises(ValueError, match=r"'cash' = .* is nan; .* look for NaN or infinity in cash"):
        of_day(observation(cash=float("nan")))
    broken = replace(EMPTY, sold_value=(float("inf"), *EMPTY.sold_value[1:]))
    with pytest.raises(ValueError, match=r"'cash_flow' = .* look for NaN or infinity in calendar"):
        of_day(observation(calendar=broken))


# -- properties


@QUICK
@given(data=st.data(), wider=st.integers(0, 30))
def test_every_legal_observation_gives_finite_numbers(any_observation, data, wider):
    obs, thread = data.draw(moments(any_observation))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WiderHorizonWarning)
        day = of_day(obs, horizon=obs.horizon + wider)
    for made in (day, of_thread(thread, obs)):
        for array in arrays(made).values():
            assert np.isfinite(array).all()
            assert (np.abs(array) <= LIMIT).all()
    assert day.mask.sum() == min(obs.horizon + 1, obs.n_days - obs.day)
    assert not day.x_temporal[~day.mask].any()


@QUICK
@given(data=st.data())
def test_money_has_no_unit(any_observation, same, data):
    obs, thread = data.draw(moments(any_observation))

    def double(agenda):
        return agenda and replace(agenda, price_min=2 * agenda.price_min, price_max=2 * agenda.price_max)

    def doubled(partners):
        cash = [tuple(2 * c for c in p.report_cash) for p in partners]
        return tuple(replace(p, report_cash=c, assets=2 * p.assets) for p, c in zip(partners, cash, strict=True))

    money = ("cash", "initial_balance", "exogenous_in_value", "exogenous_out_value", "production_cost")
    lists = ("trading_prices", "catalog_prices", "market_exogenous_value")
    calendar = obs.calendar
    richer = replace(
        obs,
        **{name: 2 * getattr(obs, name) for name in money},
        **{name: tuple(2 * x for x in getattr(obs, name)) for name in lists},
        **{name: doubled(getattr(obs, name)) for name in ("suppliers", "consumers", "competitors")},
        price_history=tuple(tuple(2 * x for x in prices) for prices in obs.price_history),
        buy_agenda=double(obs.buy_agenda),
        sell_agenda=double(obs.sell_agenda),
        calendar=replace(
            calendar,
            bought_value=tuple(2 * x for x in calendar.bought_value),
            sold_value=tuple(2 * x for x in calendar.sold_value),
        ),
    )
    dear = replace(
        thread,
        offer=thread.offer and thread.offer._replace(price=2 * thread.offer.price),
        turns=tuple(replace(turn, offer=turn.offer._replace(price=2 * turn.offer.price)) for turn in thread.turns),
    )
    assert same(of_day(obs), of_day(richer))
    assert same(of_thread(thread, obs), of_thread(dear, richer))


@QUICK
@given(data=st.data())
def test_deals_of_the_day_change_nothing(any_observation, same, data):
    obs, thread = data.draw(moments(any_observation))
    leads = obs.horizon + 1
    deals = Calendar((9,) * leads, (90.0,) * leads, (7,) * leads, (70.0,) * leads)
    assert same(of_thread(thread, obs), of_thread(replace(thread, calendar=deals), obs))


@QUICK
@given(data=st.data())
def test_a_history_only_grows(any_observation, data):
    obs, thread = data.draw(moments(any_observation))
    whole = of_thread(thread, obs)
    n_turns = len(thread.turns)
    assert whole.mask.sum() == n_turns + (thread.offer is not None)
    kept = data.draw(st.integers(0, n_turns))
    before = of_thread(replace(thread, turns=thread.turns[:kept], offer=None), obs)
    assert before.history[:kept].tobytes() == whole.history[:kept].tobytes()
    assert not before.mask[kept:].any()


@QUICK
@given(data=st.data())
def test_a_batch_gives_the_rows_of_its_members(any_observation, data):
    drawn = [data.draw(moments(any_observation)) for _ in range(3)]
    observations, threads, seats = [obs for obs, _ in drawn], [thread for _, thread in drawn], [0, 1, 2]
    batch = ObservationBatch.of(observations)
    made = features.thread_features(live_threads(threads, observations, seats), batch, *histories(threads, seats))
    history, mask = made.padded(40)
    days = features.day_features(batch)
    for row, (obs, thread) in enumerate(drawn):
        one, day, width = of_thread(thread, obs, 40), of_day(obs), obs.horizon + 1
        assert history[row].tobytes() == one.history.tobytes()
        assert mask[row].tolist() == one.mask.tolist()
        for name in ("ranges", "x_thread", "x_partner"):
            assert getattr(made, name)[row].tobytes() == getattr(one, name).tobytes(), name
        assert days.x_static[row].tobytes() == day.x_static.tobytes()
        assert days.x_temporal[row, :width].tobytes() == day.x_temporal.tobytes()
        assert days.mask[row].sum() == day.mask.sum()
