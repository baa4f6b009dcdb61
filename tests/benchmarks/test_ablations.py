"""Every step of the ablation plays, and L1 alone plays for plain goals."""

import pytest
from benchmarks.ablations import STEPS, LitaL1, PlainGoals

from litaagent_std.arena.worlds import Rules, play_unit
from litaagent_std.world.setup import AgentSpec

RULES = Rules(("scml.std.agents.greedy.GreedyStdAgent",), days=(10,), levels=3)


@pytest.fixture(scope="module")
def played():
    return {step: play_unit(RULES, 11, AgentSpec(path, params)) for step, (path, params) in STEPS.items()}


def test_steps_play_differently_in_the_same_world(played):
    assert {unit["n_errors"] for unit in played.values()} == {0}
    assert len({unit["seed"] for unit in played.values()}) == 1
    assert played["L1"]["score"] != played["+ L2"]["score"] != played["+ L3"]["score"]


def test_l1_alone_has_the_layers_of_its_name():
    brain = LitaL1(parameters={"hold": 0.5}).brain
    assert (brain.layers.l3, brain.layers.l4) == ("baseline", "greedy")
    assert isinstance(brain._goal_layer._layer, PlainGoals)
