import numpy as np
import pytest
import torch

from apexrl.algorithms.losses import ReplayMismatchError
from apexrl.runs.errors import ConfigurationError
from apexrl.storage.rollout import MixedVersionsError
from litaagent_std.hrl_xf.online.config import LayerConfig
from litaagent_std.hrl_xf.online.hierarchy.play import play_worlds
from litaagent_std.hrl_xf.online.hierarchy.policies import LAYERS, Hierarchy
from litaagent_std.hrl_xf.online.methods.batches import RoundRewards, day_batch, round_batch, trajectory_gae
from litaagent_std.hrl_xf.online.methods.networks import untrained
from litaagent_std.hrl_xf.online.methods.ppo import LayerLearner
from litaagent_std.hrl_xf.online.worlds import WorldPlan, draw_world, training_seed
from litaagent_std.hrl_xf.rewards import DayWeights, ReturnScales, ThreadWeights
from litaagent_std.policy.l2.residual import goal_names

NAMES = goal_names(4)
WEIGHTS = DayWeights()
START = untrained(LAYERS, 1, dict.fromkeys(LAYERS, 8))


def make_learner(layer="l2", central=True, start=START, **options):
    cfg = LayerConfig(critic_hidden=(16,), **options)
    return LayerLearner(layer, cfg, start.nets[layer], gamma=1.0, central=central, seed=1)


def play(nets, version=0, worlds=1):
    plans = [WorldPlan(seed=training_seed(2, world), days=(6,), levels=2) for world in range(worlds)]
    policies = Hierarchy(nets, version, learning=tuple(nets))
    return play_worlds([draw_world(plan) for plan in plans], policies, WEIGHTS, [5] * worlds)


@pytest.fixture(scope="module")
def rollouts():
    return play({layer: make_learner(layer).acting() for layer in LAYERS}, worlds=2)


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
    learner = make_learner(layer, central)
    batch = batch_of(layer, rollouts, central=central)
    metrics = learner.learn(batch)
    assert metrics[f"{layer}/replay_error"] <= 1e-4
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


def test_components_that_are_not_learned_stay_as_they_are_and_are_not_explored():
    own = [NAMES.index(name) for name in ("buy_price_today", "hold_far")]
    learner = make_learner(outputs=("buy_price_today", "hold_far"), learning_rate=0.01)
    batch = batch_of("l2", play({"l2": learner.acting()}))
    assert batch.actions[:, own].all()
    assert not np.delete(batch.actions, own, axis=1).any()
    assert learner.learn(batch)["l2/replay_error"] <= 1e-4
    learned = learner.acting()
    for name in ("head.bias", "head.weight", "skip.weight"):
        changed = np.abs(learned.arrays[name] - START.nets["l2"].arrays[name]).reshape(29, -1).any(1)
        assert np.flatnonzero(changed).tolist() == own
    assert np.flatnonzero(np.isfinite(learned.arrays["log_std"])).tolist() == own
    with pytest.raises(ConfigurationError, match="L2 has no output named buy_prices"):
        make_learner(outputs=("buy_prices",))


def test_a_later_run_begins_with_the_exploration_of_the_earlier_one(tmp_path):
    learner = make_learner(outputs=("hold_far",), log_std=-2.0)
    made = Hierarchy.load(Hierarchy({"l2": learner.acting()}, 3).save(tmp_path))
    more = make_learner(start=made, log_std=-1.0).acting().arrays["log_std"]
    steps = np.log([0.3] * 8 + [0.5] * 21)
    expected = np.where(np.array(NAMES) == "hold_far", steps - 2.0, steps - 1.0)
    np.testing.assert_allclose(more, expected, atol=1e-6)


def test_the_kl_penalty_towards_the_warm_start_grows_with_the_distance(rollouts):
    learner = make_learner(warm_kl=1e-6)
    before = learner.warm_weight
    learner.learn(batch_of("l2", rollouts))
    assert learner.warm_weight > before
    relaxed = make_learner(warm_kl=10.0)
    relaxed.learn(batch_of("l2", rollouts))
    assert relaxed.warm_weight < before
