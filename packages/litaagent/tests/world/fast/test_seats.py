"""What a seat of the fast engine does not host."""

import pytest

from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.fast.seats import UnsupportedAgentError
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import AgentSpec, official_setup

OWN = {
    "MakesNegotiators": "make_negotiator",
    "CreatesNegotiators": "create_negotiator",
    "ChoosesNegotiations": "before_join",
}


def _setup(kind):
    setup = official_setup(5, n_days=3, n_levels=2)
    return setup.with_agents({1: AgentSpec(f"probe_agents.{kind}")})


@pytest.mark.parametrize("kind", OWN)
def test_agents_with_their_own_negotiators_are_refused(kind, probe_agents):
    with pytest.raises(UnsupportedAgentError) as raised:
        FastWorld(_setup(kind))
    for said in (f"probe_agents.{kind}", "seat 1", OWN[kind], 'engine="scml"'):
        assert said in str(raised.value)


def test_scml_itself_hosts_them(probe_agents):
    assert run_world(_setup("CreatesNegotiators"), engine="scml").days == 3


def test_a_method_set_on_the_agent_itself_counts(probe_agents):
    setup = official_setup(5, n_days=3, n_levels=2)
    agents = [seat.agent for seat in FastWorld(setup).seats]
    agents[0].after_join = lambda *args, **kwargs: None
    with pytest.raises(UnsupportedAgentError, match="after_join"):
        FastWorld(setup, agents=agents)
