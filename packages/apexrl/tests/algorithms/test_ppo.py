import dataclasses
import logging
import math

import numpy as np
import pytest
import torch

from apexrl.agent.on_policy_runner import OnPolicyRunner
from apexrl.algorithms.bc import BCConfig
from apexrl.algorithms.losses import ReplayMismatchError
from apexrl.algorithms.mappo import MAPPO, MAPPOConfig
from apexrl.algorithms.ppo import PPO, PPOConfig
from apexrl.algorithms.reward_scale import RewardScale
from apexrl.configuration import from_mapping
from apexrl.models import GRUActor, GRUCritic, GRUDiscreteActor, MLPActor, MLPCritic, MLPDiscreteActor
from apexrl.runs.errors import ConfigurationError, SchemaMismatchError

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
    "normalize_rewards": True,
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


@pytest.mark.parametrize("device", [torch.device("cuda"), "cuda:0", "gpu"])
def test_asking_for_cuda_without_one_falls_back_with_a_warning(make_env, caplog, monkeypatch, device):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with caplog.at_level(logging.WARNING):
        agent = PPO(make_env("Pendulum-v1"), actor_class=MLPActor, critic_class=MLPCritic, device=device)
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


def test_a_function_of_progress_is_a_schedule(make_env):
    runner, rates = runner_for(make_env(), PPOConfig(**SMALL, schedule=lambda done: 1e-3 * (1.0 - done) ** 2)), []
    runner.add_callback("post_update", lambda _, stats: rates.append(stats["train/learning_rate"]))
    runner.learn(num_iterations=4)
    assert rates == pytest.approx([1e-3, 1e-3 * 0.75**2, 1e-3 * 0.5**2, 1e-3 * 0.25**2])


@pytest.mark.parametrize(("schedule", "rate"), [(lambda done: 1e-3 - 0.01 * done, "-"), (lambda done: math.nan, "nan")])
def test_a_schedule_that_leaves_the_learning_rates_is_refused(make_env, schedule, rate):
    runner = runner_for(make_env(), PPOConfig(**SMALL, schedule=schedule))
    with pytest.raises(ConfigurationError, match=rf"schedule\(.*\) returned {rate}"):
        runner.learn(num_iterations=2)


def test_learning_further_after_a_linear_schedule_does_not_begin_at_rate_zero(make_env):
    runner, rates = runner_for(make_env(), PPOConfig(**(SMALL | {"schedule": "linear", "learning_rate": 1e-3}))), []
    runner.add_callback("post_update", lambda _, stats: rates.append(stats["train/learning_rate"]))
    runner.learn(num_iterations=2)
    runner.learn(num_iterations=2)
    assert rates == pytest.approx([1e-3, 5e-4, 5e-4, 2.5e-4])


def test_rewards_are_scaled_by_the_deviation_of_the_return():
    scale = RewardScale(gamma=0.5)
    rewards = torch.tensor([[2.0, 0.0], [4.0, 0.0], [0.0, 8.0]])
    dones = torch.tensor([[False, False], [True, False], [False, False]])
    # Returns under way: 2, 0.5·2 + 4 = 5, then a new episode: 0; and 0, 0, 8.
    deviation = torch.tensor([2.0, 5.0, 0.0, 0.0, 0.0, 8.0]).std(unbiased=False)
    torch.testing.assert_close(scale(rewards, dones, None), rewards / deviation)
    again = RewardScale(gamma=0.5)
    again.load_state_dict(scale.state_dict())
    more = torch.ones(2, 2), torch.zeros(2, 2, dtype=torch.bool), None
    assert torch.equal(again(*more), scale(*more))


def test_an_algorithm_is_one_loss_in_one_place(make_env):
    class PolicyGradient(PPO):
        name = "policy_gradient"

        def policy_loss(self, distribution, log_probs, samples):
            return -(log_probs * samples.advantages).mean()

    class NearUniform(PPO):
        name = "near_uniform"

        def penalty(self, distribution, samples):
            return -5.0 * distribution.entropy().mean()

    steps = {}
    for algorithm in (PPO, PolicyGradient, NearUniform):
        runner = OnPolicyRunner(
            make_env(), algorithm=algorithm, cfg=PPOConfig(**SMALL), save_interval=0, show_progress=False
        )
        entropies = []
        runner.add_callback("post_update", lambda _, stats, seen=entropies: seen.append(-stats["train/entropy_loss"]))
        runner.learn(num_iterations=3)
        steps[algorithm.name] = torch.cat([p.detach().flatten() for p in runner.agent.policy.parameters()])
    assert not torch.equal(steps["ppo"], steps["policy_gradient"])
    assert not torch.equal(steps["ppo"], steps["near_uniform"])


def test_a_configuration_of_another_algorithm_is_refused(make_env):
    for runner_cfg in (MAPPOConfig(), BCConfig()):
        with pytest.raises(ConfigurationError, match=f"cfg is a {type(runner_cfg).__name__}. PPO takes a PPOConfig"):
            OnPolicyRunner(make_env(), cfg=runner_cfg)
    with pytest.raises(ConfigurationError, match="MAPPO takes a MAPPOConfig"):
        MAPPO(make_env(), PPOConfig())


def test_spaces_are_enough(make_env, fingerprint):
    env = make_env()
    by_env, by_spaces = (
        PPO(env=env, cfg=PPOConfig(seed=4)),
        PPO(observation_space=env.observation_space, action_space=env.action_space, cfg=PPOConfig(seed=4)),
    )
    assert fingerprint(by_env.policy) == fingerprint(by_spaces.policy)
    with pytest.raises(ConfigurationError, match="The networks need spaces"):
        PPO(cfg=PPOConfig())


@pytest.mark.parametrize("available", [True, False])
def test_the_device_is_found(make_env, monkeypatch, available):
    from apexrl.algorithms.devices import resolve_device

    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    found = torch.device("cuda" if available else "cpu")
    assert resolve_device(None) == resolve_device("auto") == resolve_device(None, torch.device("cpu")) == found
    assert resolve_device("auto", torch.device("cuda", 1)) == torch.device("cuda", 1)
    assert resolve_device("cpu") == torch.device("cpu")
    assert PPO(make_env(), device="cpu").device.type == "cpu"


@pytest.mark.parametrize(
    ("device", "reason"),
    [("mps", "torch has none here"), ("xpu:0", "torch has none here"), ("gpu0", "it does not compute")],
)
def test_a_device_that_cannot_be_used_is_named_in_a_few_words(monkeypatch, device, reason):
    from apexrl.algorithms.devices import resolve_device

    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(torch.xpu, "is_available", lambda: False)
    with pytest.raises(
        ConfigurationError, match=rf"^device='{device}' cannot be used \({reason}\).*a GPU if torch"
    ) as at:
        resolve_device(device)
    assert len(str(at.value)) < 250


def test_dropout_is_named_as_the_cause(make_env):
    class Random(MLPDiscreteActor):
        def __init__(self, *spaces, **options):
            super().__init__(*spaces, **options)
            self.drop = torch.nn.Dropout(0.5)

        def forward(self, obs):
            return self.drop(super().forward(obs))

    runner = runner_for(make_env(), PPOConfig(**SMALL), actor_class=Random)
    with pytest.raises(ReplayMismatchError, match=r"contains Dropout \(drop\), whose output changes"):
        runner.learn(num_iterations=1)


# -- predict and load


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
def test_predict_takes_one_observation_or_a_batch_and_gives_what_it_got(make_env, name):
    env = make_env(name)
    agent = PPO(env, PPOConfig(seed=3))
    obs, _ = env.reset(seed=1)
    batch, memory = agent.predict(obs.numpy())
    assert memory == {}
    assert isinstance(batch, np.ndarray)
    assert batch.shape == (4, *env.action_space.shape)
    single, _ = agent.predict(obs[2].numpy())
    np.testing.assert_allclose(single, batch[2], rtol=1e-5)
    assert env.action_space.contains(single.astype(env.action_space.dtype))
    assert isinstance(agent.predict(obs)[0], torch.Tensor)
    with torch.no_grad():
        expected = agent.policy.distribution(agent.policy.act(obs, {}, None)).mode()
    torch.testing.assert_close(agent.predict(obs)[0], expected.clamp(-2, 2) if name == "Pendulum-v1" else expected)
    with pytest.raises(ValueError, match="predict got an observation of shape"):
        agent.predict(obs[None])


def test_predict_keeps_the_memory_of_recurrent_actors(make_env):
    env = make_env()
    agent = PPO(env, PPOConfig(num_steps=16), actor_class=GRUDiscreteActor, critic_class=GRUCritic)
    obs, _ = env.reset(seed=1)
    _, memory = agent.predict(obs)
    assert memory["actor"].abs().sum() > 0
    _, further = agent.predict(obs, memory)
    assert not torch.equal(memory["actor"], further["actor"])
    _, fresh = agent.predict(obs, memory, episode_start=np.ones(4, bool))
    torch.testing.assert_close(fresh["actor"], memory["actor"])


@pytest.mark.parametrize(
    ("name", "networks"),
    [
        ("CartPole-v1", {}),
        ("Pendulum-v1", {"actor_cfg": {"hidden_dims": [16]}, "critic_cfg": {"hidden_dims": [8, 8]}}),
        ("CartPole-v1", {"actor_class": GRUDiscreteActor, "critic_class": GRUCritic}),
    ],
)
def test_an_agent_is_loaded_from_its_checkpoint_alone(make_env, tmp_path, fingerprint, name, networks):
    cfg = PPOConfig(**SMALL, normalize_observations=True, sequence_length=8)
    runner = OnPolicyRunner(make_env(name), cfg=cfg, **networks, save_dir=tmp_path, show_progress=False)
    runner.learn(num_iterations=2)
    path = runner.save_checkpoint("model.pt")
    agent = PPO.load(path)
    assert fingerprint(agent.policy) == fingerprint(runner.agent.policy)
    assert (agent.cfg, agent.version) == (cfg, 2)
    obs, _ = make_env(name).reset(seed=5)
    torch.testing.assert_close(agent.predict(obs)[0], runner.predict(obs)[0])
    again = OnPolicyRunner.from_checkpoint(path, make_env(name), show_progress=False)
    assert (again.iteration, again.total_timesteps) == (2, runner.total_timesteps)
    runner.learn(num_iterations=1)
    again.learn(num_iterations=1)
    assert fingerprint(again.agent.policy) == fingerprint(runner.agent.policy)


def test_a_network_of_the_users_own_is_asked_for(make_env, tmp_path):
    class Mine(MLPDiscreteActor):
        pass

    runner = OnPolicyRunner(make_env(), actor_class=Mine, save_dir=tmp_path, show_progress=False)
    path = runner.save_checkpoint("model.pt")
    with pytest.raises(ConfigurationError, match=r"the checkpoint's actor is Mine.*Pass actor_class=Mine"):
        PPO.load(path)
    assert isinstance(PPO.load(path, actor_class=Mine).policy.actor, Mine)
    with pytest.raises(SchemaMismatchError, match=r"apexrl\.ppo"):
        MAPPO.load(path)
