import numpy as np
import pytest
import torch

from apexrl.algorithms.losses import ReplayMismatchError
from apexrl.runs.errors import ConfigurationError
from apexrl.storage.rollout import MixedVersionsError
from litaagent_std.agents.online.acting import LAYERS, NAMES, ActingNet, PolicySet
from litaagent_std.hrl_xf.online.config import LayerConfig
from litaagent_std.hrl_xf.online.methods.batches import RoundRewards, day_batch, round_batch, trajectory_gae
from litaagent_std.hrl_xf.online.methods.ppo import LayerLearner
from litaagent_std.hrl_xf.online.rollout import play_training_world, play_world, reference_of
from litaagent_std.hrl_xf.online.worlds import WorldPlan, training_seed
from litaagent_std.hrl_xf.rewards import DayWeights, ReturnScales, ThreadWeights

WEIGHTS = DayWeights()


def learners(central=True, **options):
    cfg = LayerConfig(hidden=(16,), critic_hidden=(16,), **options)
    return {layer: LayerLearner(layer, cfg, gamma=1.0, central=central, seed=1) for layer in LAYERS}


@pytest.fixture(scope="module")
def rollouts():
    made = learners()
    policies = PolicySet({layer: learner.acting() for layer, learner in made.items()}, 0)
    plans = [WorldPlan(seed=training_seed(2, world), days=(6,), levels=2) for world in range(2)]
    return [play_world(plan, policies, WEIGHTS, 5, rounds=True) for plan in plans]


def batch_of(layer, rollouts, version=0, central=True):
    if layer == "l2":
        return day_batch(rollouts, {}, WEIGHTS, ReturnScales(), version)
    round_rewards = RoundRewards({}, WEIGHTS, ThreadWeights(), ReturnScales())
    return round_batch(layer, rollouts, round_rewards, version, central=central)


def test_advantages_stop_at_the_end_of_each_trajectory():
    rewards = torch.tensor([1.0, 2.0, 10.0, 0.0, 4.0])
    values = torch.tensor([0.5, 0.5, 1.0, 2.0, 3.0])
    trajectory = torch.tensor([0, 0, 1, 2, 2])
    advantages = trajectory_gae(rewards, values, trajectory, 0.9, 0.5)
    last = [2.0 - 0.5, 10.0 - 1.0, 4.0 - 3.0]  # nothing follows
    first = [1.0 + 0.9 * 0.5 - 0.5 + 0.45 * last[0], 0.0 + 0.9 * 3.0 - 2.0 + 0.45 * last[2]]
    assert advantages.tolist() == pytest.approx([first[0], last[0], last[1], first[1], last[2]])


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("central", [True, False])
def test_the_replay_audit_holds_and_a_changed_policy_is_refused(layer, central, rollouts):
    learner = learners(central)[layer]
    batch = batch_of(layer, rollouts, central=central)
    metrics = learner.learn(batch)
    assert metrics[f"{layer}/replay_error"] <= 1e-5
    assert learner.version == 1
    with pytest.raises(MixedVersionsError, match="version 0"):
        learner.learn(batch)
    learner.version = 0
    with pytest.raises(ReplayMismatchError):
        learner.learn(batch)


def test_rows_of_other_versions_never_enter_a_batch(rollouts):
    with pytest.raises(MixedVersionsError, match="play the world again"):
        batch_of("l3", rollouts, version=3)


def test_a_thread_s_reward_stands_at_its_last_round(rollouts):
    batch = batch_of("l3", rollouts)
    ends = np.flatnonzero(np.diff(batch.trajectory, append=-1))
    assert not np.delete(batch.rewards, ends).any()
    assert batch.trajectory[-1] + 1 == sum(len(seat.rounds.day) for rollout in rollouts for seat in rollout.seats)


def test_the_first_policy_is_zero_and_a_warm_start_is_copied():
    fresh = learners()["l2"].acting()
    view = np.random.default_rng(0).normal(size=fresh.weights[0].shape[0]).astype(np.float32)
    assert not fresh.mean(view).any()
    other = ActingNet(fresh.weights, (fresh.biases[0], fresh.biases[1] + 1.0), fresh.log_std)
    cfg = LayerConfig(hidden=(16,))
    warmed = LayerLearner("l2", cfg, gamma=1.0, central=False, seed=1, warm_start=other).acting()
    np.testing.assert_array_equal(warmed.mean(view), other.mean(view))
    with pytest.raises(ValueError, match="sizes"):
        LayerLearner("l2", LayerConfig(hidden=(8,)), gamma=1.0, central=False, seed=1, warm_start=other)


def test_outputs_that_are_not_learned_stay_0_and_are_not_explored():
    cfg = LayerConfig(hidden=(16,), outputs=("buy_price_today", "hold"), learning_rate=0.01)
    learner = LayerLearner("l2", cfg, gamma=1.0, central=False, seed=1)
    own = [NAMES["l2"].index(name) for name in cfg.outputs]
    plan = WorldPlan(seed=training_seed(2, 0), days=(6,), levels=2)
    policies = PolicySet({"l2": learner.acting()}, 0)
    batch = batch_of("l2", [play_world(plan, policies, WEIGHTS, 5, rounds=False)])
    assert batch.actions[:, own].all()
    assert not np.delete(batch.actions, own, axis=1).any()
    assert learner.learn(batch)["l2/replay_error"] <= 1e-5
    learned = learner.acting()
    view = np.ones(learned.weights[0].shape[0], np.float32)
    assert np.flatnonzero(learned.mean(view)).tolist() == own
    again = LayerLearner("l2", cfg, gamma=1.0, central=False, seed=2, warm_start=learned).acting()
    np.testing.assert_array_equal(again.mean(view), learned.mean(view))
    more = LayerConfig(hidden=(16,))
    assert LayerLearner("l2", more, gamma=1.0, central=False, seed=1, warm_start=learned).acting().log_std.tolist() == [
        value if column in own else more.log_std_range[0] for column, value in enumerate(learned.log_std.tolist())
    ]
    fewer = LayerConfig(hidden=(16,), outputs=("hold",))
    with pytest.raises(ValueError, match="moves buy_price_today too"):
        LayerLearner("l2", fewer, gamma=1.0, central=False, seed=1, warm_start=learned)
    with pytest.raises(ConfigurationError, match="L2 has no output named buy_prices"):
        LayerLearner("l2", LayerConfig(outputs=("buy_prices",)), gamma=1.0, central=False, seed=1)


def test_the_kl_penalty_towards_the_warm_start_grows_with_the_distance(rollouts):
    learner = learners(warm_kl=1e-6)["l2"]
    before = learner.warm_weight
    learner.learn(batch_of("l2", rollouts))
    assert learner.warm_weight > before
    relaxed = learners(warm_kl=10.0)["l2"]
    relaxed.learn(batch_of("l2", rollouts))
    assert relaxed.warm_weight < before


def test_ppo_finds_the_optimum_of_a_market_where_it_is_known(patient_market):
    weights = DayWeights(risk=0.0, liquidity=0.0)
    cfg = LayerConfig(learning_rate=0.01, hidden=(), log_std=0.0, epochs=8, minibatch=64, target_kl=0.1, warm_kl=50.0)
    training_world, best = patient_market.patient_market(), patient_market.best_score()
    learner = LayerLearner("l2", cfg, gamma=1.0, central=False, seed=0)
    heuristic = play_training_world(training_world, PolicySet(), weights, None, rounds=False)
    reference = {training_world.setup.seed: reference_of(heuristic, weights)}
    for update in range(16):
        policies = PolicySet({"l2": learner.acting()}, learner.version)
        played = [
            play_training_world(training_world, policies, weights, 100 * update + k, rounds=False) for k in range(8)
        ]
        learner.learn(day_batch(played, reference, weights, ReturnScales(), learner.version))
    trained = play_training_world(training_world, PolicySet({"l2": learner.acting()}), weights, None, rounds=False)
    assert (heuristic.seats[0].score - 1) / (best - 1) < 0.8  # there was something to learn
    assert (trained.seats[0].score - 1) / (best - 1) >= 0.95
