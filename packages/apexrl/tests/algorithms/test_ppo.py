import dataclasses
import logging

import pytest
import torch

from apexrl.agent.on_policy_runner import OnPolicyRunner
from apexrl.algorithms.losses import ReplayMismatchError
from apexrl.algorithms.ppo import PPO, PPOConfig
from apexrl.configuration import from_mapping
from apexrl.models import GRUActor, GRUCritic, GRUDiscreteActor, MLPActor, MLPCritic
from apexrl.runs.errors import ConfigurationError

SMALL = {"num_steps": 16, "minibatch_size": 16, "num_epochs": 3, "learning_rate": 3e-3}


def runner_for(env, cfg=None, **options):
    return OnPolicyRunner(env, cfg=cfg or PPOConfig(**SMALL), save_interval=0, show_progress=False, **options)


def train(env, iterations=3, **fields):
    """The last update's statistics and the agent, after a few iterations."""
    runner, seen = runner_for(env, PPOConfig(**(SMALL | fields))), []
    runner.add_callback("post_update", lambda _, stats: seen.append(stats))
    runner.learn(num_iterations=iterations)
    return seen, runner.agent


def test_recomputed_log_probabilities_equal_the_stored_ones(make_env):
    for name, networks in (
        ("CartPole-v1", {}),
        ("Pendulum-v1", {}),
        ("CartPole-v1", {"actor_class": GRUDiscreteActor, "critic_class": GRUCritic}),
        ("Pendulum-v1", {"actor_class": GRUActor, "critic_class": MLPCritic}),
    ):
        seen = []
        runner = runner_for(make_env(name), PPOConfig(**SMALL, normalize_observations=True), **networks)
        runner.add_callback("post_update", lambda _, stats, seen=seen: seen.append(stats["train/replay_error"]))
        runner.learn(num_iterations=4)
        assert max(seen) <= 1e-5, (name, networks, seen)


def test_replay_error_in_float64_is_at_rounding_level(make_env):
    runner, seen = runner_for(make_env("Pendulum-v1"), PPOConfig(**SMALL, normalize_values=True)), []
    runner.agent.policy.double()
    runner.add_callback("post_update", lambda _, stats: seen.append(stats["train/replay_error"]))
    runner.learn(num_iterations=3)
    assert runner.storage.steps["log_probs"].dtype is torch.float64
    assert max(seen) <= 1e-10


def test_an_environment_that_returns_its_own_buffer_cannot_spoil_the_ratio(scripted_env):
    env = scripted_env(aliased=True)
    runner = runner_for(env)
    runner.collect_rollout()
    stored = runner.storage.steps["observations"][:, 0, 2]
    assert stored.tolist() == list(range(16))  # each step's own observation, not its successor's
    assert runner.agent.update(runner.storage)["train/replay_error"] <= 1e-5


def test_audit_refuses_a_rollout_that_the_policy_did_not_make(make_env):
    runner = runner_for(make_env())
    runner.collect_rollout()
    runner.storage.steps["observations"].copy_(runner.storage.steps["observations"].roll(1, 0))
    with pytest.raises(ReplayMismatchError, match=r"actor: .*tolerance of 0\.0001"):
        runner.agent.update(runner.storage)


def test_audit_warns_from_a_tenth_of_the_tolerance(make_env, caplog):
    runner = runner_for(make_env())
    runner.collect_rollout()
    runner.storage.steps["log_probs"] += 5e-5
    with caplog.at_level(logging.WARNING):
        stats = runner.agent.update(runner.storage)
    assert "differ from the stored ones" in caplog.text
    assert 4e-5 < stats["train/replay_error"] < 6e-5


def test_the_same_seed_gives_the_same_parameters_and_another_seed_others(make_env, fingerprint):
    digests = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed * 17 + len(digests))  # the global stream must not matter
        digests.append(fingerprint(train(make_env(), seed=seed)[1].policy))
    assert digests[0] == digests[1] != digests[2]


def test_seeds_reach_the_environment(scripted_env):
    env = scripted_env()
    runner_for(env).collect_rollout()
    assert env.seeds[0] is not None


# Each value differs from the default used in the comparison run, so a field that does nothing fails the test.
CHANGES = {
    "num_steps": 32,
    "num_epochs": 4,
    "minibatch_size": 8,
    "learning_rate": 1e-3,
    "schedule": "linear",
    "gamma": 0.5,
    "gae_lambda": 0.5,
    "clip_range": 0.01,
    "clip_range_vf": 0.01,
    "vf_coef": 0.1,
    "ent_coef": 0.1,
    "max_grad_norm": 1e-3,
    "target_kl": 1e-9,
    "huber_delta": 0.01,
    "normalize_advantages": False,
    "normalize_observations": True,
    "normalize_values": True,
    "adam_epsilon": 1e-2,
    "seed": 9,
}
NEED_CONTEXT = {"desired_kl", "learning_rate_range", "sequence_length", "replay_tolerance"}


@pytest.mark.parametrize("field", CHANGES)
def test_every_field_changes_what_is_learned(field, make_env, fingerprint):
    plain = fingerprint(train(make_env())[1].policy.actor)
    critic = fingerprint(train(make_env())[1].policy.critic)
    changed = train(make_env(), **{field: CHANGES[field]})[1].policy
    assert (fingerprint(changed.actor), fingerprint(changed.critic)) != (plain, critic)


def test_the_list_of_fields_is_complete():
    assert {field.name for field in dataclasses.fields(PPOConfig)} == CHANGES.keys() | NEED_CONTEXT


def test_adaptive_schedule_really_follows_kl(make_env):
    def last_rate(**fields):
        return train(make_env(), iterations=6, schedule="adaptive", **fields)[1].learning_rate

    assert last_rate(desired_kl=1e-7) < 3e-3  # every update moves too far: shorter steps
    assert last_rate(desired_kl=10.0) > 3e-3  # no update moves far enough: longer steps
    assert last_rate(desired_kl=10.0, learning_rate_range=(1e-5, 3.5e-3)) == 3.5e-3
    assert last_rate(desired_kl=1e-7, learning_rate_range=(2.9e-3, 1e-2)) == 2.9e-3


def test_linear_schedule_ends_at_zero_and_the_optimiser_knows(make_env):
    seen, agent = train(make_env(), iterations=4, schedule="linear")
    rates = [stats["train/learning_rate"] for stats in seen]
    assert rates == pytest.approx([3e-3 * (1 - k / 4) for k in range(4)])
    assert agent.optimizer.param_groups[0]["lr"] == 0.0


def test_target_kl_ends_an_update_early(make_env):
    stats = train(make_env(), target_kl=1e-6)[0][-1]
    free = train(make_env())[0][-1]
    assert stats["train/stopped_early"] == 1.0
    assert stats["train/num_gradient_steps"] < free["train/num_gradient_steps"] == 3 * 4
    assert free["train/stopped_early"] == 0.0


def test_sequence_length_matters_for_recurrent_policies_and_must_divide_the_rollout(make_env, fingerprint):
    digests = []
    for length in (4, 8):
        cfg = PPOConfig(**SMALL, sequence_length=length)
        runner = runner_for(make_env(), cfg, actor_class=GRUDiscreteActor, critic_class=GRUCritic)
        runner.learn(num_iterations=2)
        digests.append(fingerprint(runner.agent.policy))
    assert digests[0] != digests[1]
    with pytest.raises(ValueError, match="num_steps=16 is not a multiple of sequence_length=5"):
        PPO(make_env(), PPOConfig(**SMALL, sequence_length=5), GRUDiscreteActor, GRUCritic)


def test_normalisers_move_only_at_the_barrier(make_env):
    runner = runner_for(make_env(), PPOConfig(**SMALL, normalize_observations=True, normalize_values=True))
    statistics = runner.agent.policy.observation_normalizer.moments
    runner.collect_rollout()
    assert statistics.count.item() == 0  # collecting does not move it
    runner.agent.update(runner.storage)
    assert statistics.count.item() == 16 * 4  # the update does, once, with every sample
    runner.eval(4)
    assert statistics.count.item() == 16 * 4  # evaluation does not


def test_value_normalisation_brings_large_returns_to_unit_scale(make_env):
    _, agent = train(make_env("Pendulum-v1"), normalize_values=True)
    assert agent.policy.value_normalizer.mean.item() < -10
    raw = agent.policy.from_rewards(torch.tensor([agent.policy.value_normalizer.mean.item()]))
    assert raw.abs().item() < 1e-4


def test_unknown_fields_and_bad_values_are_refused():
    with pytest.raises(ConfigurationError, match="torch_compile"):
        from_mapping(PPOConfig, {"torch_compile": True})
    with pytest.raises(ValueError, match="gamma"):
        PPOConfig(gamma=1.5)
    with pytest.raises(ValueError, match="learning_rate_range"):
        PPOConfig(learning_rate_range=(1e-2, 1e-5))


def test_asking_for_cuda_without_one_falls_back_with_a_warning(make_env, caplog, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with caplog.at_level(logging.WARNING):
        agent = PPO(make_env("Pendulum-v1"), actor_class=MLPActor, critic_class=MLPCritic, device=torch.device("cuda"))
    assert agent.device.type == "cpu"
    assert "falling back to the CPU" in caplog.text


def test_state_round_trip_goes_on_identically(make_env, fingerprint):
    runner, other = runner_for(make_env()), runner_for(make_env())
    runner.learn(num_iterations=2)
    other.agent.load_state_dict(runner.agent.state_dict())
    runner.collect_rollout()
    for agent in (runner.agent, other.agent):
        agent.update(runner.storage)
    assert fingerprint(runner.agent.policy) == fingerprint(other.agent.policy)
