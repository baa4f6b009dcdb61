import inspect

import pytest

from litaagent_std.world.events import WorldObserver
from litaagent_std.world.run import run_world
from litaagent_std.world.scml.trace import Trace, Window, first_difference
from litaagent_std.world.setup import AgentSpec, official_setup

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
    "RespondsLeave",
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
    "RaisesSurrogates",
    "RaisesUnwritable",
]
ELSEWHERE = {"BrokenError", "Hangs", "Mutates", "UnwritableError"}


def hostile_setup(name, days=5):
    return official_setup(5, [f"hostile_agents.{name}"], n_days=days, n_levels=2, n_competitors=3)


def show(setup, position):
    texts = []
    for engine in ("scml", "fast"):
        window = Window(position)
        run_world(setup, engine=engine, observers=[window])
        texts.append(f"{engine}:\n" + "\n".join(window.texts))
    return "\n".join(texts)


def test_no_hostile_agent_is_forgotten(hostile_agents):
    classes = {
        name
        for name, value in vars(hostile_agents).items()
        if inspect.isclass(value) and value.__module__ == "hostile_agents" and not name.startswith("_")
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
    position = first_difference(traces["scml"], traces["fast"])
    assert position is None, show(setup, position)
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


def test_damage_to_what_an_agent_is_handed_does_not_reach_others(hostile_agents, probe_agents):
    class Prices(WorldObserver):
        def __init__(self):
            self.by_day, self.ids = [], ()

        def on_world_start(self, event):
            self.ids = event.agents

        def on_day_start(self, event):
            self.by_day.append(list(event.trading_prices))

    setup = hostile_setup("Mutates", days=6)
    watcher = next(seat for seat, agent in enumerate(setup.agents) if not agent.competitor)
    probe_agents.VIEWS.clear()
    prices = Prices()
    run_world(
        setup.with_agents({watcher: AgentSpec("probe_agents.RecordsInterface")}), engine="fast", observers=[prices]
    )
    assert [view["day"] for view in probe_agents.VIEWS] == list(range(6))
    levels = [[name for name in prices.ids if name.endswith(f"@{level}")] for level in range(2)]
    factory = setup.factories[watcher]
    for view in probe_agents.VIEWS:
        assert view["prices"] == prices.by_day[view["day"]]
        assert view["catalog"] == list(setup.catalog_prices)
        assert view["suppliers"] == (["SELLER"] if factory.level == 0 else levels[0])
        assert view["consumers"] == (levels[1] if factory.level == 0 else ["BUYER"])
        assert view["all"] == [["SELLER"], *levels]
        assert (view["lines"], view["cost"]) == (factory.n_lines, factory.cost)


@pytest.mark.parametrize("engine", ["scml", "fast"])
def test_a_hanging_agent_is_given_up_and_the_world_flagged(hostile_agents, engine):
    setup = hostile_setup("Hangs")
    trace = Trace()
    end = run_world(setup, engine=engine, observers=[trace], call_limit=0.4)
    assert end.limit_fired
    assert end.days == setup.n_days
    assert trace.counts["on_day_end"] == setup.n_days


def test_a_limit_that_does_not_fire_changes_nothing():
    setup = official_setup(5, n_days=5, n_levels=2)
    runs = [("scml", None), ("scml", 60.0), ("fast", None), ("fast", 60.0)]
    traces = []
    for engine, limit in runs:
        traces.append(Trace())
        assert not run_world(setup, engine=engine, observers=traces[-1:], call_limit=limit).limit_fired
    assert len({trace.digest for trace in traces}) == 1
