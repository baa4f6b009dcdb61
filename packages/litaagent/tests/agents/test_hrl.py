import shutil
from dataclasses import replace

import pytest

from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.hrl_xf.l4_coordinator import ThreadCoordinator
from litaagent_std.hrl_xf.training.export import export_layer
from litaagent_std.policy.digest import l1_digest
from litaagent_std.policy.features import features_digest
from litaagent_std.policy.layers import Action
from litaagent_std.policy.memory import Regime
from litaagent_std.policy.observation import observe_calendar
from litaagent_std.policy.partners.types import SHIPPED
from litaagent_std.world.events import WorldObserver
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.scml.engine import make_scml_world
from litaagent_std.world.setup import AgentSpec, official_setup

PATH = "litaagent_std.agents.hrl.LitaAgentHRL"


class Listener(WorldObserver):
    def __init__(self):
        self.errors, self.openers, self.shortfall, self.settled = [], {}, {}, {}

    def on_error(self, event):
        self.errors.append(event)

    def on_negotiation_start(self, negotiation):
        self.openers.setdefault(negotiation.caller, True)
        self.openers.setdefault(negotiation.partner, False)

    def on_settlement(self, event):
        self.shortfall[event.agent] = self.shortfall.get(event.agent, 0) + event.shortfall_quantity
        self.settled.setdefault(event.agent, []).append(event)


def setup_with_ours(seed=3, n_days=6, n_levels=3, **params):
    """One of ours at every level among default agents, and their seats."""
    setup = official_setup(seed, n_days=n_days, n_levels=n_levels)
    first = {}
    for seat, factory in enumerate(setup.factories):
        first.setdefault(factory.level, seat)
    agents = {seat: AgentSpec(PATH, params, competitor=True) for seat in first.values()}
    return setup.with_agents(agents), list(agents)


def world(inventory="as_shipped", **settings):
    """A world of `setup_with_ours`, with its agents of ours and their listener."""
    setup, seats = setup_with_ours(**settings)
    listener = Listener()
    made = FastWorld(setup, [listener], inventory=inventory)
    return made, [made.seats[seat].agent for seat in seats], listener


@pytest.mark.parametrize("l3", ["baseline", "model", "types"])
@pytest.mark.parametrize("l4", ["greedy", "joint"])
def test_every_version_plays_at_every_level_without_an_error(l3, l4):
    made, agents, listener = world(l3=l3, l4=l4)
    made.run()
    assert listener.errors == []
    assert all(isinstance(agent, LitaAgentHRL) for agent in agents)
    assert all(agent.brain.obs.day == 5 for agent in agents)


def test_the_agent_knows_whether_it_opens():
    made, agents, listener = world(n_days=4, keep_log=True)
    made.run()
    for agent in agents:
        proposes_first = any(record.received is None for record in agent.brain.log)
        assert proposes_first == listener.openers[agent.id]


def test_without_risk_a_world_of_default_agents_causes_no_shortfall_by_sales():
    made, agents, listener = world(n_days=10, parameters={"risk_budget": 0.0})
    made.run()
    for agent in agents[:-1]:  # the last level's sales are forced on it
        assert listener.shortfall.get(agent.id, 0) == 0


@pytest.mark.parametrize(("inventory", "regime"), [("as_shipped", Regime.PERSISTENT), ("depleting", Regime.DEPLETING)])
def test_the_inventory_regime_is_found_out(inventory, regime):
    made, agents, listener = world(n_days=12, inventory=inventory)
    made.run()
    assert listener.errors == []
    assert all(agent.brain.memory.regime is regime and agent.brain.memory.regime_known for agent in agents)


def test_input_is_bought_anew_only_where_production_consumes_it():
    late = {}
    for inventory in ("as_shipped", "depleting"):
        made, agents, listener = world(n_days=20, inventory=inventory)
        made.run()
        days = [day for day in listener.settled[agents[1].id] if day.day >= 10]
        late[inventory] = sum(day.input_quantity for day in days), sum(day.produced for day in days)
    bought, produced = late["as_shipped"]
    assert produced > 0
    assert bought < 0.2 * produced, "a stock that persists feeds the lines without new purchases"
    bought, produced = late["depleting"]
    assert produced > 0
    assert bought > 0.3 * produced, "what is produced is bought, or was in stock"


def test_it_plays_in_scmls_own_engine():
    setup = official_setup(5, [PATH], n_days=4, n_levels=2, n_competitors=2)
    listener = Listener()
    made = make_scml_world(setup, [listener])
    made.run()
    assert listener.errors == []


@pytest.mark.parametrize("make_world", [FastWorld, make_scml_world])
def test_in_every_round_the_calendar_is_the_one_of_that_moment(make_world, monkeypatch):
    remembered, compared = LitaAgentHRL._now, []

    def watched(agent):
        compared.append((remembered(agent), observe_calendar(agent.awi)))
        return compared[-1][0]

    monkeypatch.setattr(LitaAgentHRL, "_now", watched)
    make_world(setup_with_ours()[0], []).run()
    assert all(known == now for known, now in compared)
    assert len({now for _, now in compared}) > 8, "agreements were among the rounds"


def test_parameters_come_as_plain_data_and_unknown_ones_are_refused():
    assert LitaAgentHRL(parameters={"hold": 0.5}).brain.all_parameters.hold == 0.5
    with pytest.raises(ValueError, match="unknown parameters"):
        LitaAgentHRL(parameters={"hodl": 0.5})


@pytest.mark.parametrize("name", ["l3", "l4"])
def test_a_learned_layer_without_weights_is_refused_at_once(name):
    with pytest.raises(ValueError, match=f"{name} shall be learned, but there are no weights"):
        LitaAgentHRL(**{name: "learned"})


@pytest.mark.parametrize("name", ["l2", "l3", "l4"])
def test_a_misspelt_version_of_a_layer_is_refused(name):
    with pytest.raises(ValueError, match=f"{name}='learnd' does not exist"):
        LitaAgentHRL(**{name: "learnd"})


def test_weights_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match="there are no weights"):
        LitaAgentHRL(l3="model", weights="somewhere.npz")


class Refuses:
    """An L3 that ends every thread."""

    def decide(self, situation, alpha):
        return {thread.partner: Action("end") for thread in situation.threads}


def test_a_layer_of_ones_own_plays_in_a_world():
    made, agents, listener = world(l3="learned", decision_layer=Refuses(), keep_log=True)
    made.run()
    assert listener.errors == []
    kinds = {record.decision.kind for agent in agents for record in agent.brain.log}
    assert kinds == {"end"}


def test_the_agent_is_importable_from_the_packages_of_training():
    from litaagent_std.hrl_x import agent as residual_agent
    from litaagent_std.hrl_xf import agent as hierarchical_agent
    from litaagent_std.policy.observation import Agenda, Offer

    assert residual_agent.LitaAgentHRL is hierarchical_agent.LitaAgentHRL is LitaAgentHRL
    moved = residual_agent.residual(Offer(5, 3, 10), (4.0, -9.0, 2.6))
    assert residual_agent.clip_offer(moved, Agenda(1, 8, 2, 9, 8, 12), most=7) == Offer(7, 2, 12)


def test_types_come_from_the_package_or_from_weights(tmp_path):
    shutil.copyfile(SHIPPED, tmp_path / "partner.npz")
    for weights in (None, tmp_path, SHIPPED):
        assert LitaAgentHRL(l3="types", weights=weights).brain.layers.l3 == "types"
    export_layer(
        ThreadCoordinator(), tmp_path / "l4.npz", {"features_digest": features_digest(), "l1_digest": l1_digest()}
    )
    assert LitaAgentHRL(l3="types", l4="learned", weights=tmp_path).brain.layers.learned == ("l4",)
    assert LitaAgentHRL(weights=tmp_path / "l4.npz").brain.layers.learned == ("l4",)  # what the weights hold
    with pytest.raises(ValueError, match="would not be used"):
        LitaAgentHRL(l3="types", l4="joint", weights=tmp_path / "l4.npz")
    with pytest.raises(ValueError, match="would not be used"):
        LitaAgentHRL(l3="model", weights=SHIPPED)


def test_urgency_is_a_setting_of_a_level():
    parameters = {"urgency_high": 0.0, "overrides": {"first": {"urgency_high": 1.0}}}
    made, agents, listener = world(n_days=8, l2="heuristic", l3="types", keep_log=True, parameters=parameters)
    made.run()
    assert listener.errors == []
    assert any(record.urgency > 0 for record in agents[0].brain.log)
    assert all(record.urgency == 0 for agent in agents[1:] for record in agent.brain.log)


def test_the_packages_l2_plays_at_the_middle_level_unless_there_is_another():
    assert LitaAgentHRL().brain.layers.l2 == "learned"
    assert LitaAgentHRL(l2="heuristic").brain.layers.l2 == "heuristic"
    assert LitaAgentHRL(weights=SHIPPED).brain.layers.l2 == "learned"  # weights of types alone
    played, said = {}, {}
    for name, params in (("default", {}), ("heuristic", {"l2": "heuristic"})):
        setup = replace(official_setup(3, n_days=8, n_levels=3), neutral_names=True)
        seats = {factory.level: seat for seat, factory in enumerate(setup.factories)}
        for level, seat in seats.items():  # one seat of ours in each world
            made = FastWorld(setup.with_agents({seat: AgentSpec(PATH, params)}), defaults="native")
            made.run()
            played[name, level] = made.scores()
            said[name, level] = made.seats[seat].agent.brain.playing.l2
    assert [said["default", level] for level in range(3)] == ["heuristic", "learned", "heuristic"]
    assert [said["heuristic", level] for level in range(3)] == ["heuristic"] * 3
    assert [played["default", level] == played["heuristic", level] for level in range(3)] == [True, False, True]
