import warnings
from importlib.metadata import entry_points

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env as check_gymnasium
from pettingzoo.test import parallel_api_test

from apexrl.envs.checker.check import check_env
from litaagent_std.agents.online.acting import PolicySet
from litaagent_std.hrl_xf.online.envs.gym_env import DAY_ID, ROUND_ID
from litaagent_std.hrl_xf.online.envs.ids import register_ids
from litaagent_std.hrl_xf.online.envs.pettingzoo_env import parallel_env
from litaagent_std.hrl_xf.online.envs.stages import THREAD_SLOTS, DayStage, RoundStage
from litaagent_std.hrl_xf.online.envs.vec_env import LeagueDayVecEnv, LeagueRoundVecEnv
from litaagent_std.hrl_xf.online.rollout import play_world
from litaagent_std.hrl_xf.online.worlds import WorldPlan, training_seed
from litaagent_std.hrl_xf.rewards import DayWeights

PLAN = WorldPlan(seed=3, days=(4,), levels=2)


@pytest.mark.parametrize(("env", "steps"), [(LeagueDayVecEnv, 6), (LeagueRoundVecEnv, 25)])
def test_the_vectorised_league_keeps_apexrl_s_contract(env, steps):
    report = check_env(env(2, PLAN), num_steps=steps, raise_on_error=False)
    assert report.is_ok, str(report)


def test_an_entry_point_makes_the_ids_known():
    points = {point.name: point for point in entry_points(group="gymnasium.envs")}
    assert points["litaagent"].load() is register_ids
    assert {DAY_ID, ROUND_ID} <= set(gym.registry)


@pytest.mark.parametrize("name", [DAY_ID, ROUND_ID])
def test_gymnasium_s_checker_has_no_complaint(name):
    env = gym.make(name, days=(4,), levels=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_gymnasium(env.unwrapped, skip_render_check=True)
    env.close()


def test_pettingzoo_s_checker_has_no_complaint():
    parallel_api_test(parallel_env(seats=2, days=(4,), levels=2), num_cycles=8)


def test_zeros_by_day_and_by_round_earn_what_the_heuristic_agent_earns():
    plan = WorldPlan(seed=training_seed(4, 1), days=(6,), levels=2)
    expected = play_world(plan, PolicySet(), DayWeights(), None, rounds=False).seats[0]
    days = DayStage(plan)
    cash = 0.0
    while not days.over:
        cash += days.step(np.zeros((1, 12), np.float32))["cash"][0]
    rounds = RoundStage(plan)
    while not rounds.over:
        rounds.step(np.zeros((THREAD_SLOTS, 4), np.float32))
    assert days.scores == [expected.score]
    assert cash == pytest.approx(expected.score - 1.0)
    assert rounds.score == expected.score


def test_seats_of_one_world_are_no_independent_rows():
    with pytest.raises(ValueError, match="parallel_env"):
        LeagueDayVecEnv(2, WorldPlan(seed=0, seats=2))


def test_threads_that_ended_come_back_only_as_new_ones():
    env = LeagueRoundVecEnv(1, PLAN)
    _, extras = env.reset(seed=1)
    for _ in range(30):
        acted = extras["agent_mask"]
        _, rewards, dones, extras = env.step(torch.zeros(1, THREAD_SLOTS, 4))
        ended = extras["agent_terminated"]
        assert not (ended & ~acted).any()
        assert not rewards[~acted].any()
        assert not dones.any() or ended[dones].any()
    env.close()
