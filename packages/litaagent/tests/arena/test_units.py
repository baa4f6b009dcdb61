"""Names and files of finished units."""

from dataclasses import replace

import pytest

from litaagent_std.arena.units import UnitLog, UnitStore, code_version, unit_key
from litaagent_std.arena.worlds import Rules
from litaagent_std.world.setup import AgentSpec

GREEDY = "scml.std.agents.greedy.GreedyStdAgent"
RULES = Rules((GREEDY,), days=(8,))
AGENT = AgentSpec("litaagent_std.agents.hrl.LitaAgentHRL", {"l4": "joint"})


@pytest.mark.parametrize(
    ("rules", "seed", "agent"),
    [
        (replace(RULES, days=(9,)), 1, AGENT),
        (replace(RULES, mix="finalists"), 1, AGENT),
        (replace(RULES, engine="scml"), 1, AGENT),
        (replace(RULES, inventory="depleting"), 1, AGENT),
        (replace(RULES, opponents=(GREEDY, GREEDY)), 1, AGENT),
        (RULES, 2, AGENT),
        (RULES, 1, AgentSpec(GREEDY)),
        (RULES, 1, replace(AGENT, params={"l4": "greedy"})),
    ],
)
def test_everything_that_matters_is_in_the_name(rules, seed, agent):
    assert unit_key(rules, seed, agent) != unit_key(RULES, 1, AGENT)


def test_the_name_is_the_same_for_the_same(tmp_path):
    assert unit_key(RULES, 1, AGENT) == unit_key(replace(RULES), 1, replace(AGENT, params=dict(AGENT.params)))


@pytest.mark.parametrize("named", ["weights.npz", ""])
def test_changed_weights_and_changed_code_give_other_names(tmp_path, monkeypatch, named):
    weights = tmp_path / "weights.npz"
    agent = AgentSpec(GREEDY, {"weights": str(tmp_path / named)})
    weights.write_bytes(b"first")
    before = unit_key(RULES, 1, agent)
    weights.write_bytes(b"second")
    assert unit_key(RULES, 1, agent) != before

    monkeypatch.syspath_prepend(tmp_path)
    source = tmp_path / "agent_in_a_file.py"
    source.write_text("class Agent: ...\n")
    first = code_version.__wrapped__("agent_in_a_file.Agent")
    source.write_text("class Agent: name = 1\n")
    assert code_version.__wrapped__("agent_in_a_file.Agent") != first


def test_versions_of_libraries_and_our_own_code():
    assert code_version(GREEDY) == "scml 0.8.4"
    assert code_version("scml_agents.scml2024.standard.team_penguin.PenguinAgent").startswith("scml_agents ")
    ours = [code_version.__wrapped__(f"litaagent_std.agents.hrl.{name}") for name in ("LitaAgentHRL", "Another")]
    assert ours[0] == ours[1]


def test_a_unit_comes_back_and_a_damaged_file_counts_as_none(tmp_path):
    store = UnitStore(tmp_path / "units")
    key = unit_key(RULES, 1, AGENT)
    assert store.get(key) is None
    store.put(key, {"score": 1.25})
    assert UnitStore(tmp_path / "units").get(key) == {"score": 1.25}
    [file] = store.folder.iterdir()
    file.write_text('{"score": 1.')
    assert store.get(key) is None


def test_our_agents_code_is_what_it_imports_and_nothing_else(tmp_path, monkeypatch):
    from litaagent_std.arena import units

    package = tmp_path / "litaagent_std"
    files = {"hrl_xf/agent.py": "from litaagent_std.policy import brain", "policy/__init__.py": ""}
    files |= {"policy/brain.py": "from .memory import Memory", "policy/memory.py": "import json"}
    files |= {"hrl_xf/training.py": "x = 1", "arena/units.py": ""}
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    monkeypatch.setattr(units, "__file__", str(package / "arena" / "units.py"))
    found = {str(file.relative_to(package)) for file in units._sources("litaagent_std.agents.hrl")}
    assert found == {"hrl_xf/agent.py", "policy/__init__.py", "policy/brain.py", "policy/memory.py"}
    before = code_version.__wrapped__("litaagent_std.agents.hrl.Agent")
    (package / "hrl_xf" / "training.py").write_text("x = 2")
    assert code_version.__wrapped__("litaagent_std.agents.hrl.Agent") == before
    (package / "policy" / "memory.py").write_text("import math")
    assert code_version.__wrapped__("litaagent_std.agents.hrl.Agent") != before


def test_a_log_of_units_survives_a_line_that_was_cut_off(tmp_path):
    path = tmp_path / "units.jsonl"
    with UnitLog(path) as log:
        log.put("a" * 64, {"score": 1.25})
        log.put("b" * 64, {"score": 2.5})
    path.write_bytes(path.read_bytes()[:-4])
    with UnitLog(path) as log:
        assert (log.get("a" * 64), log.get("b" * 64), len(log)) == ({"score": 1.25}, None, 1)
        log.put("c" * 64, {"score": 3.0})
    with UnitLog(path) as log:
        assert log.get("c" * 64) == {"score": 3.0}
