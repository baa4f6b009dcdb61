"""Native agents against the agent objects that they replace: the same worlds, event by event."""

from collections import Counter
from dataclasses import replace

import pytest

from litaagent_std.world.events import ACCEPT, REJECT
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.fast.external import external_seat
from litaagent_std.world.native.greedy import NativeGreedy
from litaagent_std.world.native.random import NativeRandom
from litaagent_std.world.native.sync_random import NativeSyncRandom
from litaagent_std.world.run import run_world
from litaagent_std.world.scml.trace import Trace, first_difference
from litaagent_std.world.scml.verify import Plan, VerifyConfig, compare, plan
from litaagent_std.world.setup import AgentSpec, official_setup

DEFAULTS = ("GreedyStdAgent", "RandomStdAgent", "SyncRandomStdAgent")
FINALISTS = (
    "scml_agents.scml2024.standard.team_penguin.penguinagent.PenguinAgent",
    "scml_agents.scml2025.standard.team_atsunaga.as0.AS0",
)


def run(setup, defaults, **options):
    trace = Trace()
    world = FastWorld(setup, [trace], defaults=defaults, **options)
    world.run()
    return trace, world


def assert_same_trace(setup, **options):
    hosted, _ = run(setup, "hosted", **options)
    native, world = run(setup, "native", **options)
    assert first_difference(hosted, native) is None
    return native, world


def of_one_kind(setup, name, **params):
    spec = AgentSpec(f"scml.std.agents.{name}", params)
    return setup.with_agents(dict.fromkeys(range(setup.n_seats), spec))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_levels", [2, 3, 4])
def test_the_league_of_default_agents(seed, n_levels):
    trace, world = assert_same_trace(official_setup(seed, n_days=12, n_levels=n_levels))
    assert {type(seat.native) for seat in world.seats} <= {NativeGreedy, NativeRandom, NativeSyncRandom}
    assert trace.counts["on_contract"] > 0


@pytest.mark.parametrize("n_levels", [2, 4])
@pytest.mark.parametrize("name", DEFAULTS)
def test_worlds_of_one_kind(name, n_levels):
    assert_same_trace(of_one_kind(official_setup(30, n_days=25, n_levels=n_levels), name))


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("GreedyStdAgent", {"acc_price_slack": 0.1, "future_threshold": 0.8, "production_target": 0.5}),
        ("GreedyStdAgent", {"concession_exponent": 3.0, "range_slack": 0.3}),
        ("RandomStdAgent", {"p_accept": 0.02, "p_end": 0.1}),
        ("SyncRandomStdAgent", {"prioritize_near_future": True, "pfuture": 0.6}),
        ("SyncRandomStdAgent", {"prioritize_far_future": True, "today_concentration": 0.9, "future_min_price": 0.4}),
        ("SyncRandomStdAgent", {"future_concession_exp": 0.5, "future_target_productivity": 2.0}),
    ],
)
def test_parameters_are_the_agents_own(name, params):
    setup = official_setup(31, n_days=12, n_levels=3)
    changed, world = assert_same_trace(of_one_kind(setup, name, **params))
    assert all(seat.native is not None for seat in world.seats)
    assert first_difference(changed, run(of_one_kind(setup, name), "native")[0]) is not None


def test_against_scml_itself():
    result = compare(Plan(40, (), "defaults", "as_shipped", 8, "native"))
    assert result.equal, result.difference
    result = compare(Plan(41, FINALISTS, "defaults", "depleting", 8, "native"))
    assert result.equal, result.difference


@pytest.mark.parametrize("inventory", ["as_shipped", "depleting"])
def test_among_hosted_agents(inventory):
    setup = official_setup(42, FINALISTS, n_days=10, n_levels=3, n_competitors=4)
    _, world = assert_same_trace(setup, inventory=inventory)
    is_native = [seat.native is not None for seat in world.seats]
    assert is_native == [not spec.competitor for spec in setup.agents]


def test_bankruptcies():
    setup = official_setup(43, n_days=25, n_levels=3)
    factories = tuple(replace(factory, balance=factory.balance // 12) for factory in setup.factories)
    poor = replace(setup, factories=factories)
    trace, _ = assert_same_trace(poor)
    assert trace.counts["on_bankruptcy"] > 2


@pytest.mark.usefixtures("hostile_agents")
@pytest.mark.parametrize(
    "agent",
    [
        "RaisesInPropose",
        "RaisesTypeErrorInRespond",
        "RaisesInCounterAll",
        "RaisesInBeforeStep",
        "RaisesInReset",
        "OffersIntegralFloats",
        "OffersLists",
        "OffersBillions",
        "RespondsWait",
        "RespondsLeave",
        "CountersHalf",
        "CountersStrangers",
    ],
)
def test_among_hostile_agents(agent):
    setup = official_setup(44, n_days=8, n_levels=3)
    assert_same_trace(setup.with_agents({seat: AgentSpec(f"hostile_agents.{agent}") for seat in (0, 5)}))


def test_few_rounds_and_odd_numbers_of_lines():
    """An agent that can raise is hosted: one round, or lines at which the last days draw from an empty range."""
    setup = official_setup(45, n_days=30, n_levels=2)
    _, world = assert_same_trace(of_one_kind(replace(setup, n_rounds=1), "GreedyStdAgent"))
    assert all(seat.native is None for seat in world.seats)
    _, world = assert_same_trace(of_one_kind(replace(setup, n_rounds=3), "GreedyStdAgent"))
    assert all(seat.native is not None for seat in world.seats)
    for n_lines in (7, 13):
        factories = tuple(replace(factory, n_lines=n_lines) for factory in setup.factories)
        assert_same_trace(replace(setup, factories=factories))


def test_external_seats():
    setup = official_setup(46, n_days=6, n_levels=2).with_agents({0: external_seat(0)})

    def play(defaults):
        trace = Trace()
        game = FastWorld(setup, [trace], defaults=defaults).play()
        decision = next(game, None)
        n_decisions = 0
        while decision is not None:
            n_decisions += 1
            reply = {}
            if decision.kind == "first_proposals":
                reply = {partner: (2, decision.awi.current_step, 12) for partner in decision.partners}
            try:
                decision = game.send(reply)
            except StopIteration:
                break
        return trace, n_decisions

    (hosted, n_hosted), (native, n_native) = play("hosted"), play("native")
    assert n_hosted == n_native > 5
    assert first_difference(hosted, native) is None


@pytest.mark.usefixtures("hostile_agents")
def test_derived_classes_stay_hosted():
    setup = official_setup(47, n_days=5, n_levels=2)
    setup = setup.with_agents({0: AgentSpec("hostile_agents.AcceptsEverything")})
    world = FastWorld(setup, defaults="native")
    assert [seat.native is None for seat in world.seats] == [True] + [False] * (setup.n_seats - 1)


def test_scml_has_no_native_agents():
    with pytest.raises(ValueError, match="engine='fast'"):
        run_world(official_setup(48, n_days=5, n_levels=2), "scml", defaults="native")


def test_the_plan_of_the_verification():
    plans = plan(VerifyConfig(native=True))
    assert {case.defaults for case in plans} == {"native"}
    assert {case.fill for case in plans} == {"defaults"}
    assert sum(not case.competitors for case in plans) == 50


def within(native, link, step, offer):
    """Whether an offer is within an agent's limits; asking twice changes nothing."""
    quantity, day, price = offer
    limits = native.limits(link, step, day)
    assert limits == native.limits(link, step, day)
    return quantity <= limits.quantity and (price >= limits.price if link.selling else price <= limits.price)


def check_respond(native, seen):
    """Compare limits with every response of an agent that decides offer by offer."""
    respond = native.respond

    def checked(link, step, offer):
        allowed = within(native, link, step, offer)
        answer = respond(link, step, offer)
        seen[answer] += 1
        if isinstance(native, NativeRandom):
            assert allowed
        else:
            assert (answer == ACCEPT) == allowed
        return answer

    native.respond = checked


def check_choose(native, seen):
    """Compare limits with the choice of an agent that decides about all offers together."""
    choose = native._choose

    def checked(offers):
        links, steps = native.links, native._steps
        allowed = {pid for pid, offer in offers.items() if within(native, links[pid], steps[pid], offer)}
        accepted = choose(offers)
        assert accepted <= allowed
        taken = {(links[pid].selling, offers[pid][1]) for pid in accepted}
        # what is within the limits is refused only if another offer for the same day was accepted
        assert all((links[pid].selling, offers[pid][1]) in taken for pid in allowed - accepted)
        seen[ACCEPT] += len(accepted)
        seen[REJECT] += len(offers) - len(accepted)
        return accepted

    native._choose = checked


@pytest.mark.parametrize("n_levels", [2, 3])
@pytest.mark.parametrize("name", DEFAULTS)
def test_limits_are_what_an_agent_accepts(name, n_levels):
    # partners that come as agent objects, so that every offer passes through the agent's own methods
    setup = of_one_kind(official_setup(33, n_days=12, n_levels=n_levels), name)
    hosted = AgentSpec("litaagent_std.agents.hrl.LitaAgentHRL")
    odd = [seat for seat, factory in enumerate(setup.factories) if factory.level % 2]
    world = FastWorld(setup.with_agents(dict.fromkeys(odd, hosted)), defaults="native")
    seen = Counter()
    for seat in world.seats:
        if isinstance(seat.native, NativeSyncRandom):
            check_choose(seat.native, seen)
        elif seat.native is not None:
            check_respond(seat.native, seen)
    world.run()
    assert seen[ACCEPT] > 5
    assert seen[REJECT] > 5
