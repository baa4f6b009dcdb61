import inspect

import pytest

from litaagent_std.market.world.interface import run_world
from litaagent_std.market.world.setup import AgentSpec, official_setup
from litaagent_std.market.world.trace import Trace, Window, first_difference

COMPARED = [
    "RaisesInPropose",
    "RaisesTypeErrorInRespond",
    "RaisesInCounterAll",
    "RaisesInFirstProposals",
    "RaisesInInit",
    "RaisesInStep",
    "RaisesInBeforeStep",
    "RaisesInReset",
    "RaisesInSuccess",
    "RaisesInFailure",
    "OffersFloatPrice",
    "OffersIntegralFloats",
    "OffersNumpyIntegers",
    "OffersBooleans",
    "OffersLists",
    "OffersNone",
    "OffersOutOfRange",
    "OffersNegative",
    "OffersBillions",
    "OffersPairs",
    "OffersText",
    "OffersNan",
    "RespondsNone",
    "RespondsTrue",
    "RespondsText",
    "RespondsWait",
    "RespondsNoResponse",
    "RespondsNumber",
    "AcceptsEverything",
    "EndsEverything",
    "AcceptsNothingOffered",
    "CountersNone",
    "CountersNothing",
    "CountersHalf",
    "CountersStrangers",
    "CountersPairs",
    "CountersWait",
    "CountersWithoutOffers",
    "AcceptsAndOffers",
    "EndsAndOffers",
    "ProposesToStrangers",
    "ProposesNothing",
    "SeedsEverything",
    "DrawsWithoutSeeds",
]
ELSEWHERE = {"BrokenError", "Hangs", "Mutates", "RespondsLeave"}


def hostile_setup(name, days=5):
    return official_setup(5, [f"hostile_agents.{name}"], n_days=days, n_levels=2, n_competitors=3)


def show(setup, place):
    texts = []
    for engine in ("scml", "fast"):
        window = Window(place)
        run_world(setup, engine=engine, observers=[window])
        texts.append(f"{engine}:\n" + "\n".join(window.texts))
    return "\n".join(texts)


def test_no_hostile_agent_is_forgotten(hostile_agents):
    classes = {
        name
        for name, one in vars(hostile_agents).items()
        if inspect.isclass(one) and one.__module__ == "hostile_agents" and not name.startswith("_")
    }
    assert classes == set(COMPARED) | ELSEWHERE


@pytest.mark.parametrize("name", COMPARED)
def test_hostile_agents_are_treated_as_scml_treats_them(hostile_agents, name):
    setup = hostile_setup(name)
    traces = {}
    for engine in ("scml", "fast"):
        traces[engine] = Trace()
        end = run_world(setup, engine=engine, observers=[traces[engine]])
        assert end.days == setup.n_days
    place = first_difference(traces["scml"], traces["fast"])
    assert place is None, show(setup, place)
    if name.startswith("Raises"):
        assert traces["fast"].counts["on_error"] > 0
        assert sum(end.n_errors.values()) == traces["fast"].counts["on_error"]


@pytest.mark.parametrize("name", ["OffersBillions", "AcceptsEverything", "CountersHalf", "RaisesInPropose", "Mutates"])
def test_hostile_agents_do_not_corrupt_the_fast_world(hostile_agents, auditor, name):
    setup = hostile_setup(name, days=8)
    audit = auditor(setup)
    run_world(setup, engine="fast", observers=[audit])
    assert audit.phase == "after"
    assert audit.n_settled == 8 * setup.n_seats


def test_damage_to_what_an_agent_is_handed_changes_nothing_for_others(hostile_agents):
    setup = hostile_setup("Mutates", days=6)
    honest = setup.with_agents(
        {
            seat: AgentSpec("scml.std.agents.rand.SyncRandomStdAgent", competitor=True)
            for seat, agent in enumerate(setup.agents)
            if agent.competitor
        }
    )
    scores = [list(run_world(one, engine="fast").scores.values()) for one in (setup, honest)]
    assert scores[0] == scores[1]
