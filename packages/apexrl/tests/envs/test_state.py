import io
from functools import partial

import gymnasium as gym
import pytest
import torch
from gymnasium import spaces
from mpe2 import simple_speaker_listener_v4, simple_spread_v3, simple_tag_v3

from apexrl.envs import GymVecEnv, PettingZooVecEnv, StateNotSupportedError


def through_a_file(state):
    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=True)


def make(kind):
    if kind == "native":
        return GymVecEnv.from_vector_env(
            gym.make_vec("CartPole-v1", num_envs=3, vectorization_mode="vector_entry_point")
        )
    name, backend = kind.split("/")
    return GymVecEnv([partial(gym.make, name)] * 3, backend=backend)


@pytest.mark.parametrize(
    "kind",
    ["CartPole-v1/sync", "Pendulum-v1/sync", "Acrobot-v1/sync", "MountainCar-v0/sync", "CartPole-v1/async", "native"],
)
def test_a_restored_batch_continues_bit_by_bit(kind, roll):
    first, second = make(kind), make(kind)
    assert not isinstance(first, str)
    first.reset(seed=3)
    roll(first, 230, 1)
    assert first.supports_state
    state = through_a_file(first.state_dict())
    second.reset(seed=99)
    second.load_state_dict(state)
    assert all(torch.equal(a, b) for a, b in zip(roll(first, 230, 2), roll(second, 230, 2), strict=True))
    first.close()
    second.close()


def test_a_state_does_not_follow_the_env(roll):
    env = make("CartPole-v1/sync")
    env.reset(seed=0)
    state = env.state_dict()
    expected = roll(env, 50, 0)
    for _ in range(2):
        env.load_state_dict(state)
        assert all(torch.equal(a, b) for a, b in zip(roll(env, 50, 0), expected, strict=True))


def test_a_state_of_another_size_is_refused():
    state = GymVecEnv([partial(gym.make, "CartPole-v1")] * 2).state_dict()
    with pytest.raises(ValueError, match="holds 2 environments, this batch has 3"):
        make("CartPole-v1/sync").load_state_dict(state)


def unreadable():
    env = gym.make("CartPole-v1")
    env.unwrapped.engine = iter([1, 2, 3])
    return env


@pytest.mark.parametrize("backend", ["sync", "async"])
def test_an_env_that_cannot_be_captured_says_so(backend):
    env = GymVecEnv([unreadable], backend=backend)
    env.reset(seed=0)
    assert not env.supports_state
    with pytest.raises(StateNotSupportedError, match="engine"):
        env.state_dict()
    env.step(torch.zeros(1, dtype=torch.long))  # an async worker has survived
    env.close()


def test_the_base_class_declares_no_support(walk_env):
    env = walk_env()
    assert not env.supports_state
    with pytest.raises(StateNotSupportedError, match="reset"):
        env.state_dict()
    with pytest.raises(StateNotSupportedError, match="reset"):
        env.load_state_dict({})


def roll_agents(env, steps, seed):
    g = torch.Generator().manual_seed(seed)
    out = []
    for _ in range(steps):
        if isinstance(env.action_space, spaces.Discrete):
            actions = torch.randint(3, (env.num_envs, env.num_agents), generator=g)
        else:
            actions = torch.rand(env.num_envs, env.num_agents, *env.action_space.shape, generator=g)
        obs, rewards, dones, extras = env.step(actions)
        out += [obs, rewards, dones, extras["state"], extras["agent_mask"]]
    return out


@pytest.mark.parametrize(
    ("module", "options"),
    [
        (simple_spread_v3, {}),
        (simple_spread_v3, {"continuous_actions": True}),
        (simple_tag_v3, {}),
        (simple_speaker_listener_v4, {}),  # its goal points at one of the landmarks, another one each episode
    ],
)
def test_multi_agent_envs_continue_bit_by_bit(module, options):
    first, second = (PettingZooVecEnv([partial(module.parallel_env, max_cycles=6, **options)] * 3) for _ in range(2))
    first.reset(seed=0)
    roll_agents(first, 10, 0)
    state = through_a_file(first.state_dict())
    second.reset(seed=50)
    second.load_state_dict(state)
    expected, actual = roll_agents(first, 14, 1), roll_agents(second, 14, 1)
    assert all(torch.equal(a, b) for a, b in zip(expected, actual, strict=True))
