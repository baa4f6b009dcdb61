import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env as check_gymnasium

from apexrl.envs import GymVecEnv
from apexrl.envs.cue_recall import CueRecall


def play(env, answer):
    """Return the reward of an episode in which `answer` names the cue from the first observation."""
    first, _ = env.reset()
    total, steps, done = 0.0, 0, False
    obs = first
    while not done:
        obs, reward, done, _, info = env.step(answer(first, obs))
        total, steps = total + reward, steps + 1
    assert info["is_success"] == bool(total)
    return total, steps


def test_memory_solves_it_and_nothing_else():
    env = CueRecall(delay=20, num_cues=4)
    env.reset(seed=0)
    assert all(play(env, lambda first, _: int(first[:-1].argmax())) == (1.0, 21) for _ in range(20))
    guesses = [play(env, lambda _, obs: int(obs[:-1].argmax()))[0] for _ in range(400)]
    assert 0.15 < np.mean(guesses) < 0.35


def test_the_flag_asks_for_the_answer_once():
    env = CueRecall(delay=3)
    obs, _ = env.reset(seed=0)
    flags = [obs[-1]]
    for _ in range(3):
        obs, *_ = env.step(0)
        flags.append(obs[-1])
        assert not obs[:-1].any()
    assert flags == [0, 0, 0, 1]


def test_gymnasium_accepts_it():
    check_gymnasium(CueRecall(), skip_render_check=True)
    with pytest.raises(ValueError, match="delay=0"):
        CueRecall(delay=0)


def test_the_entry_point_makes_the_id_known():
    env = GymVecEnv.make("apexrl/CueRecall-v0", num_envs=3, delay=2)
    assert env.reset(seed=0)[0].shape == (3, 5)
    for _ in range(3):
        _, _, dones, extras = env.step(torch.zeros(3, dtype=torch.long))
    assert dones.all()
    assert extras["success"].tolist() == [float(r) for r in extras["success"] == 1]


def test_an_unknown_id_is_gymnasiums_error():
    with pytest.raises(gym.error.NameNotFound):
        GymVecEnv.make("NoSuchEnv-v0")
