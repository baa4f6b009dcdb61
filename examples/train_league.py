"""Train the agent's day layer in the league through its Gymnasium id, with apexrl or with Stable-Baselines3.

python examples/train_league.py --steps 4000 --days 50
python examples/train_league.py --library sb3 --steps 4000
"""

import argparse
from functools import partial

import gymnasium as gym
import numpy as np

from litaagent_std.hrl_xf.online.envs import DAY_ID
from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing


def make_env(days: int, levels: int | None) -> gym.Env:
    """Make an environment with one seat in worlds of default agents; zeros are the heuristic agent."""
    return gym.make(DAY_ID, days=(days,), levels=levels)


def train_apexrl(arguments: argparse.Namespace) -> None:
    """Train with apexrl's PPO."""
    from apexrl import GymVecEnv, OnPolicyRunner, PPOConfig

    env = GymVecEnv([partial(make_env, arguments.days, arguments.levels)] * arguments.envs)
    cfg = PPOConfig(seed=arguments.seed, num_steps=arguments.rollout, gamma=1.0, learning_rate=1e-4)
    runner = OnPolicyRunner(env=env, cfg=cfg, actor_cfg={"log_std_init": -2.0}, show_progress=False)
    print(runner.learn(total_timesteps=arguments.steps).reason)
    runner.close()


def train_sb3(arguments: argparse.Namespace) -> None:
    """Train with PPO of Stable-Baselines3; any library for Gymnasium environments works alike."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    env = DummyVecEnv([partial(make_env, arguments.days, arguments.levels)] * arguments.envs)
    policy = {"log_std_init": -2.0}
    model = PPO("MlpPolicy", env, n_steps=arguments.rollout, gamma=1.0, policy_kwargs=policy, seed=arguments.seed)
    model.learn(arguments.steps)
    print(f"reached {model.num_timesteps} steps")


def play(days: int, levels: int | None) -> float:
    """Return the score of the heuristic agent (all actions zero) in one world: the baseline of training."""
    env = make_env(days, levels)
    env.reset(seed=0)
    over, info = False, {}
    while not over:
        _, _, over, _, info = env.step(np.zeros(env.action_space.shape, np.float32))
    return float(info["score"])


def main() -> None:
    """Play one world with the heuristic agent, then train."""
    restart_with_fixed_hashing()  # worlds are reproducible only with a fixed hash seed
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", choices=("apexrl", "sb3"), default="apexrl")
    parser.add_argument("--steps", type=int, default=4_000)
    parser.add_argument("--rollout", type=int, default=50)
    parser.add_argument("--envs", type=int, default=4)
    parser.add_argument("--days", type=int, default=50)
    parser.add_argument("--levels", type=int)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(f"the heuristic agent scores {play(arguments.days, arguments.levels):.3f} in a world")
    (train_apexrl if arguments.library == "apexrl" else train_sb3)(arguments)


if __name__ == "__main__":
    main()
