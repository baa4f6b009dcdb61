import warnings
from importlib.metadata import entry_points

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env as check_gymnasium
from pettingzoo.test import parallel_api_test

from apexrl.envs.checker.check import check_env
from litaagent_std.hrl_xf.online.envs.gym_env import DAY_ID, ROUND_ID
from litaagent_std.hrl_xf.online.envs.ids import register_ids
from litaagent_std.hrl_xf.online.envs.pettingzoo_env import parallel_env
from litaagent_std.hrl_xf.online.envs.stages import DAY_ACTION_SIZE, RAW_SIZES, THREAD_SLOTS, DayStages, RoundStages
from litaagent_std.hrl_xf.online.envs.vec_env import LeagueDayVecEnv, LeagueRoundVecEnv
from litaagent_std.hrl_xf.online.hierarchy.play import play_worlds
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.worlds import WorldPlan, draw_world, training_seed
from litaagent_std.hrl_xf.rewards import DayWeights

PLAN = WorldPlan(seed=3, days=(4,), levels=2)


@pytest.mark.parametrize(
    ("env", "options", "steps"),
    [(LeagueDayVecEnv, {}, 6), (LeagueRoundVecEnv, {}, 25), (LeagueRoundVecEnv, {"actions": "raw"}, 25)],
)
def test_the_vectorised_league_keeps_apexrl_s_contract(env, options, steps):
    report = check_env(env(2, PLAN, **options), num_steps=steps, raise_on_error=False)
    assert report.is_ok, str(report)


def test_an_entry_point_makes_the_ids_known():
    points = {point.name: point for point in entry_points(group="gymnasium.envs")}
    assert points["litaagent"].load() is register_ids
    assert {DAY_ID, ROUND_ID} <= set(gym.registry)


@pytest.mark.parametrize(("name", "options"), [(DAY_ID, {}), (ROUND_ID, {}), (ROUND_ID, {"actions": "raw"})])
def test_gymnasium_s_checker_has_no_complaint(name, options):
    env = gym.make(name, days=(4,), levels=2, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_gymnasium(env.unwrapped, skip_render_check=True)
    env.close()


def test_pettingzoo_s_checker_has_no_complaint():
    parallel_api_test(parallel_env(seats=2, days=(4,), levels=2), num_cycles=8)


def test_zeros_by_day_and_by_round_earn_what_the_heuristic_agent_earns():
    plan = WorldPlan(seed=training_seed(4, 1), days=(6,), levels=2)
    expected = play_worlds([draw_world(plan)], Hierarchy(), DayWeights(), [None])[0].seats[0]
    days = DayStages()
    [by_day] = days.start([plan])
    cash = 0.0
    while not by_day.over:
        cash += days.step([by_day], [np.zeros((1, DAY_ACTION_SIZE), np.float32)])[0]["cash"][0]
    rounds = RoundStages()
    [by_round] = rounds.start([plan])
    while not by_round.over:
        rounds.step([by_round], [np.zeros((THREAD_SLOTS, 4), np.float32)])
    assert by_day.scores == [expected.score]
    assert cash == pytest.approx(expected.score - 1.0)
    assert by_round.score == expected.score


def test_a_world_of_a_vectorised_environment_is_the_world_alone():
    rng = np.random.default_rng(2)
    actions = torch.from_numpy(rng.normal(0, 0.5, (3, 3, DAY_ACTION_SIZE)).astype(np.float32))
    together, alone = LeagueDayVecEnv(3, PLAN), [LeagueDayVecEnv(3, PLAN) for _ in range(3)]
    together.reset(seed=1)
    for env in alone:
        env.reset(seed=1)
    for step in range(3):
        views, rewards, _, _ = together.step(actions[step])
        for index, env in enumerate(alone):
            only = torch.zeros_like(actions[step])
            only[index] = actions[step, index]
            own_views, own_rewards, _, _ = env.step(only)
            assert torch.equal(own_views[index], views[index])
            assert own_rewards[index] == rewards[index]


def test_raw_offers_are_what_leaves_the_agent_within_what_l1_allows():
    stages = RoundStages(actions="raw")
    [stage] = stages.start([WorldPlan(seed=training_seed(4, 2), days=(4,), levels=2)])
    seat, agenda = stage.seat, stage.seat.obs.sell_agenda or stage.seat.obs.buy_agenda
    dear = stage.seat.obs.sell_agenda is not None
    made = []
    while not stage.over:
        action = np.zeros((THREAD_SLOTS, len(RAW_SIZES)), np.int64)
        action[:] = (1, 1, 2, 31 if dear else 0)  # counter: two units in two days at the best price
        agenda = seat.obs.sell_agenda if dear else seat.obs.buy_agenda
        day, best = seat.obs.day, agenda.price_max if dear else agenda.price_min
        threads = {thread.partner for thread in seat.threads}
        stages.step([stage], [action])
        turns = seat.world._world.seats[seat.seat].agent._turns if not stage.over and seat.obs.day == day else {}
        made += [turn.offer for name in threads & set(turns) for turn in turns[name] if turn.mine]
        assert all(offer.price == best and offer.time <= day + 2 and offer.quantity <= 2 for offer in made[-3:])
    assert made
    ended = RoundStages(actions="raw")
    [stage] = ended.start([WorldPlan(seed=training_seed(4, 2), days=(4,), levels=2)])
    result = ended.step([stage], [np.full((THREAD_SLOTS, len(RAW_SIZES)), 2)])[0]
    assert result.ended.any()
    assert not result.terms["liquidity"].any()


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
