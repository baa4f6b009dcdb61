"""The fast world against scml's own: the same trace, event by event."""

import gc
import tracemalloc

import pytest

from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.run import run_world
from litaagent_std.world.scml.trace import Trace, Window, first_difference
from litaagent_std.world.setup import official_setup

FINALISTS = (
    "scml_agents.scml2024.standard.team_penguin.penguinagent.PenguinAgent",
    "scml_agents.scml2025.standard.team_atsunaga.as0.AS0",
    "scml_agents.scml2026.standard.team_21653.horizon_aware_agent.HorizonAwareAgent",
)


def assert_same_trace(setup, inventory="as_shipped"):
    traces = {engine: Trace() for engine in ("scml", "fast")}
    for engine, trace in traces.items():
        run_world(setup, engine, [trace], inventory)
    position = first_difference(traces["scml"], traces["fast"])
    if position is not None:
        shown = []
        for engine in traces:
            window = Window(position)
            run_world(setup, engine, [window], inventory)
            shown += [engine, *window.texts]
        pytest.fail("\n".join(shown))
    assert traces["fast"].counts["on_day_end"] == setup.n_days


@pytest.mark.parametrize("n_levels", [2, 3, 4])
def test_default_agents_emit_the_same_events(n_levels):
    assert_same_trace(official_setup(11, n_days=8, n_levels=n_levels))


@pytest.mark.parametrize("fill", ["defaults", "competitors"])
def test_synchronous_agents_emit_the_same_events(fill):
    assert_same_trace(official_setup(12, FINALISTS, fill=fill, n_days=8, n_levels=3))


def test_stock_that_production_consumes():
    setup = official_setup(13, n_days=8, n_levels=2)
    assert_same_trace(setup, inventory="depleting")
    scores = [run_world(setup, inventory=rule).scores for rule in ("as_shipped", "depleting")]
    assert scores[0] != scores[1]


def test_bankruptcy_emits_the_same_events():
    """Random agents go bankrupt; their contracts are void and nobody negotiates with them."""
    from dataclasses import replace

    setup = official_setup(14, n_days=15, n_levels=2)
    factories = tuple(replace(factory, balance=factory.balance // 12) for factory in setup.factories)
    poor = replace(setup, factories=factories)
    trace = Trace()
    run_world(poor, "fast", [trace])
    assert trace.counts["on_bankruptcy"] > 2
    assert_same_trace(poor)


def test_two_worlds_at_once_do_not_affect_each_other():
    setup = official_setup(15, FINALISTS, n_days=6, n_levels=2)
    alone = run_world(setup)
    world, other = FastWorld(setup), FastWorld(setup.with_seed(99))
    while world.step_day() | other.step_day():
        pass
    assert world.outcome() == alone
    assert other.outcome() != alone


def test_a_world_repeats():
    setup = official_setup(16, FINALISTS, n_days=6, n_levels=2)
    assert run_world(setup) == run_world(setup)


def test_memory_does_not_grow_with_days():
    world = FastWorld(official_setup(17, n_days=60, n_levels=2))
    tracemalloc.start()
    sizes = []
    for day in range(60):
        world.step_day()
        if day in (19, 39, 59):
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    # reports and profits: a few bytes per factory and day; contracts and negotiations: none
    assert sizes[2] - sizes[1] < 200_000


def test_unknown_engine():
    with pytest.raises(ValueError, match="choose 'fast' or 'scml'"):
        run_world(official_setup(11, n_days=4, n_levels=2), engine="quick")
