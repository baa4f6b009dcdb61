import gymnasium as gym
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from apexrl.algorithms.actor_critic import PolicySnapshot
from apexrl.algorithms.ppo import PPO, PPOConfig
from apexrl.collect.env_group import EnvGroup, MissingFinalObservationError
from apexrl.envs.gymnasium.wrapper import GymVecEnv
from apexrl.models import GRUCritic, GRUDiscreteActor, MLPDiscreteActor
from apexrl.storage.advantages import gae


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


def test_a_time_out_without_final_observation_is_refused(scripted_env):
    env = scripted_env(ends=(2, 2))
    original = env.step

    def forgetful(actions):
        obs, rewards, dones, extras = original(actions)
        extras.pop("final_observation", None)
        return obs, rewards, dones, extras

    env.step = forgetful
    group, snapshot = start(env)
    with pytest.raises(MissingFinalObservationError, match="2 time-outs and 0 final observations"):
        group.collect(snapshot, 3)


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
