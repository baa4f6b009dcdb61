"""Learned layers in the league: weights from a folder, each layer alone and all together."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from litaagent_std.hrl_xf.acceptance import AcceptanceModel
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO
from litaagent_std.hrl_xf.l3_executor import TemporalDecisionTransformer
from litaagent_std.hrl_xf.l4_coordinator import ThreadCoordinator
from litaagent_std.hrl_xf.training.export import export_layer
from litaagent_std.policy.digest import l1_digest
from litaagent_std.policy.features import features_digest
from litaagent_std.world.events import WorldObserver
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.setup import AgentSpec, official_setup

PATH = "litaagent_std.agents.hrl.LitaAgentHRL"
HEURISTIC = {"l2": "heuristic", "l3": "types", "l4": "joint"}
META = {"horizon": 10, "features_digest": features_digest(), "l1_digest": l1_digest()}


class Errors(WorldObserver):
    def __init__(self):
        self.events = []

    def on_error(self, event):
        self.events.append(event)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    torch.manual_seed(4)
    for model in (
        HorizonManagerPPO(40, 10, dim=16),
        TemporalDecisionTransformer(40, 10, dim=16, layers=1),
        AcceptanceModel(40, 10, dim=16),
        ThreadCoordinator(dim=16, layers=1),
    ):
        export_layer(shaken(model), folder / f"{model.kind}.npz", META)
    return folder


def shaken(model):
    """Give all parameters sizes as training does: a new network decides as the heuristic."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))
    return model


def scores(params, seed=3):
    setup = official_setup(seed, n_days=6, n_levels=3)
    first = {}
    for seat, factory in enumerate(setup.factories):
        first.setdefault(factory.level, seat)
    setup = setup.with_agents({seat: AgentSpec(PATH, params, competitor=True) for seat in first.values()})
    world = FastWorld(setup, defaults="native")
    world.run()
    return world.scores()


def test_new_networks_of_all_layers_play_exactly_as_the_heuristic_agent(tmp_path, weights):
    for model in (HorizonManagerPPO(40, 10), TemporalDecisionTransformer(40, 10), ThreadCoordinator()):
        export_layer(model, tmp_path / f"{model.kind}.npz", META)
    heuristic = scores({"l2": "heuristic"})
    assert scores({"weights": str(tmp_path)}) == heuristic
    assert scores({"weights": str(weights)}) != heuristic
    for name in ("l2.npz", "l3.npz", "l4.npz"):
        with np.load(weights / name) as file:
            arrays = {key: file[key] for key in file.files}
        meta = json.loads(str(arrays.pop("meta"))) | {"levels": []}
        np.savez(tmp_path / name, meta=np.array(json.dumps(meta)), **arrays)
    assert scores({"weights": str(tmp_path)}) == heuristic  # trained for no level at all


def play(weights, **layers):
    setup = official_setup(3, n_days=4, n_levels=2)
    first = {}
    for seat, factory in enumerate(setup.factories):
        first.setdefault(factory.level, seat)
    params = {"weights": str(weights), "keep_log": True, **layers}
    setup = setup.with_agents({seat: AgentSpec(PATH, params, competitor=True) for seat in first.values()})
    errors = Errors()
    world = FastWorld(setup, [errors])
    world.run()
    return errors.events, [world.seats[seat].agent.brain for seat in first.values()]


@pytest.mark.parametrize("layers", [("l2",), ("l3",), ("l4",), ("l2", "l3", "l4")], ids="+".join)
def test_learned_layers_play_without_an_error(layers, weights):
    errors, brains = play(weights, **(HEURISTIC | dict.fromkeys(layers, "learned")))
    assert errors == []
    for brain in brains:
        assert len(brain.log) >= 20
        assert any(record.decision.kind == "reject" for record in brain.log)


def test_goals_of_the_network_reach_the_plan(weights):
    _, brains = play(weights, l2="learned", l3="types", l4="joint")
    seller = brains[0]
    goals = {record.goals.q_sell for record in seller.log}
    _, rules = play(weights, l2="heuristic", l3="types", l4="learned")
    assert goals != {record.goals.q_sell for record in rules[0].log}
    assert all(0 <= q <= seller.obs.n_lines for record in seller.log for q in record.goals.q_sell)
