"""How many modules one iteration of PPO passes through: what a reader has to open to follow it."""

import sys

import gymnasium as gym

from apexrl.agent.on_policy_runner import OnPolicyRunner
from apexrl.algorithms.ppo import PPOConfig
from apexrl.envs.gymnasium import GymVecEnv

LARGEST = 18


def test_one_iteration_with_logging_and_progress_passes_through_few_modules(tmp_path):
    env = GymVecEnv([lambda: gym.make("CartPole-v1")] * 4)
    runner = OnPolicyRunner(env, cfg=PPOConfig(num_steps=64), log_dir=tmp_path, log_interval=1)
    passed = set()

    def profile(frame, event, argument):
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("apexrl."):
            passed.add(name)

    # Names are taken from the end of one iteration to the end of the next, when everything is set up.
    runner.add_callback("post_iteration", lambda r: sys.setprofile(profile if r.iteration == 2 else None))
    try:
        runner.learn(num_iterations=3)
    finally:
        sys.setprofile(None)
    assert {"apexrl.agent.runner", "apexrl.algorithms.ppo", "apexrl.collect.env_group"} <= passed
    assert len(passed) <= LARGEST, sorted(passed)
