"""Layers that are plugged in may say anything: what leaves the brain stays within L1's bounds."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from litaagent_std.policy.brain import Brain, Decision
from litaagent_std.policy.l2.heuristic import HeuristicGoals
from litaagent_std.policy.layers import NEUTRAL_ALPHA, Action, Layers, residual
from litaagent_std.policy.memory import Regime
from litaagent_std.policy.observation import Calendar, Offer, ThreadObservation
from litaagent_std.policy.parameters import Parameters


def thread(obs, name, *, buying=False, round_=1, offer=None):
    return ThreadObservation(obs.day, name, buying, round_, 20, 0.1, True, offer, (), obs.calendar)


class Says:
    """An L3 that says the same in every thread, and remembers what it saw."""

    def __init__(self, **actions):
        self.actions, self.seen = actions, []

    def decide(self, situation, alpha):
        self.seen.append((situation, alpha))
        return self.actions


class Weighs:
    """An L4 that weighs threads and accepts what it is told to."""

    def __init__(self, alpha, accept=None):
        self.alpha, self.chosen = alpha, accept

    def weigh(self, situation):
        return self.alpha

    def accept(self, situation, wanted):
        return wanted if self.chosen is None else frozenset(self.chosen)


class Wild:
    """Goals, actions and weights drawn at random, legal or not."""

    def __init__(self, data):
        self.draw = data.draw

    def goals(self, obs, calendar, limits, memory):
        sane = HeuristicGoals(Parameters()).goals(obs, calendar, limits, memory)
        leads = len(calendar.sold)
        numbers = st.lists(st.integers(-9, 99), min_size=leads, max_size=leads).map(tuple)
        prices = st.lists(st.floats(), min_size=leads, max_size=leads).map(tuple)
        return replace(
            sane,
            q_buy=self.draw(numbers),
            q_sell=self.draw(numbers),
            p_buy=self.draw(prices),
            p_sell=self.draw(prices),
            unit_value=self.draw(st.floats()),
        )

    def decide(self, situation, alpha):
        kinds = st.sampled_from(["keep", "accept", "counter", "end"])
        number = st.integers(-5, 120)
        offer = st.builds(Offer, number, number, number)
        return {t.partner: Action(self.draw(kinds), self.draw(offer)) for t in situation.threads}

    def weigh(self, situation):
        return {t.partner: self.draw(st.floats(0, 2)) for t in situation.threads}

    def accept(self, situation, wanted):
        return frozenset(t.partner for t in situation.threads if self.draw(st.booleans())) | {"nobody"}


LEARNED = Layers(l2="learned", l3="learned", l4="learned")


def wild_brain(data, **parameters):
    wild = Wild(data)
    return Brain(
        Parameters(**parameters), LEARNED, goal_layer=wild, decision_layer=wild, coordination_layer=wild, keep_log=True
    )


@pytest.mark.parametrize("persistent", [True, False])
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_without_risk_wild_layers_exceed_neither_lines_nor_input_nor_cash(
    any_observation, market, shortfall, one_bounds, persistent, data
):
    obs = data.draw(any_observation)
    brain = wild_brain(data, risk_budget=0.0, assume_persistent=persistent)
    played = market(brain, obs, data)
    played.play()
    regime = Regime.PERSISTENT if persistent else Regime.DEPLETING
    before, after = shortfall(obs, obs.calendar, regime), shortfall(obs, played.calendar, regime)
    assert all(b <= max(0, a) for a, b in zip(before, after, strict=True))
    bought = sum(played.calendar.bought) - sum(obs.calendar.bought)
    assert bought <= one_bounds(obs, obs.calendar, Regime.PERSISTENT).buy


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data(), risk=st.floats(0, 1))
def test_hard_bounds_hold_for_wild_layers_at_every_risk(any_observation, silent_market, one_bounds, data, risk):
    obs = data.draw(any_observation)
    played = silent_market(wild_brain(data, risk_budget=risk), obs, data)
    played.play()
    lines = one_bounds(obs, obs.calendar, Regime.PERSISTENT).lines
    sold = [b - a for a, b in zip(obs.calendar.sold, played.calendar.sold, strict=True)]
    assert all(units <= most for units, most in zip(sold, lines, strict=True))
    assert (
        sum(played.calendar.bought) - sum(obs.calendar.bought) <= one_bounds(obs, obs.calendar, Regime.PERSISTENT).buy
    )


def test_a_layer_sees_the_round_the_plan_and_the_baseline(observation):
    obs = observation()
    layer = Says()
    brain = Brain(layers=Layers(l3="learned"), decision_layer=layer)
    plain = Brain()
    threads = [thread(obs, f"c{i}", offer=Offer(4, 6 + i, 20)) for i in range(3)]
    brain.start_day(obs)
    plain.start_day(obs)
    decisions = brain.respond(threads)
    [(situation, alpha)] = layer.seen
    assert situation.selling
    assert situation.obs is obs
    assert [t.partner for t in situation.threads] == ["c0", "c1", "c2"]
    assert alpha == dict.fromkeys(["c0", "c1", "c2"], NEUTRAL_ALPHA)
    assert situation.bounds.lines[0] == 10
    assert decisions == plain.respond(threads), "who changes nothing leaves the heuristic plan"
    only_l1 = Brain(layers=Layers(l3="baseline", l4="greedy"))
    only_l1.start_day(obs)
    expected = only_l1.respond(threads)
    assert {n: o for n, o in situation.baseline.offers.items()} == {
        n: d.offer for n, d in expected.items() if d.kind != "accept"
    }


def test_actions_replace_the_plan(observation):
    obs = observation()
    said = {"c0": Action("accept"), "c1": Action("counter", Offer(3, 9, 21)), "c2": Action("end")}
    brain = Brain(layers=Layers(l3="learned"), decision_layer=Says(**said))
    brain.start_day(obs)
    decisions = brain.respond([thread(obs, f"c{i}", offer=Offer(4, 6, 18)) for i in range(3)])
    assert decisions == {
        "c0": Decision("accept", Offer(4, 6, 18)),
        "c1": Decision("reject", Offer(3, 9, 21)),
        "c2": Decision("end"),
    }
    assert brain.interventions == 0


def test_too_many_acceptances_become_the_best_that_fit_and_a_counter_of_the_rest(observation):
    obs = observation()
    said = {f"c{i}": Action("accept") for i in range(3)}
    brain = Brain(Parameters(risk_budget=0.0), Layers(l3="learned"), decision_layer=Says(**said))
    brain.start_day(obs)
    offers = {"c0": Offer(6, 8, 18), "c1": Offer(6, 8, 22), "c2": Offer(3, 8, 20)}
    decisions = brain.respond([thread(obs, name, offer=offer) for name, offer in offers.items()])
    assert decisions["c1"].kind == decisions["c2"].kind == "accept"
    assert decisions["c0"] == Decision("reject", Offer(1, 8, 18))
    assert brain.interventions == 1


def test_illegal_counters_are_brought_into_the_agenda(observation):
    obs = observation()
    said = {"c0": Action("counter", Offer(99, 99, 99)), "c1": Action("counter", Offer(0, 7, 20))}
    brain = Brain(Parameters(risk_budget=0.0), Layers(l3="learned"), decision_layer=Says(**said))
    brain.start_day(obs)
    decisions = brain.respond([thread(obs, name, offer=Offer(5, 5, 18)) for name in said])
    assert decisions == {"c0": Decision("reject", Offer(10, 15, 22)), "c1": Decision("end")}


def test_coordination_weighs_threads_and_decides_who_is_accepted(observation):
    obs = observation()
    l3 = Says(c0=Action("accept"), c1=Action("accept"))
    l4 = Weighs({"c0": 0.25}, accept={"c1", "c2"})
    brain = Brain(layers=Layers(l3="learned", l4="learned"), decision_layer=l3, coordination_layer=l4, keep_log=True)
    brain.start_day(obs)
    decisions = brain.respond([thread(obs, f"c{i}", offer=Offer(2, 6, 20)) for i in range(3)])
    assert l3.seen[0][1] == {"c0": 0.25, "c1": NEUTRAL_ALPHA, "c2": NEUTRAL_ALPHA}
    assert [decisions[f"c{i}"].kind for i in range(3)] == ["reject", "accept", "accept"]
    assert [record.alpha for record in brain.log] == [0.25, NEUTRAL_ALPHA, NEUTRAL_ALPHA]


def test_purchases_of_a_learned_layer_stop_at_what_the_factory_can_use(observation):
    obs = observation(stock_in=10)
    said = {f"s{i}": Action("counter", Offer(30, 5, 16)) for i in range(3)}
    calendar = Calendar((0,) * 11, (0.0,) * 11, (4, *(0,) * 10), (80.0, *(0.0,) * 10))
    obs = replace(obs, calendar=calendar)
    brain = Brain(layers=Layers(l3="learned"), decision_layer=Says(**said))
    brain.start_day(obs)
    decisions = brain.respond([thread(obs, name, buying=True, offer=Offer(1, 5, 16)) for name in said])
    assert sum(d.offer.quantity for d in decisions.values() if d.kind == "reject") == 4


@pytest.mark.parametrize("name", ["l2", "l3", "l4"])
def test_a_learned_layer_must_be_given(name):
    with pytest.raises(ValueError, match=f"{name}='learned' but no such layer"):
        Brain(layers=Layers(**{name: "learned"}))


def test_goals_must_be_for_every_lead(observation):
    class Short:
        def goals(self, obs, calendar, limits, memory):
            full = HeuristicGoals(Parameters()).goals(obs, calendar, limits, memory)
            return replace(full, q_sell=full.q_sell[:-1])

    brain = Brain(goal_layer=Short())
    obs = observation()
    brain.start_day(obs)
    with pytest.raises(ValueError, match="goals need 11 entries"):
        brain.propose([thread(obs, "c0")])


def test_a_residual_moves_the_base_by_its_weight():
    base = Offer(4, 7, 20)
    assert residual(base, (2.4, -1.0, 1.6)) == Offer(6, 6, 22)
    assert residual(base, (2.4, -1.0, 1.6), 0.5) == Offer(5, 6, 21)
    assert residual(base, (2.4, -1.0, 1.6), 0.0) == base
    with pytest.raises(ValueError, match="not finite"):
        residual(base, (float("nan"), 0.0, 0.0))
