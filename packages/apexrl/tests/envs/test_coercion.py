from functools import partial

import gymnasium as gym
import pytest
import torch
from mpe2 import simple_spread_v3
from stable_baselines3.common.vec_env import DummyVecEnv

from apexrl.envs import GymVecEnv, PettingZooVecEnv, as_vec_env
from apexrl.envs.vec_env import NotAnEnvError

CARTPOLE = "CartPole-v1"


@pytest.mark.parametrize(
    ("given", "num_envs"),
    [
        (CARTPOLE, 8),
        (partial(gym.make, CARTPOLE), 1),
        (lambda: [partial(gym.make, CARTPOLE)] * 3, 3),
        (lambda: [gym.make(CARTPOLE), gym.make(CARTPOLE)], 2),
        (lambda: gym.make_vec(CARTPOLE, num_envs=2), 2),
        (lambda: GymVecEnv.make(CARTPOLE, 2), 2),
        (lambda: gym.make(CARTPOLE), 1),
    ],
    ids=["id", "function", "functions", "envs", "vector_env", "vec_env", "env"],
)
def test_what_stands_for_gymnasium_environments(given, num_envs):
    env = as_vec_env(given if isinstance(given, str | partial) else given())
    assert isinstance(env, GymVecEnv)
    assert env.num_envs == num_envs
    obs, _ = env.reset(seed=0)
    assert obs.shape == env.step(torch.zeros(num_envs, dtype=torch.long))[0].shape == (num_envs, 4)


def test_a_class_stands_for_its_environment():
    from gymnasium.envs.classic_control import CartPoleEnv

    assert as_vec_env(CartPoleEnv).num_envs == 1


def test_a_batch_is_taken_as_it_is(walk_env):
    env = walk_env()
    assert as_vec_env(env) is env


@pytest.mark.parametrize("as_list", [False, True])
def test_parallel_environments(as_list):
    single = simple_spread_v3.parallel_env(max_cycles=5)
    env = as_vec_env([single, simple_spread_v3.parallel_env(max_cycles=5)] if as_list else single)
    assert isinstance(env, PettingZooVecEnv)
    assert env.num_envs == 1 + as_list
    assert env.reset(seed=0)[0].shape[:2] == (1 + as_list, 3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: DummyVecEnv([partial(gym.make, CARTPOLE)]),
            r"DummyVecEnv.*Give the functions that made it to GymVecEnv",
        ),
        (lambda: simple_spread_v3.env(), r"act in turn \(AEC\): convert it with pettingzoo.utils.aec_to_parallel"),
        (lambda: 5, "env is 5"),
        (lambda: None, "env is None"),
        (lambda: [], r"env is \[\]"),
        (lambda: [GymVecEnv.make(CARTPOLE, 1)], "functions that make one batch each"),
        (lambda: [3], "env is a list of 3"),
    ],
    ids=["sb3", "aec", "number", "none", "empty", "batches", "numbers"],
)
def test_everything_else_is_answered_in_words(make, words):
    with pytest.raises(NotAnEnvError, match=words):
        as_vec_env(make())
