"""The short form of ``make bench-isolation``: attacks from an isolated seat change nothing for anybody else."""

import pytest
from benchmarks.hostile_agents import KINDS
from benchmarks.isolation import play_hostile

from litaagent_std.world.isolated import agent as isolated_agent
from litaagent_std.world.isolated.process import missing_isolation
from litaagent_std.world.isolated.sandbox import Limits


@pytest.fixture(scope="module")
def limits():
    assert not missing_isolation(), "without namespaces these agents would attack this machine"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(isolated_agent, "_LIMITS", Limits(call_seconds=1.0, memory=600 << 20))
        yield


@pytest.fixture(scope="module")
def silent(limits):
    played = play_hostile("Silent", 3)
    assert played["n_errors"] == 0
    return played


def test_there_are_thirty_attacks():
    assert len(KINDS) >= 30


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_an_attack_changes_nothing_for_anybody_else(silent, kind):
    played = play_hostile(kind, 3)
    assert played["days"] == 5
    assert played["scores"] == silent["scores"]
    assert played["untouched"]
    assert not [text for text in played["errors"] if "could " in text]
