"""Every variant plays by the path of its class; Penguin under L1 promises nothing that it cannot keep."""

from dataclasses import fields

import pytest

from litaagent_std.agents import variants
from litaagent_std.agents.variants import (
    REFERENCE,
    LitaAgentBaseline,
    LitaAgentCautious,
    LitaAgentGreedy,
    LitaAgentHRLTracked,
    LitaAgentV1,
)
from litaagent_std.policy.layers import Layers
from litaagent_std.policy.parameters import Parameters
from litaagent_std.world.events import WorldObserver
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.setup import AgentSpec, official_setup

SHIELDED = "litaagent_std.agents.variants_shielded.ShieldedPenguin"
PATHS = [f"{variants.__name__}.{name}" for name in variants.__all__ if name.startswith("Lita")] + [SHIELDED]


class Listener(WorldObserver):
    def __init__(self):
        self.errors, self.shortfall = [], {}

    def on_error(self, event):
        self.errors.append(event)

    def on_settlement(self, event):
        self.shortfall[event.agent] = self.shortfall.get(event.agent, 0) + event.shortfall_quantity


def play(path, n_days=6, **params):
    setup = official_setup(3, n_days=n_days, n_levels=3)
    first = {}
    for seat, factory in enumerate(setup.factories):
        first.setdefault(factory.level, seat)
    spec = AgentSpec(path, params, competitor=True)
    listener = Listener()
    world = FastWorld(setup.with_agents(dict.fromkeys(first.values(), spec)), [listener], defaults="native")
    world.run()
    return [world.seats[seat].agent for seat in first.values()], listener


@pytest.mark.parametrize("path", PATHS)
def test_every_variant_plays_without_an_error(path):
    agents, listener = play(path)
    assert listener.errors == []
    assert all(type(agent).__name__ == path.rpartition(".")[2] for agent in agents)


def test_variants_are_settings():
    assert LitaAgentBaseline().brain.layers == Layers(l3="baseline", l4="greedy")
    assert LitaAgentGreedy().brain.layers == Layers(l2="learned", l4="greedy")
    assert LitaAgentHRLTracked().brain.keep_log
    risky = Parameters(risk_budget=0.5, overrides={"first": {"risk_budget": 0.9, "hold": 0.5}})
    for given in (risky, {"risk_budget": 0.5}, None):
        cautious = LitaAgentCautious(parameters=given).brain.all_parameters
        assert cautious.risk_budget == cautious.at("first").risk_budget == 0.0
    assert LitaAgentCautious(parameters=risky).brain.all_parameters.at("first").hold == 0.5


def test_penguin_under_l1_without_risk_causes_no_shortfall():
    agents, listener = play(SHIELDED, n_days=12, parameters={"risk_budget": 0.0})
    assert sum(agent.brain.interventions for agent in agents) > 0
    for agent in agents[:-1]:  # the last level's sales are forced on it
        assert listener.shortfall.get(agent.id, 0) == 0
    _, plain = play("scml_agents.scml2024.standard.team_penguin.PenguinAgent", n_days=12)
    assert plain.errors == []
    assert any(name.endswith(("@0", "@1")) and units > 0 for name, units in plain.shortfall.items() if "Pe" in name)


def test_the_reference_agent_has_every_setting_written_out():
    assert REFERENCE["parameters"].keys() == {field.name for field in fields(Parameters)}
    brain = LitaAgentV1().brain
    assert brain.layers == Layers(l2="heuristic", l3="model", l4="joint")
    assert brain.all_parameters == Parameters(**REFERENCE["parameters"])
    assert brain.all_parameters.urgency_high == 0.0
    assert LitaAgentV1(keep_log=True).brain.keep_log
