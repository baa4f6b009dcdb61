"""Points of the search and the parameters they stand for."""

import pytest

from apexrl.runs.errors import ConfigurationError
from litaagent_std.arena.tuning.space import UNUSED, Space, with_values
from litaagent_std.arena.worlds import Rules, draw, play_unit
from litaagent_std.policy.parameters import LEVELS, Parameters, tunable
from litaagent_std.world.setup import AgentSpec

LITA = "litaagent_std.agents.hrl.LitaAgentHRL"
GREEDY = "scml.std.agents.greedy.GreedyStdAgent"


@pytest.mark.parametrize("level", LEVELS)
def test_the_origin_is_the_start(level):
    start = with_values(Parameters(), "first", {"hold": 0.75})
    space = Space.of(level, start)
    assert space.parameters(space.origin).at(level) == start.at(level)
    assert space.parameters(space.origin).at("middle" if level == "first" else "first") == start.at(
        "middle" if level == "first" else "first"
    )


def test_a_point_changes_its_level_alone_and_stays_in_range():
    space = Space.of("middle", Parameters(), ["hold", "cover_days"])
    changed = space.parameters([1.0, 0.5])
    assert (changed.at("middle").hold, changed.at("middle").cover_days) == (1.0, 4.5)
    assert changed.at("first") == Parameters()
    assert space.values([0.12345678, 0.0]) == {"hold": 0.1235, "cover_days": 1.0}


@pytest.mark.parametrize(("names", "told"), [(["holt"], "holt cannot be tuned"), (["hold", "hold"], "each once")])
def test_wrong_names_are_refused(names, told):
    with pytest.raises(ConfigurationError, match=told):
        Space.of("middle", Parameters(), names)


def test_names_without_use_are_refused():
    with pytest.raises(ConfigurationError, match="say nothing at the level 'last'"):
        Space.of("last", Parameters(), ["sell_curve"])


@pytest.mark.parametrize("level", ["first", "last"])
def test_parameters_without_use_change_nothing(level):
    rules = Rules((GREEDY,), days=(10,), levels=2)
    seed = next(seed for seed in range(50) if draw(rules, seed).level == level)
    other = {name: low + 0.37 * (high - low) for name, (low, high) in tunable().items() if name in UNUSED[level]}
    plain, changed = (play_unit(rules, seed, AgentSpec(LITA, params)) for params in ({}, {"parameters": other}))
    del plain["cpu"], changed["cpu"], plain["setup"], changed["setup"]
    assert plain == changed
