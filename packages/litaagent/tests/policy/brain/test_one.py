from dataclasses import replace
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from litaagent_std.policy.brain import Brain, Decision
from litaagent_std.policy.columns import PartnerBatch
from litaagent_std.policy.layers import Layers
from litaagent_std.policy.memory import Regime, forecast_bankruptcy
from litaagent_std.policy.observation import Calendar, Offer, ThreadObservation
from litaagent_std.policy.parameters import Parameters
from litaagent_std.records.reasons import reason

VERSIONS = [Layers(l3=l3, l4=l4) for l3, l4 in product(("baseline", "model", "types"), ("greedy", "joint"))]


@pytest.mark.parametrize("layers", VERSIONS, ids=lambda v: f"{v.l3}-{v.l4}")
@pytest.mark.parametrize("persistent", [True, False])
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_without_risk_nothing_exceeds_lines_input_or_cash(
    any_observation, market, shortfall, one_bounds, layers, persistent, data
):
    obs = data.draw(any_observation)
    brain = Brain(Parameters(risk_budget=0.0, assume_persistent=persistent), layers)
    played = market(brain, obs, data)
    played.play()
    regime = Regime.PERSISTENT if persistent else Regime.DEPLETING
    before, after = shortfall(obs, obs.calendar, regime), shortfall(obs, played.calendar, regime)
    assert all(b <= max(0, a) for a, b in zip(before, after, strict=True))
    assert (
        sum(played.calendar.bought) - sum(obs.calendar.bought) <= one_bounds(obs, obs.calendar, Regime.PERSISTENT).buy
    )


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data(), risk=st.floats(0, 1))
def test_hard_bounds_hold_at_every_risk(any_observation, silent_market, one_bounds, data, risk):
    obs = data.draw(any_observation)
    played = silent_market(Brain(Parameters(risk_budget=risk)), obs, data)
    played.play()
    lines = one_bounds(obs, obs.calendar, Regime.PERSISTENT).lines
    sold = [b - a for a, b in zip(obs.calendar.sold, played.calendar.sold, strict=True)]
    assert all(units <= most for units, most in zip(sold, lines, strict=True))
    bought = sum(played.calendar.bought) - sum(obs.calendar.bought)
    assert bought <= one_bounds(obs, obs.calendar, Regime.PERSISTENT).buy


def thread(obs, name, *, buying=False, round_=0, offer=None, calendar=None):
    return ThreadObservation(obs.day, name, buying, round_, 20, 0.1, True, offer, (), calendar or obs.calendar)


def test_the_first_proposals_fill_different_days_at_the_top_price(observation):
    obs = observation()
    brain = Brain(Parameters(risk_budget=0.0, urgency_high=0.0))
    brain.start_day(obs)
    offers = brain.propose([thread(obs, f"c{i}") for i in range(3)])
    assert {offer.quantity for offer in offers.values()} == {10}
    assert {offer.price for offer in offers.values()} == {22}
    assert len({offer.time for offer in offers.values()}) == 3


def test_a_full_calendar_ends_the_negotiation(observation):
    full = Calendar((0,) * 11, (0.0,) * 11, (10,) * 11, (200.0,) * 11)
    obs = observation(calendar=full)
    brain = Brain()
    brain.start_day(obs)
    assert brain.respond([thread(obs, "c0", round_=1, offer=Offer(5, 5, 22))]) == {"c0": Decision("end")}


def test_the_last_chance_to_sell_todays_capacity_is_taken(observation):
    obs = observation()
    brain = Brain(Parameters(sell_end_full=0.0))
    brain.start_day(obs)
    decision = brain.respond([thread(obs, "c0", round_=19, offer=Offer(10, 5, 18))])["c0"]
    assert decision == Decision("accept", Offer(10, 5, 18))


def test_nothing_is_sold_below_the_cost_of_production(observation):
    obs = observation(production_cost=30.0)
    brain = Brain()
    brain.start_day(obs)
    assert brain.respond([thread(obs, "c0", round_=19, offer=Offer(10, 5, 22))])["c0"].kind == "end"


def test_stock_is_bought_once_and_todays_output_with_it(observation):
    sold = Calendar((0,) * 11, (0.0,) * 11, (4, *(0,) * 10), (80.0, *(0.0,) * 10))
    for stock, need in ((0, 14), (10, 0)):
        obs = observation(stock_in=stock, calendar=sold)
        brain = Brain(Parameters(risk_budget=0.0), Layers(l3="baseline"))
        brain.start_day(obs)
        offers = brain.propose([thread(obs, f"s{i}", buying=True) for i in range(3)])
        assert sum(offer.quantity for offer in offers.values() if offer and offer.time == obs.day) == need


def test_a_partner_heading_for_bankruptcy_gets_no_later_delivery(observation):
    obs = observation()
    failing = replace(obs.consumers[0], report_days=(0, 5), report_cash=(1000.0, 100.0))
    obs = replace(obs, consumers=(failing, *obs.consumers[1:]))
    brain = Brain()
    brain.start_day(obs)
    offer = brain.propose([thread(obs, "c0")])["c0"]
    assert offer.time == obs.day


def test_a_day_that_takes_used_input_from_the_stock_is_noticed(observation):
    obs = observation(stock_in=10)
    sold = Calendar((0,) * 11, (0.0,) * 11, (6, *(0,) * 10), (120.0, *(0.0,) * 10))
    brain = Brain()
    brain.start_day(obs)
    brain.end_day(sold)
    brain.start_day(observation(day=6, stock_in=4))
    assert brain.memory.regime is Regime.DEPLETING
    assert brain.memory.regime_known


def test_a_log_says_why(observation):
    obs = observation()
    brain = Brain(keep_log=True)
    brain.start_day(obs)
    decisions = brain.respond([thread(obs, "c0", round_=2, offer=Offer(3, 5, 19))])
    [record] = brain.log
    assert (record.partner, record.received, record.decision) == ("c0", Offer(3, 5, 19), decisions["c0"])
    assert record.reservation > 19
    assert 0 < record.acceptance < 1
    assert len(record.alternatives) == 3
    assert record.goals.q_sell[0] == 10
    assert record.bounds.covered[0] == 10


@pytest.mark.parametrize("delivery", [0, 4, 16, 99])
def test_an_offer_outside_the_agenda_is_declined_and_logged_without_a_limit(observation, delivery):
    obs = observation()
    brain = Brain(keep_log=True)
    brain.start_day(obs)
    decision = brain.respond([thread(obs, "c0", offer=Offer(3, delivery, 19))])["c0"]
    [record] = brain.log
    assert decision.kind == "reject"
    assert record.reservation is None
    assert "outside the day's agenda" in reason(record)


def test_an_unknown_layer_is_refused():
    with pytest.raises(ValueError, match="l2='guessed' does not exist"):
        Layers(l2="guessed")


@pytest.mark.parametrize(
    ("cash", "day"),
    [((1000.0, 500.0), 10.0), ((500.0, 1000.0), float("inf")), ((0.0, 0.0), float("inf")), ((5e-324, 0.0), 5.0)],
)
def test_bankruptcy_is_forecast_from_the_trend_of_the_reports(observation, cash, day):
    partner = replace(observation().consumers[0], report_days=(0, 5), report_cash=cash)
    batch = PartnerBatch.of(
        [[partner, replace(partner, bankrupt=True)], [replace(partner, report_days=(), report_cash=())]]
    )
    assert forecast_bankruptcy(batch)[0].tolist() == [day, float("-inf")]
    assert forecast_bankruptcy(batch)[1, 0] == float("inf")


def urgent(observation, low, high, *, sold=0, layers=None, stock_after=10):
    """A brain on a day whose later days are sold to some units, and its first proposals.

    The regime shows by the stock after a day that used 5 of 10 units and received none; None: it is not known yet.
    """
    empty = observation().calendar
    obs = observation(calendar=replace(empty, sold=(0, *(sold,) * 10)), stock_in=30)
    parameters = Parameters(risk_budget=0.0, urgency_low=low, urgency_high=high)
    brain = Brain(parameters, layers, keep_log=True)
    if stock_after is not None:
        before = replace(obs, day=4, stock_in=obs.stock_in + 10 - stock_after)
        brain.start_day(before)
        brain.end_day(replace(before.calendar, sold=(5, *before.calendar.sold[1:])))
    brain.start_day(obs)
    return brain, brain.propose([thread(obs, f"c{i}") for i in range(3)])


def test_empty_days_make_sales_urgent_and_full_ones_do_not(observation):
    brain, patient = urgent(observation, 0.0, 0.0)
    assert {record.urgency for record in brain.log} == {0.0}
    assert {offer.price for offer in patient.values()} == {22}
    brain, hurried = urgent(observation, 0.6, 1.0)
    assert {record.urgency for record in brain.log} == {1.0}
    assert all(offer.price < 22 for offer in hurried.values())
    brain, full = urgent(observation, 0.6, 0.8, sold=8)
    assert {record.urgency for record in brain.log} == {0.0}
    assert {offer.price for offer in full.values()} == {22}


@pytest.mark.parametrize("stock_after", [5, None], ids=["depleting", "unknown"])
def test_nothing_is_urgent_unless_stock_is_known_to_stay(observation, stock_after):
    brain, patient = urgent(observation, 0.6, 1.0, stock_after=stock_after)
    assert {record.urgency for record in brain.log} == {0.0}
    assert {offer.price for offer in patient.values()} == {22}


def test_a_log_names_the_types_of_a_partner(observation):
    for name in ("model", "types"):
        brain, _ = urgent(observation, 0.0, 0.0, layers=Layers(l3=name))
        assert all(sum(record.types) == pytest.approx(1.0) and len(record.types) == 4 for record in brain.log)
    brain, _ = urgent(observation, 0.0, 0.0, layers=Layers(l3="baseline"))
    assert {record.types for record in brain.log} == {None}


@pytest.mark.parametrize("name", ["c0", "03Gr@2", "11Ra@2"])
def test_types_do_not_depend_on_names(observation, name):
    obs = observation(consumers=(replace(observation().consumers[0], name=name),))
    brain = Brain(layers=Layers(l3="types"), keep_log=True)
    brain.start_day(obs)
    for round_ in range(6):
        brain.respond([thread(obs, name, round_=round_, offer=Offer(3 + round_, 5, 18))])
    # as of any other name
    other = observation()
    same = Brain(layers=Layers(l3="types"), keep_log=True)
    same.start_day(other)
    for round_ in range(6):
        same.respond([thread(other, "c1", round_=round_, offer=Offer(3 + round_, 5, 18))])
    assert [record.types for record in brain.log] == [record.types for record in same.log]
