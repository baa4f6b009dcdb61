import math

import numpy as np
import pytest
import torch

from apexrl.agent.evaluation import EvaluationError, evaluate, quotas, separate_env
from apexrl.algorithms.ppo import PPO


def test_quotas_are_fixed_beforehand():
    assert quotas(10, 4).tolist() == [3, 3, 2, 2]
    assert quotas(2, 4).tolist() == [1, 1, 0, 0]
    with pytest.raises(ValueError, match="num_episodes=0"):
        quotas(0, 4)


def test_short_episodes_are_not_drawn_more_often(scripted_env):
    # Environment 0 ends every 2 steps, environment 1 every 20: whoever takes the first ten episodes sees short ones.
    env = scripted_env(ends=(2, 20))
    stats = evaluate(PPO(env).policy, env, 10, seed=0)
    assert stats["eval/mean_length"] == pytest.approx((2 + 20) / 2)
    assert stats["eval/num_episodes"] == 10


def test_summary_by_hand(scripted_env):
    env = scripted_env(ends=(1, 2))  # rewards count total steps: returns 1, 2, 3, … and 1+2, 3+4, …
    stats = evaluate(PPO(env).policy, env, 4, seed=0)
    returns = np.array([1.0, 2.0, 3.0, 7.0])
    assert stats["eval/mean_reward"] == pytest.approx(returns.mean())
    assert stats["eval/std_reward"] == pytest.approx(returns.std(ddof=1))
    assert (stats["eval/min_reward"], stats["eval/max_reward"]) == (1.0, 7.0)
    half = 3.182446 * returns.std(ddof=1) / math.sqrt(4)  # Student's t with 3 degrees of freedom
    assert stats["eval/ci_high"] - stats["eval/mean_reward"] == pytest.approx(half, rel=1e-5)


def test_seeds_decide_the_episodes(make_env):
    policy = PPO(make_env()).policy
    first, second, other = (evaluate(policy, make_env(), 6, seed) for seed in (1, 1, 2))
    assert first == second != other
    sampled = evaluate(policy, make_env(), 6, 1, deterministic=False)
    assert sampled == evaluate(policy, make_env(), 6, 1, deterministic=False) != first


def test_an_episode_that_never_ends_is_an_error(scripted_env):
    env = scripted_env(ends=(10_000, 10_000))
    with pytest.raises(EvaluationError, match="did not end within 50 steps"):
        evaluate(PPO(env).policy, env, 1, seed=0, max_episode_steps=50)


def test_a_copy_leaves_the_original_alone(make_env):
    env = make_env()
    env.reset(seed=3)
    copied = separate_env(env)
    copied.reset(seed=9)
    actions = torch.zeros(4, dtype=torch.int64)
    after, *_ = env.step(actions)
    again = make_env()
    again.reset(seed=3)
    assert torch.equal(after, again.step(actions)[0])


def test_an_environment_that_cannot_be_copied_asks_for_one(scripted_env):
    env = scripted_env()
    env.handle = (value for value in ())  # generators cannot be copied
    with pytest.raises(EvaluationError, match="pass eval_env="):
        separate_env(env)


def test_evaluation_gives_recurrent_policies_their_memory(make_env):
    from apexrl.models import GRUCritic, GRUDiscreteActor

    policy = PPO(make_env(), actor_class=GRUDiscreteActor, critic_class=GRUCritic).policy
    assert evaluate(policy, make_env(), 4, seed=0)["eval/num_episodes"] == 4
