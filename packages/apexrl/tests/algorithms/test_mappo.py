import pytest
import torch

from apexrl.agent.multi_agent_runner import MultiAgentRunner
from apexrl.algorithms.mappo import MAPPO, MAPPOConfig
from apexrl.models import GRUCritic, GRUDiscreteActor
from apexrl.storage.samples import gae

SMALL = {"num_steps": 8, "minibatch_size": 8, "num_epochs": 2, "learning_rate": 3e-3}
VARIANTS = [
    {},
    {"share_actor": False},
    {"add_agent_ids": False},
    {"centralized_critic": False},
    {"value_per_agent": False},
    {"team_reward": True},
    {"normalize_observations": True, "normalize_values": True},
]


def runner_for(env, **fields):
    return MultiAgentRunner(env, cfg=MAPPOConfig(**(SMALL | fields)), save_interval=0, show_progress=False)


@pytest.mark.parametrize("fields", VARIANTS, ids=str)
def test_every_variant_learns_from_its_own_rollout_and_differs(fields, scripted_team, fingerprint):
    runner, seen = runner_for(scripted_team(), **fields), []
    runner.add_callback("post_update", lambda _, stats: seen.append(stats["train/replay_error"]))
    runner.learn(num_iterations=3)
    assert max(seen) <= 1e-5
    if fields:
        plain = runner_for(scripted_team())
        plain.learn(num_iterations=3)
        assert fingerprint(plain.agent.policy) != fingerprint(runner.agent.policy)


def test_absent_agents_are_masked_out(scripted_team):
    runner = runner_for(scripted_team())
    stats = runner.collect_rollout()
    valid = runner.storage.steps["valid"]
    assert valid.shape == (8, 2, 3)
    assert valid[:, 0, 2].tolist() == [True, True, False, False] * 2
    assert stats["rollout/num_samples"] == 8 * 2 * 3 - 2 * 4
    assert runner.storage.num_samples == 16  # environment steps, not agents
    assert stats["rollout/mean_reward"] == pytest.approx((4 * 1 + 4 * 2 + 2 * 3) / 10)


def test_what_absent_agents_show_never_reaches_the_parameters(scripted_team, fingerprint):
    digests = []
    for noise in (0.0, 5.0):
        env = scripted_team()
        env.absent_noise = noise
        runner = runner_for(env)
        runner.collect_rollout()
        # Make garbage of everything that belongs to absent agents, except what decides the others' samples.
        for name in ("rewards", "values", "following", "log_probs"):
            runner.storage.steps[name][~runner.storage.steps["valid"]] += noise
        runner.agent.update(runner.storage)
        digests.append(fingerprint(runner.agent.policy))
    assert digests[0] == digests[1]


def test_an_agent_that_leaves_for_good_ends_its_own_episode_only(scripted_team):
    runner = runner_for(scripted_team())
    runner.collect_rollout()
    steps = runner.storage.steps
    assert steps["dones"][1, 0].tolist() == [False, False, True]  # the third agent leaves at its second step
    assert steps["following"][1, 0, 2].item() == 0.0
    torch.testing.assert_close(steps["following"][1, 0, 0], steps["values"][2, 0, 0])
    with torch.no_grad():  # the episode's end is a time-out: bootstrap from the true final state, t = 4
        final = runner.agent.policy.value(torch.full((1, 3), 4.0))[0]
    torch.testing.assert_close(steps["following"][3, 0, :2], final[:2])
    advantages = gae(steps["rewards"], steps["values"], steps["following"], steps["dones"], 1.0, 1.0)
    torch.testing.assert_close(advantages[0, 0, 2], 3.0 + 3.0 - steps["values"][0, 0, 2])


def test_separate_actors_have_parameters_of_their_own(scripted_team):
    env = scripted_team()
    shared, separate = MAPPO(env, MAPPOConfig(add_agent_ids=False)), MAPPO(env, MAPPOConfig(share_actor=False))
    obs = torch.ones(1, 3, 2)
    rows = shared.policy.actor(obs)[0]
    assert torch.allclose(rows, rows[0], atol=1e-6), "equal up to rounding, which some processors do by row"
    assert len({tuple(row.tolist()) for row in separate.policy.actor(obs)[0]}) == 3
    assert sum(p.numel() for p in separate.policy.actor.parameters()) == 3 * sum(
        p.numel() for p in shared.policy.actor.parameters()
    )


def test_the_central_critic_sees_the_state_and_actors_do_not(scripted_team):
    agent = MAPPO(scripted_team(), MAPPOConfig())
    values = agent.policy.critic(torch.zeros(5, 3))
    assert values.shape == (5, 3)
    team = MAPPO(scripted_team(), MAPPOConfig(value_per_agent=False)).policy.critic(torch.randn(5, 3))
    assert torch.equal(team[:, 0], team[:, 2])
    local = MAPPO(scripted_team(), MAPPOConfig(centralized_critic=False)).policy.critic(torch.randn(5, 3, 2))
    assert local.shape == (5, 3)


def test_team_reward_is_the_mean_over_present_agents(scripted_team):
    agent = MAPPO(scripted_team(), MAPPOConfig(team_reward=True))
    rewards = torch.tensor([[[1.0, 2.0, 9.0]]])
    shared = agent._rewards(rewards, torch.tensor([[[True, True, False]]]))
    assert shared.tolist() == [[[1.5, 1.5, 1.5]]]


def test_networks_with_memory_that_do_not_fit_are_refused_by_name(scripted_team):
    with pytest.raises(TypeError, match="GRUDiscreteActor has memory"):
        MAPPO(scripted_team(), MAPPOConfig(share_actor=False), actor_class=GRUDiscreteActor)
    with pytest.raises(TypeError, match="GRUCritic"):
        MAPPO(scripted_team(), critic_class=GRUCritic)


@pytest.mark.parametrize("add_agent_ids", [False, True])
def test_agents_with_memory_learn_together(scripted_team, add_agent_ids):
    cfg = MAPPOConfig(num_steps=16, sequence_length=8, num_epochs=2, minibatch_size=16, add_agent_ids=add_agent_ids)
    runner = MultiAgentRunner(scripted_team(), cfg=cfg, actor_class=GRUDiscreteActor, show_progress=False)
    stats = []
    runner.add_callback("post_update", lambda runner, metrics: stats.append(metrics))
    runner.learn(num_iterations=3)
    assert max(metrics["train/replay_error"] for metrics in stats) < 1e-5  # memories were restored rightly
    assert stats[0]["train/grad_norm"] > 0
    assert runner.eval(num_episodes=4)["eval/num_episodes"] == 4


def test_each_agent_has_a_memory_of_its_own(scripted_team):
    agent = MAPPO(scripted_team(), actor_class=GRUDiscreteActor, actor_cfg={"rnn_hidden_dim": 8})
    actor = agent.policy.actor
    torch.manual_seed(0)
    obs, starts = torch.randn(6, 2, 3, 2), torch.rand(6, 2) < 0.3
    whole, after = actor(obs, actor.initial_state(2), starts)
    changed = obs.clone()
    changed[:, :, 1] += 1.0
    other, other_after = actor(changed, actor.initial_state(2), starts)
    assert whole.shape == (6, 2, 3, 3)
    assert after.shape == (2, 3, 1, 8)
    for values, others, axis in ((whole, other, 2), (after, other_after, 1)):
        same = [torch.equal(values.select(axis, a), others.select(axis, a)) for a in range(3)]
        assert same == [True, False, True]


def test_learns_on_a_pettingzoo_task():
    spread = pytest.importorskip("mpe2.simple_spread_v3")
    from apexrl.envs.pettingzoo.wrapper import PettingZooVecEnv

    env = PettingZooVecEnv([lambda: spread.parallel_env(N=2, max_cycles=10)] * 2)
    runner = runner_for(env, share_actor=True)
    runner.learn(num_iterations=3)
    stats = runner.eval(4)
    assert stats["eval/mean_length"] == 10.0
