"""Names and files of finished units."""

from dataclasses import replace

import numpy as np
import pytest

from litaagent_std.arena import units
from litaagent_std.arena.behaviour import behaviour_digest
from litaagent_std.arena.units import UnitLog, UnitStore, code_version, unit_key
from litaagent_std.arena.worlds import Rules
from litaagent_std.tournament.competitors.integer_offers import integer_path
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
def test_changed_weights_give_other_keys_and_moved_ones_the_same(tmp_path, named):
    def key(folder):
        return unit_key(RULES, 1, AgentSpec(GREEDY, {"weights": str(folder / named)}))

    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    np.savez(here / "weights.npz", weight=np.arange(3.0), meta="made on Monday")
    before = key(here)
    np.savez(here / "weights.npz", weight=np.arange(3.0), meta="made on Tuesday")
    assert key(here) == before, "the arrays count"
    np.savez(here / "weights.npz", weight=np.arange(1.0, 4.0), meta="made on Tuesday")
    changed = key(here)
    assert changed != before
    here.rename(there)
    assert key(there) == changed


def test_the_code_of_a_users_class_counts_without_comments_and_path(tmp_path, monkeypatch):
    def version(source, name="agent_in_a_file"):
        (tmp_path / f"{name}.py").write_text(source)
        return units._source_digest.__wrapped__(name)

    monkeypatch.syspath_prepend(tmp_path)
    first = version("class Agent: ...\n")
    assert version("class Agent:\n    ...  # plays well\n") == first
    assert version("class Agent: ...\n", "agent_in_another_file") == first
    assert version("class Agent: name = 1\n") != first


def test_versions_of_libraries_and_of_our_agents():
    assert code_version(AgentSpec(GREEDY)) == "scml 0.8.4"
    penguin = "scml_agents.scml2024.standard.team_penguin.PenguinAgent"
    assert code_version(AgentSpec(penguin)).startswith("scml_agents ")
    assert code_version(AgentSpec(integer_path(penguin))) == code_version(AgentSpec(penguin))
    assert code_version(AGENT) == behaviour_digest(AGENT)


def test_our_code_counts_only_where_our_agent_plays(monkeypatch):
    without, ours, opponent = (
        unit_key(rules, 1, agent)
        for rules, agent in (
            (RULES, AgentSpec(GREEDY)),
            (RULES, AGENT),
            (replace(RULES, opponents=(GREEDY, AGENT.path)), AgentSpec(GREEDY)),
        )
    )
    monkeypatch.setattr(units, "behaviour_digest", lambda agent: "another behaviour")
    assert unit_key(RULES, 1, AgentSpec(GREEDY)) == without
    assert unit_key(RULES, 1, AGENT) != ours
    assert unit_key(replace(RULES, opponents=(GREEDY, AGENT.path)), 1, AgentSpec(GREEDY)) != opponent


def test_class_paths_of_ours_do_not_enter_the_key():
    former = "litaagent_std.market.integer_offers." + GREEDY.replace(".", ":")
    key = unit_key(replace(RULES, opponents=(former,)), 1, AgentSpec(GREEDY))
    assert key == unit_key(replace(RULES, opponents=(integer_path(GREEDY),)), 1, AgentSpec(GREEDY))
    assert key != unit_key(RULES, 1, AgentSpec(GREEDY)), "the integer cast counts"


def test_a_unit_comes_back_and_a_damaged_file_counts_as_none(tmp_path):
    store = UnitStore(tmp_path / "units")
    key = unit_key(RULES, 1, AGENT)
    assert store.get(key) is None
    store.put(key, {"score": 1.25})
    assert UnitStore(tmp_path / "units").get(key) == {"score": 1.25}
    [file] = store.folder.iterdir()
    file.write_text('{"score": 1.')
    assert store.get(key) is None


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
