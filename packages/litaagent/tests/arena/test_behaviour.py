"""Digests of what agents do: another parameter or layer changes them, another path does not."""

import importlib
import subprocess
import sys
import time

import pytest

from apexrl.runs.errors import ConfigurationError
from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.arena import behaviour
from litaagent_std.arena.behaviour import behaviour_digest, play_situations
from litaagent_std.policy.brain import Brain
from litaagent_std.world.setup import AgentSpec

LITA = AgentSpec("litaagent_std.agents.hrl.LitaAgentHRL")


@pytest.fixture(scope="module")
def lita():
    return behaviour_digest(LITA)


@pytest.mark.parametrize("params", [{"l4": "greedy"}, {"parameters": {"hold": 0.5}}, {"l3": "baseline"}])
def test_another_parameter_is_another_behaviour(lita, params):
    assert behaviour_digest(AgentSpec(LITA.path, params)) != lita


def test_parameters_that_change_nothing_leave_the_behaviour(lita):
    assert behaviour_digest(AgentSpec(LITA.path, {"keep_log": True})) == lita


def test_a_changed_layer_is_another_behaviour(lita, monkeypatch):
    respond = Brain.respond

    def answer_nobody_on_day_three(self, threads):
        return respond(self, threads[:1] if self.obs.day == 3 else threads) if threads else {}

    monkeypatch.setattr(Brain, "respond", answer_nobody_on_day_three)
    assert play_situations(LITA) != lita


def test_a_module_that_moved_leaves_the_behaviour(lita, monkeypatch, tmp_path):
    (tmp_path / "moved_elsewhere.py").write_text(
        "from litaagent_std.agents.hrl import LitaAgentHRL\n\nclass LitaAgentHRL(LitaAgentHRL): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    moved = importlib.import_module("moved_elsewhere")
    assert issubclass(moved.LitaAgentHRL, LitaAgentHRL)
    assert play_situations(AgentSpec("moved_elsewhere.LitaAgentHRL")) == lita


def test_it_is_the_same_in_a_process_with_other_hashing(lita):
    code = "from litaagent_std.arena.behaviour import *; from litaagent_std.world.setup import AgentSpec;"
    code += f"print(behaviour_digest(AgentSpec({LITA.path!r})))"
    environment = {"PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == lita


def test_an_agent_that_may_depend_on_hashing_plays_with_fixed_hashing(monkeypatch):
    spec = AgentSpec("litaagent_std.agents.variants_shielded.ShieldedPenguin")
    digests = []
    for fixed in (False, False):
        behaviour._digest_once.cache_clear()
        monkeypatch.setattr(behaviour, "is_fixed", lambda fixed=fixed: fixed)
        digests.append(behaviour_digest(spec))
    assert digests[0] == digests[1]


def test_an_agent_that_cannot_be_made_is_refused():
    with pytest.raises(ConfigurationError, match="does not play"):
        behaviour_digest(AgentSpec(LITA.path, {"l5": "none"}))


def test_it_costs_about_a_second():
    began = time.process_time()
    play_situations(LITA)
    assert time.process_time() - began < 6  # about 1 s on a quiet core
