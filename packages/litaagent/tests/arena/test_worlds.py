"""Worlds of the arena: drawn alike for everybody, and undisturbed by who plays."""

import sys
from dataclasses import replace
from types import ModuleType

import pytest
from scml.std.agents import GreedyStdAgent, SyncRandomStdAgent

from litaagent_std.arena.worlds import Rules, draw, play_unit
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import AgentSpec

GREEDY = "scml.std.agents.greedy.GreedyStdAgent"
SYNC = "scml.std.agents.rand.SyncRandomStdAgent"
RANDOM = "scml.std.agents.rand.RandomStdAgent"
RULES = Rules((GREEDY, SYNC), days=(8,), levels=2)


@pytest.fixture
def agents(monkeypatch):
    """Agents of a module of their own: two doubles, and one that fails."""
    module = ModuleType("agents_of_the_arena")
    for name in ("AlphaBetaGamma", "ZuluYankeeXray"):
        setattr(module, name, type(name, (SyncRandomStdAgent,), {"__module__": module.__name__}))

    def step(self):
        raise ZeroDivisionError("on purpose")

    module.Fails = type("Fails", (GreedyStdAgent,), {"__module__": module.__name__, "step": step})
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return lambda name: AgentSpec(f"{module.__name__}.{name}")


def without_cpu(unit):
    return {name: value for name, value in unit.items() if name != "cpu"}


def test_a_draw_is_a_pure_function_of_rules_and_seed():
    assert draw(RULES, 5) == draw(RULES, 5)
    assert draw(RULES, 5).setup.digest != draw(RULES, 6).setup.digest


def test_the_focal_seat_is_a_competitors_and_moves():
    worlds = [draw(replace(RULES, levels=3, days=(8, 9)), seed) for seed in range(30)]
    assert all(world.setup.agents[world.seat].competitor for world in worlds)
    assert {world.level for world in worlds} == {"first", "middle", "last"}
    assert {world.setup.n_days for world in worlds} == {8, 9}


def test_the_mixes_differ_in_who_fills_the_seats():
    official, finalists = draw(RULES, 1).setup, draw(replace(RULES, mix="finalists"), 1).setup
    assert 2 <= sum(agent.competitor for agent in official.agents) <= 4
    assert all(agent.competitor and agent.path in RULES.opponents for agent in finalists.agents)


def test_only_the_focal_agent_changes():
    world = draw(RULES, 2)
    setups = [world.with_agent(AgentSpec(path)) for path in (RANDOM, GREEDY)]
    for seat, pair in enumerate(zip(setups[0].agents, setups[1].agents, strict=True)):
        assert (pair[0] == pair[1]) == (seat != world.seat)
    assert replace(setups[0], agents=setups[1].agents) == setups[1]


def test_a_double_under_another_name_has_the_same_result(agents):
    first, second = (without_cpu(play_unit(RULES, 3, agents(name))) for name in ("AlphaBetaGamma", "ZuluYankeeXray"))
    assert first == second
    assert first == without_cpu(play_unit(RULES, 3, AgentSpec(SYNC)))


def test_both_engines_agree_and_timing_changes_nothing():
    unit = play_unit(RULES, 4, AgentSpec(GREEDY))
    on_scml = play_unit(replace(RULES, engine="scml"), 4, AgentSpec(GREEDY))
    for name, value in without_cpu(unit).items():
        assert on_scml[name] == pytest.approx(value) if isinstance(value, float) else on_scml[name] == value
    world = draw(RULES, 4)
    assert unit["score"] in run_world(world.with_agent(AgentSpec(GREEDY))).scores.values()


def test_facts_and_costs_of_a_unit(agents):
    unit = play_unit(RULES, 4, AgentSpec(SYNC))
    assert (unit["n_days"], unit["n_levels"], unit["n_errors"], unit["interventions"]) == (8, 2, 0, None)
    assert unit["sales"] >= unit["produced"] > 0
    assert unit["cpu"]["decisions"] >= 8
    assert 0 < unit["cpu"]["decision_ms"] <= unit["cpu"]["longest_decision_ms"]
    assert unit["cpu"]["day_ms"] > 0
    failing = play_unit(RULES, 4, agents("Fails"))
    assert failing["n_errors"] > 0
    assert failing["errors"] == ["ZeroDivisionError in step: on purpose"]
