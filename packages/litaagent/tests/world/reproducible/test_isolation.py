import sys
import types

import numpy as np
import pytest

from litaagent_std.world.reproducible.isolation import load_fresh
from litaagent_std.world.run import run_world
from litaagent_std.world.scml.trace import Trace, first_difference
from litaagent_std.world.setup import AgentSpec, official_setup

SOURCE = """
from collections import Counter, deque
import threading
import numpy as np
from scml.std.agents.greedy import GreedyStdAgent

class Settings:
    def __init__(self):
        self.margin, self.seen = 0.5, []

SETTINGS = Settings()
TABLE = {"a": [1, 2]}
NAMES = ["x"]
TAGS = {"t"}
LAST = deque([1], maxlen=3)
COUNTS = Counter("aab")
WEIGHTS = np.arange(3.0)
WORLDS = 0
LOCKED = [threading.Lock()]

class Agent(GreedyStdAgent):
    played = 0
    partners = {}
"""


@pytest.fixture
def package(request):
    """A module that was never imported before, and that no other test imports."""
    module = types.ModuleType(f"stateful_agents_of_{request.node.name}")
    sys.modules[module.__name__] = module
    exec(SOURCE, vars(module))
    yield module
    del sys.modules[module.__name__]


def test_state_in_modules_and_classes_is_put_back(package):
    spec = AgentSpec(f"{package.__name__}.Agent")
    load_fresh([spec])
    settings, table, weights = package.SETTINGS, package.TABLE, package.WEIGHTS
    package.SETTINGS.margin = 9
    package.SETTINGS.seen.append("much")
    package.TABLE["a"].append(3)
    package.TABLE["b"] = 1
    package.NAMES.clear()
    package.TAGS.add("u")
    package.LAST.extend([2, 3, 4])
    package.COUNTS["z"] += 5
    package.WEIGHTS += 1
    package.WORLDS += 1
    package.LOCKED.append("more")
    package.Agent.played += 1
    package.Agent.partners["p"] = 1
    assert load_fresh([spec]) == [package.Agent]
    assert package.SETTINGS is settings
    assert vars(settings) == {"margin": 0.5, "seen": []}
    assert package.TABLE is table
    assert table == {"a": [1, 2]}
    assert package.NAMES == ["x"]
    assert sorted(package.TAGS) == ["t"]
    assert list(package.LAST) == [1]
    assert package.LAST.maxlen == 3
    assert package.COUNTS == {"a": 2, "b": 1}
    assert package.WEIGHTS is weights
    assert np.array_equal(weights, [0, 1, 2])
    assert package.WORLDS == 0
    assert package.Agent.played == 0
    assert package.Agent.partners == {}
    assert len(package.LOCKED) == 2, "what cannot be copied stays as it is"


def test_replaced_objects_come_back(package):
    load_fresh([AgentSpec(f"{package.__name__}.Agent")])
    original = package.TABLE
    package.TABLE = {"other": 1}
    load_fresh([AgentSpec(f"{package.__name__}.Agent")])
    assert package.TABLE is original


def test_the_state_of_a_wrapped_agent_is_put_back_too(package, monkeypatch):
    wrapper = types.ModuleType("litaagent_std.wrapper_of_the_test")
    wrapper.Wrapped = type("Wrapped", (package.Agent,), {"__module__": wrapper.__name__})
    monkeypatch.setitem(sys.modules, wrapper.__name__, wrapper)
    spec = AgentSpec(f"{wrapper.__name__}.Wrapped")
    load_fresh([spec])
    package.TABLE["a"].append(3)
    load_fresh([spec])
    assert package.TABLE == {"a": [1, 2]}


@pytest.mark.parametrize("engine", ["fast", "scml"])
def test_a_second_world_in_the_process_is_as_the_first(engine):
    path = "scml_agents.scml2025.standard.team_276.litaagent_std.litaagent_yr.LitaAgentYR"
    setup = official_setup(1, [path], n_days=8, n_levels=2)
    traces = []
    for _ in range(2):
        traces.append(Trace())
        run_world(setup, engine=engine, observers=traces[-1:])
    assert first_difference(*traces) is None
