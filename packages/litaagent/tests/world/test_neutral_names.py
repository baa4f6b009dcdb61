"""Neutral ids: exchanging an agent for its double under another class name leaves everything as it was."""

import sys
from dataclasses import replace
from types import ModuleType

import pytest
from scml.std.agents import SyncRandomStdAgent

from litaagent_std.world.events import WorldObserver
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import AgentSpec, WorldSetup, official_setup


class Recorder(WorldObserver):
    """Keeps the ids, the contracts and the balances."""

    def __init__(self):
        self.events = []

    def on_world_start(self, event):
        self.events.append(event.agents)

    def on_contract(self, event):
        self.events.append((event.negotiation, event.quantity, event.time, event.unit_price))

    def on_day_end(self, event):
        self.events.append(event)


@pytest.fixture
def doubles(monkeypatch):
    """Two agents that differ in their class names alone, and so in their initials."""
    module = ModuleType("doubles_of_sync_random")
    for name in ("AlphaBetaGamma", "ZuluYankeeXray"):
        double = type(name, (SyncRandomStdAgent,), {"__module__": module.__name__})
        setattr(module, name, double)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return [AgentSpec(f"{module.__name__}.{name}", competitor=True) for name in ("AlphaBetaGamma", "ZuluYankeeXray")]


@pytest.mark.parametrize("engine", ["fast", "scml"])
def test_a_double_under_another_name_changes_nothing(doubles, engine):
    setup = replace(official_setup(3, n_days=6, n_levels=2), neutral_names=True)
    runs = []
    for double in doubles:
        recorder = Recorder()
        run_world(setup.with_agents({0: double}), engine=engine, observers=[recorder])
        runs.append(recorder.events)
    assert runs[0] == runs[1]
    assert runs[0][0][0] == "00@0"


def test_official_names_show_the_class(doubles):
    recorder = Recorder()
    run_world(official_setup(3, n_days=6, n_levels=2).with_agents({0: doubles[0]}), observers=[recorder])
    assert recorder.events[0][0] == "00ABG@0"


def test_the_digest_of_official_names_stays_and_neutral_ones_survive_json():
    setup = official_setup(3, n_days=6, n_levels=2)
    neutral = replace(setup, neutral_names=True)
    assert "neutral_names" not in setup.to_dict()
    assert neutral.digest != setup.digest
    assert WorldSetup.from_dict(neutral.to_dict()) == neutral
