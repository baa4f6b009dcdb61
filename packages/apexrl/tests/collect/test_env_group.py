import gymnasium as gym
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from apexrl.algorithms.actor_critic import PolicySnapshot
from apexrl.algorithms.ppo import PPO, PPOConfig
from apexrl.collect import env_group
from apexrl.collect.env_group import EnvGroup
from apexrl.envs.gymnasium.wrapper import GymVecEnv
from apexrl.envs.vec_env import StepFormatError
from apexrl.models import GRUCritic, GRUDiscreteActor, MLPDiscreteActor
from apexrl.runs.errors import DivergedError
from apexrl.storage.samples import gae


def start(env, seed=0, **networks):
    agent = PPO(env, PPOConfig(seed=seed), **networks)
    return EnvGroup(env, range(env.num_envs), seed), PolicySnapshot(3, agent.policy)


def value_of(snapshot, *rows):
    with torch.no_grad():
        return snapshot.policy.value(torch.tensor(rows))


def test_time_outs_bootstrap_from_the_true_final_observation(scripted_env):
    group, snapshot = start(scripted_env(ends=(3, 5), cut=True))
    steps = group.collect(snapshot, 6).steps
    # Environment 0 is cut at its third step (t = 2): it really ended in (0, 3, 3), though it shows (0, 0, 3) already.
    expected = value_of(snapshot, [0.0, 3.0, 3.0])[0]
    torch.testing.assert_close(steps["following"][2, 0], expected)
    assert steps["observations"][3, 0].tolist() == [0.0, 0.0, 3.0]
    assert not torch.isclose(steps["following"][2, 0], steps["values"][3, 0])
    torch.testing.assert_close(steps["following"][0, 0], steps["values"][1, 0])
    torch.testing.assert_close(steps["following"][5, 1], value_of(snapshot, [1.0, 1.0, 6.0])[0])  # after the last step
    advantages = gae(steps["rewards"], steps["values"], steps["following"], steps["dones"], 0.9, 1.0)
    torch.testing.assert_close(advantages[2, 0], 3.0 + 0.9 * expected - steps["values"][2, 0])


def test_terminations_bootstrap_nothing(scripted_env):
    group, snapshot = start(scripted_env(ends=(3, 5), cut=False))
    steps = group.collect(snapshot, 6).steps
    assert steps["following"][2, 0].item() == 0.0
    assert steps["following"][4, 1].item() == 0.0


def test_recurrent_critics_bootstrap_with_the_memory_of_the_ended_episode(scripted_env):
    group, snapshot = start(scripted_env(ends=(3, 50), cut=True), actor_class=GRUDiscreteActor, critic_class=GRUCritic)
    steps = group.collect(snapshot, 6, sequence_length=3).steps
    policy = snapshot.policy
    episode = torch.tensor([[[0.0, 0.0, 0.0]], [[0.0, 1.0, 1.0]], [[0.0, 2.0, 2.0]], [[0.0, 3.0, 3.0]]])
    with torch.no_grad():
        values, _ = policy.critic(
            episode, policy.critic.initial_state(1), torch.tensor([[True], [False], [False], [False]])
        )
    torch.testing.assert_close(steps["values"][:3, 0], values[:3, 0])
    torch.testing.assert_close(steps["following"][2, 0], values[3, 0])
    assert steps["episode_starts"][:, 0].tolist() == [True, False, False, True, False, False]


def test_privileged_observations_go_to_the_critic_only(scripted_env):
    group, snapshot = start(scripted_env(ends=(3, 5), privileged=True))
    steps = group.collect(snapshot, 4).steps
    assert steps["observations"].shape == (4, 2, 3)
    assert steps["critic_observations"].shape == (4, 2, 4)
    torch.testing.assert_close(steps["following"][2, 0], value_of(snapshot, [0.0, 3.0, 3.0, 0.0])[0])


def bare(env):
    """Let an environment report only what the documented extras hold."""
    original = env.step

    def step(actions):
        obs, rewards, dones, extras = original(actions)
        return obs, rewards, dones, {name: extras[name] for name in ("time_outs", "reward_components", "log")}

    env.step = step
    return env


def test_time_outs_without_final_observation_bootstrap_from_the_step_itself_and_warn_once(
    scripted_env, caplog, monkeypatch
):
    monkeypatch.setattr(env_group, "_warned", set())
    group, snapshot = start(bare(scripted_env(ends=(3, 5), cut=True)))
    steps = group.collect(snapshot, 6).steps
    group.collect(snapshot, 6)
    assert caplog.text.count("without extras['final_observation']") == 1
    # V(s_t) in place of V(final observation), as rsl_rl does it: reward + γ·V(s_t), and nothing flows over the border.
    torch.testing.assert_close(steps["following"][2, 0], steps["values"][2, 0])
    advantages = gae(steps["rewards"], steps["values"], steps["following"], steps["dones"], 0.9, 1.0)
    expected = steps["rewards"][2, 0] + 0.9 * steps["values"][2, 0] - steps["values"][2, 0]
    torch.testing.assert_close(advantages[2, 0], expected)


def test_terminated_follows_from_dones_and_time_outs(scripted_env):
    group, snapshot = start(bare(scripted_env(ends=(3, 5), cut=False)))
    steps = group.collect(snapshot, 6).steps
    assert steps["following"][2, 0].item() == 0.0


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), None])
def test_rewards_that_are_no_numbers_are_named_with_environment_and_step(scripted_env, bad):
    env = scripted_env(ends=(30, 50))
    original = env.step

    def step(actions):
        obs, rewards, dones, extras = original(actions)
        if env.total == 4:
            rewards = None if bad is None else rewards.index_fill(0, torch.tensor([1]), bad)
        return obs, rewards, dones, extras

    env.step = step
    group, snapshot = start(env)
    if bad is None:
        with pytest.raises(
            StepFormatError, match=r"step 3 of the rollout, environments 0 to 1: .*rewards as a NoneType"
        ):
            group.collect(snapshot, 6)
    else:
        with pytest.raises(DivergedError, match="rewards of environment 1 at step 3 of the rollout"):
            group.collect(snapshot, 6)


@pytest.mark.parametrize("at", [2, 6])  # 6: the observation after the last step, which only its value needs
@pytest.mark.parametrize("continuous", [True, False])
def test_observations_that_are_no_numbers_are_named_with_environment_and_step(scripted_env, continuous, at):
    env = scripted_env(ends=(30, 50), continuous=continuous)
    original = env.step

    def step(actions):
        obs, *rest = original(actions)
        if env.total == at:
            obs[0, 1] = float("nan")
        return obs, *rest

    env.step = step
    group, snapshot = start(env)
    with pytest.raises(DivergedError, match=f"observations of environment 0 at step {at} of the rollout"):
        group.collect(snapshot, 6)


def test_final_observations_that_are_no_numbers_are_named(scripted_env):
    env = scripted_env(ends=(3, 50))
    original = env.step

    def step(actions):
        *result, extras = original(actions)
        if "final_observation" in extras:
            extras["final_observation"][0] = float("inf")
        return *result, extras

    env.step = step
    group, snapshot = start(env)
    with pytest.raises(DivergedError, match="final_observation of environment 0 at step 2 of the rollout"):
        group.collect(snapshot, 6)


def test_masks_that_some_steps_lack_leave_all_actions_open_there(scripted_env):
    env = scripted_env(ends=(100, 100))
    original = env.step
    legal = torch.tensor([[True, False], [True, False]])

    def step(actions):
        *result, extras = original(actions)
        return *result, extras | ({"action_mask": legal} if env.total % 2 else {})

    env.step = step
    group, snapshot = start(env)
    for _ in range(2):  # the second rollout must not read the first one's buffer
        steps = group.collect(snapshot, 6).steps
        assert steps["action_masks"][1::2].tolist() == [legal.tolist()] * 3
        assert bool(steps["action_masks"][0::2].all())
        with torch.no_grad():
            logits = snapshot.policy.actor(steps["observations"][0::2]).log_softmax(-1)
        chosen = logits.gather(-1, steps["actions"][0::2].unsqueeze(-1)).squeeze(-1)
        torch.testing.assert_close(steps["log_probs"][0::2], chosen)
    env.step = original
    group.collect(snapshot, 1)
    assert "action_masks" not in group.collect(snapshot, 6).steps


def test_successes_reach_the_episode_table(scripted_env):
    env = scripted_env(ends=(2, 3))
    original = env.step

    def step(actions):
        obs, rewards, dones, extras = original(actions)
        return obs, rewards, dones, extras | ({"success": (torch.arange(2) == 1).float()} if dones.any() else {})

    env.step = step
    group, snapshot = start(env)
    assert group.collect(snapshot, 4).episodes.successes.tolist() == [0.0, 1.0, 0.0]


def test_components_log_and_episodes_reach_the_fragment(scripted_env):
    group, snapshot = start(scripted_env(ends=(3, 4)))
    first, second = group.collect(snapshot, 2), None
    assert len(first.episodes) == 0
    second = group.collect(snapshot, 2)
    assert second.episodes.lengths.tolist() == [3, 4]
    assert second.episodes.returns.tolist() == [1 + 2 + 3, 1 + 2 + 3 + 4]
    assert second.episodes.components["even"].tolist() == [1.0, 2.0]
    assert second.log == {"/robot/height": 3.5, "plain": 1.0}
    assert second.policy_version == 3


def test_reset_only_steps_of_next_step_autoreset_are_left_out():
    vector = SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 2, autoreset_mode=AutoresetMode.NEXT_STEP)
    group, snapshot = start(GymVecEnv.from_vector_env(vector))
    fragment = group.collect(snapshot, 120)
    valid, dones = fragment.steps["valid"], fragment.steps["dones"]
    assert int((~valid).sum()) == int(dones[:-1].sum()) > 0
    assert torch.equal(~valid[1:], dones[:-1])
    assert fragment.episodes.lengths.tolist() == fragment.episodes.returns.tolist()  # one point per real step


def test_the_group_samples_from_its_own_stream(make_env):
    fragments = []
    for noise in (1, 2):
        torch.manual_seed(noise)
        group, snapshot = start(make_env())
        fragments.append(group.collect(snapshot, 20).steps["actions"].clone())
    assert torch.equal(*fragments)


def test_a_state_brings_another_group_to_the_same_place(make_env):
    group, snapshot = start(make_env(), actor_class=GRUDiscreteActor, critic_class=GRUCritic)
    group.collect(snapshot, 8, 8)
    other, _ = start(make_env(), actor_class=GRUDiscreteActor, critic_class=GRUCritic)
    assert other.load_state_dict(group.state_dict(), snapshot.policy, 3)
    mine, theirs = group.collect(snapshot, 8, 8), other.collect(snapshot, 8, 8)
    for name, values in mine.steps.items():
        assert torch.equal(values, theirs.steps[name]), name


def test_action_masks_are_obeyed_and_stored(scripted_env):
    env = scripted_env()
    step, reset = env.step, env.reset
    legal = torch.tensor([[True, False], [False, True]])

    def masked_reset(seed=None):
        obs, extras = reset(seed)
        return obs, extras | {"action_mask": legal}

    def masked_step(actions):
        *result, extras = step(actions)
        return *result, extras | {"action_mask": legal}

    env.reset, env.step = masked_reset, masked_step
    group, snapshot = start(env, actor_class=MLPDiscreteActor)
    steps = group.collect(snapshot, 8).steps
    assert steps["actions"].tolist() == [[0, 1]] * 8
    assert steps["log_probs"].abs().max().item() == 0.0
    assert steps["action_masks"].shape == (8, 2, 2)
