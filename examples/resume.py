"""Show that N + N iterations in two runs equal 2N in one, to the last bit.

python examples/resume.py
"""

import hashlib
import tempfile

import gymnasium as gym

from apexrl import GymVecEnv, OnPolicyRunner, PPOConfig


def make_runner(folder: str) -> OnPolicyRunner:
    """Make the same runner with any folder."""
    env = GymVecEnv([lambda: gym.make("CartPole-v1")] * 4)
    return OnPolicyRunner(env=env, cfg=PPOConfig(num_steps=64), save_dir=folder, save_interval=5)


def fingerprint(runner: OnPolicyRunner) -> str:
    """Return a hash of all parameters."""
    digest = hashlib.sha256()
    for values in runner.agent.policy.state_dict().values():
        digest.update(values.numpy().tobytes())
    return digest.hexdigest()


def main() -> None:
    """Train at once and in two parts, and compare."""
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as parts:
        at_once = make_runner(whole)
        at_once.learn(num_iterations=10)

        make_runner(parts).learn(num_iterations=5)
        resumed = make_runner(parts)  # as a new process would
        resumed.resume()
        resumed.learn(num_iterations=5)

        print(f"at once  {fingerprint(at_once)}\nin parts {fingerprint(resumed)}")
        if fingerprint(at_once) != fingerprint(resumed):
            raise SystemExit("they differ")


if __name__ == "__main__":
    main()
