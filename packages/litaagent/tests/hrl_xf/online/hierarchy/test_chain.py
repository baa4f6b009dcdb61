"""Offline training, online training and play are one chain of the same networks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from litaagent_std.hrl_xf.data_pipeline import load_tournament_data
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO
from litaagent_std.hrl_xf.l3_executor import TemporalDecisionTransformer
from litaagent_std.hrl_xf.l4_coordinator import ThreadCoordinator
from litaagent_std.hrl_xf.online.command import run_training
from litaagent_std.hrl_xf.online.config import GateConfig, LayerConfig, OnlineConfig, PoolConfig
from litaagent_std.hrl_xf.online.hierarchy.play import play_worlds
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.jobs import Job
from litaagent_std.hrl_xf.online.methods.gradient import GradientMethod
from litaagent_std.hrl_xf.online.methods.networks import untrained
from litaagent_std.hrl_xf.rewards import DayWeights
from litaagent_std.hrl_xf.training import HRLXFTrainer, TrainConfig
from litaagent_std.hrl_xf.training.export import export_layer
from litaagent_std.policy.digest import l1_digest
from litaagent_std.policy.features import features_digest
from litaagent_std.policy.networks.weights import read_weights
from litaagent_std.tournament.config import TournamentConfig
from litaagent_std.tournament.run import run_tournament
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.setup import AgentSpec, official_setup

META = {"horizon": 10, "features_digest": features_digest(), "l1_digest": l1_digest()}
PATH = "litaagent_std.agents.hrl.LitaAgentHRL"


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
    """A run of offline training on a small tournament."""
    folder = tmp_path_factory.mktemp("chain")
    run_tournament(
        TournamentConfig(
            competitors=("GreedyStd", "RandomStd"),
            configs=3,
            runs=1,
            steps=4,
            levels=2,
            executor="inline",
            quiet=True,
            csv=False,
            output_dir=folder / "tournament",
        )
    )
    macro, micro = load_tournament_data(folder / "tournament", agent_name="Greedy", num_workers=1)
    cfg = TrainConfig(
        l2_epochs=2, l3_epochs=1, l4_epochs=1, output_dir=folder / "run", backfill_folds=2, horizon=10, l4_max_rounds=50
    )
    torch.manual_seed(0)
    l3 = TemporalDecisionTransformer(10, dim=8, layers=1)
    trainer = HRLXFTrainer(HorizonManagerPPO(10, dim=16), l3, ThreadCoordinator(dim=8, layers=1), cfg)
    trainer.train_phase0_bc(macro, micro)
    trainer.train_l4_distill(macro, micro)
    trainer.save_all("bc")
    return folder / "run"


def test_what_offline_training_wrote_is_trained_on_in_the_league_and_played(offline, tmp_path):
    small = LayerConfig(learning_rate=1e-3, minibatch=64, epochs=1)
    cfg = OnlineConfig(
        layers=("l2", "l3", "l4"),
        updates=1,
        worlds=1,
        days=(4,),
        levels=2,
        warm=offline,
        pool=PoolConfig(slots=0),
        gate=GateConfig(every=0),
        l2=small,
        l3=small,
        l4=small,
        self_every=0,
        executor="inline",
        quiet=True,
        output_dir=tmp_path / "online",
    )
    trainer, status = run_training(cfg)
    assert status == 0
    assert isinstance(trainer.method, GradientMethod)
    before, after = read_weights(offline / "weights"), read_weights(tmp_path / "online")
    assert set(after) == {"l2", "l3", "l4"}
    for layer, weights in after.items():
        own = before[layer]
        # the same network with the same parameters, moved by a few steps
        assert weights.meta["sizes"] == own.meta["sizes"]
        assert {name: array.shape for name, array in weights.arrays.items()} == {
            name: array.shape for name, array in own.arrays.items()
        }
        moved = [np.abs(weights.arrays[name] - own.arrays[name]).max() for name in own.arrays if name != "log_std"]
        assert 0.0 < max(moved) < 0.1
    setup = official_setup(3, n_days=4, n_levels=2)
    spec = AgentSpec(PATH, {"weights": str(tmp_path / "online")}, competitor=True)
    world = FastWorld(setup.with_agents({0: spec}), defaults="native")
    world.run()
    assert world.seats[0].agent.brain.layers.learned == ("l2", "l3", "l4")
    # and the chain goes on from there
    again = Hierarchy.load(tmp_path / "online")
    np.testing.assert_array_equal(again.nets["l2"].arrays["head.weight"], after["l2"].arrays["head.weight"])


def test_new_networks_without_exploration_play_as_the_heuristic_agent(patient_market):
    world = patient_market.patient_market()
    new = untrained(("l2", "l3", "l4"), 0, {"l2": 8, "l3": 8, "l4": 8})
    played = [play_worlds([world], policies, DayWeights(), [None])[0] for policies in (new, Hierarchy())]
    assert played[0].seats[0].score == played[1].seats[0].score


def test_from_an_offline_start_ppo_finds_the_optimum_of_a_market_where_it_is_known(patient_market, tmp_path):
    """The start is the file that offline training exports; the reference is the heuristic agent."""
    torch.manual_seed(0)
    export_layer(HorizonManagerPPO(10, dim=32), tmp_path / "l2.npz", META)
    weights = DayWeights(risk=0.0, liquidity=0.0)
    layer = LayerConfig(learning_rate=3e-3, log_std=0.0, epochs=8, minibatch=64, target_kl=0.1, warm_kl=50.0)
    method = GradientMethod(OnlineConfig(day_rewards=weights, l2=layer), Hierarchy.load(tmp_path))
    world, best = patient_market.patient_market(), patient_market.best_score()
    heuristic = play_worlds([world], Hierarchy(), weights, [None])[0]
    for update in range(10):
        policies = method.policies()
        played = play_worlds([world] * 8, policies, weights, [100 * update + k for k in range(8)])
        jobs = [Job(None, policies, 0)] * 8 + [Job(None, Hierarchy(version=update), None)]
        method.update(jobs, [*played, heuristic])
    trained = play_worlds([world], method.policies(), weights, [None])[0]
    assert (heuristic.seats[0].score - 1) / (best - 1) < 0.8  # there was something to learn
    assert (trained.seats[0].score - 1) / (best - 1) >= 0.95
