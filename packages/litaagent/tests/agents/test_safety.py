"""Properties over random worlds and lying opponents, audited from the world's events and not from the agent's books."""

import random

import pytest
from benchmarks.audit import Auditor, audited_path
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from negmas import ResponseType, SAOResponse
from scml.std.agents.rand import SyncRandomStdAgent

from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.policy.layers import Action
from litaagent_std.policy.observation import Offer
from litaagent_std.world.reproducible.silence import silence
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import AgentSpec, official_setup

PATH = "litaagent_std.agents.hrl.LitaAgentHRL"
QUICK = settings(max_examples=8, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate])


class Liar(SyncRandomStdAgent):
    """Offers anything, legal or not; accepts, and leaves, when it likes."""

    def first_proposals(self):
        return {name: self.lie(name) for name in self.negotiators}

    def counter_all(self, offers, states):
        return {name: self.answer(name) for name in offers}

    def answer(self, name):
        kinds = [ResponseType.ACCEPT_OFFER, ResponseType.REJECT_OFFER, ResponseType.END_NEGOTIATION]
        [kind] = random.choices(kinds, weights=[2, 7, 1])
        return SAOResponse(kind, self.lie(name) if kind == ResponseType.REJECT_OFFER else None)

    def lie(self, name):
        nmi = self.negotiators[name][0].nmi
        legal = tuple(random.randint(issue.min_value, issue.max_value) for issue in nmi.issues)
        lies = [(-3, -1, -7), (999, 999, 999), (0, 0, 0), (legal[0], legal[1], legal[2] + 0.5), None]
        return legal if random.random() < 0.85 else random.choice(lies)


class Wild:
    """An L2, L3 and L4 that want anything."""

    def goals(self, obs, calendar, limits, memory):
        from litaagent_std.policy.plan import Goals

        leads = len(calendar.sold)
        units, prices = (tuple(random.randint(-5, 60) for _ in range(leads)) for _ in range(2))
        return Goals(units, prices, units[::-1], prices[::-1], prices, random.uniform(-5, 60))

    def decide(self, situation, alpha):
        kinds = ("keep", "accept", "counter", "end")
        return {
            thread.partner: Action(random.choice(kinds), Offer(*(random.randint(-5, 60) for _ in range(3))))
            for thread in situation.threads
        }

    def weigh(self, situation):
        return {}

    def accept(self, situation, wanted):
        return frozenset(thread.partner for thread in situation.threads if random.random() < 0.5)


class WildAgent(LitaAgentHRL):
    """Our agent with layers that want anything."""

    def __init__(self, *args, **kwargs):
        wild = Wild()
        super().__init__(*args, goal_layer=wild, decision_layer=wild, coordination_layer=wild, **kwargs)


def audit(path, seed, levels, *, inventory="as_shipped", **params):
    """Plays a world with an audited agent at every level but the last among liars; returns what the auditor found."""
    setup = official_setup(seed, n_days=7, n_levels=levels)
    spec, liar = AgentSpec(audited_path(path), params), AgentSpec(f"{__name__}.Liar")
    agents, seen = {}, set()
    for seat, factory in enumerate(setup.factories):
        ours = factory.level not in seen and factory.level < levels - 1
        agents[seat] = spec if ours else liar
        seen.add(factory.level)
    risk = params.get("parameters", {}).get("risk_budget")
    covered = risk == 0.0 and inventory == "as_shipped"
    with Auditor(covered=covered) as auditor, silence():
        run_world(setup.with_agents(agents), observers=[auditor], inventory=inventory)
    assert auditor.checked > 0
    return auditor


@pytest.mark.parametrize("path", [PATH, f"{__name__}.WildAgent"], ids=["heuristic", "wild"])
@pytest.mark.parametrize("inventory", ["as_shipped", "depleting"])
@QUICK
@given(seed=st.integers(0, 10_000), levels=st.integers(2, 4))
def test_without_risk_nothing_unsafe_leaves_the_agent_and_all_is_delivered(path, inventory, seed, levels):
    parameters = {"risk_budget": 0.0, "assume_persistent": inventory == "as_shipped"}
    auditor = audit(path, seed, levels, inventory=inventory, parameters=parameters)
    assert auditor.errors == []
    assert not auditor.violations, auditor.examples
    assert auditor.oversold == 0
    assert auditor.shortfall_units == 0


@pytest.mark.parametrize("path", [PATH, f"{__name__}.WildAgent"], ids=["heuristic", "wild"])
@QUICK
@given(seed=st.integers(0, 10_000), levels=st.integers(2, 4), risk=st.floats(0, 1))
def test_hard_bounds_hold_at_every_risk(path, seed, levels, risk):
    auditor = audit(path, seed, levels, parameters={"risk_budget": risk})
    assert auditor.errors == []
    assert not auditor.violations, auditor.examples


@QUICK
@given(seed=st.integers(0, 10_000), levels=st.integers(2, 4))
def test_hard_bounds_hold_with_types_and_urgency(seed, levels):
    auditor = audit(PATH, seed, levels, l3="types", parameters={"urgency_low": 0.6, "urgency_high": 1.0})
    assert auditor.errors == []
    assert not auditor.violations, auditor.examples
