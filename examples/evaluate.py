"""Evaluate a checkpoint that examples/train.py wrote.

python examples/evaluate.py runs/cartpole/checkpoints/final_model.pt --env CartPole-v1 --episodes 100
"""

import argparse
from pathlib import Path

from apexrl import GymVecEnv, OnPolicyRunner


def main() -> None:
    """Load the checkpoint, play and print the metrics."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--envs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--sample", action="store_true", help="sample actions instead of taking the most probable ones")
    arguments = parser.parse_args()

    runner = OnPolicyRunner(env=GymVecEnv.make(arguments.env, arguments.envs))
    runner.load_checkpoint(arguments.checkpoint.resolve())
    stats = runner.eval(arguments.episodes, deterministic=not arguments.sample, seed=arguments.seed)
    for name, value in stats.items():
        print(f"{name:20} {value:.3f}")


if __name__ == "__main__":
    main()
