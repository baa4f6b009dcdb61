"""Train PPO on a Gymnasium environment; the same command starts and resumes a run.

python examples/train.py --env CartPole-v1 --steps 100000 --folder runs/cartpole
"""

import argparse

from apexrl import GymVecEnv, OnPolicyRunner, PPOConfig


def main() -> None:
    """Train, then evaluate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--envs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", default="runs/cartpole")
    arguments = parser.parse_args()

    runner = OnPolicyRunner(
        env=GymVecEnv.make(arguments.env, arguments.envs),
        cfg=PPOConfig(seed=arguments.seed),
        log_dir=arguments.folder,
        log_interval=1,
        save_interval=10,
        keep_last=3,
    )
    if runner.resume():
        print(f"resuming after iteration {runner.iteration}")
    print(runner.learn(total_timesteps=arguments.steps).reason)
    runner.save_checkpoint("final_model.pt")
    stats = runner.eval(num_episodes=40)
    print(f"mean reward {stats['eval/mean_reward']:.1f} [{stats['eval/ci_low']:.1f}, {stats['eval/ci_high']:.1f}]")


if __name__ == "__main__":
    main()
