"""Evaluation: a fixed number of whole episodes on separate environments and random streams.

Every environment plays exactly one episode, so short episodes do not count more often than long ones. Evaluation does
not change the state of training.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from apexrl.arrays import Bools, Floats, Ints
from apexrl.envs import MultiAgentVecEnv
from apexrl.runs.rng import global_streams, streams_from
from hmasd.config import HMASDConfig
from hmasd.learning.protocols import Agent, EpisodePolicy
from hmasd.learning.rollout import team_reward
from hmasd.tasks import SUCCESS_BY_TERMINATION, make_env

_STEP_LIMIT_FACTOR = 10
"""Episodes that last this many times the time limit raise an error."""


@dataclass(frozen=True, kw_only=True)
class EvaluationResult:
    """Results of whole episodes, one entry per episode."""

    returns: Floats
    """Undiscounted team return, ``(N,)``."""
    lengths: Ints
    """Steps, ``(N,)``."""
    terminated: Bools
    """Whether the episode terminated, ``(N,)``."""

    def metrics(self, task: str) -> dict[str, float]:
        """Return means by metric name, with ``Eval/SuccessRate`` for tasks that define success."""
        metrics = {
            "Eval/ReturnMean": float(self.returns.mean()),
            "Eval/ReturnStd": float(self.returns.std()),
            "Eval/EpisodeLengthMean": float(self.lengths.mean()),
        }
        if task in SUCCESS_BY_TERMINATION:
            metrics["Eval/SuccessRate"] = float(self.terminated.mean())
        return metrics


def evaluate(agent: Agent, config: HMASDConfig, env_steps: int) -> EvaluationResult:
    """Evaluate an agent as training does after ``env_steps`` steps; the same arguments give the same result."""
    seeds = np.random.SeedSequence([config.seed, env_steps, 0xE7A1]).generate_state(2)
    generator = torch.Generator(agent.device).manual_seed(int(seeds[1]))
    policy = agent.policy(config.eval_episodes, generator, deterministic=config.eval_deterministic)
    with global_streams(streams_from(int(seeds[0]))):  # PettingZoo modules may use the global streams
        unshaped = replace(config, reward_shaping=0.0)
        env = make_env(unshaped, config.eval_episodes, int(seeds[0]))
        try:
            return play_episodes(policy, env, int(seeds[0]), _STEP_LIMIT_FACTOR * config.max_episode_steps)
        finally:
            env.close()


def play_episodes(policy: EpisodePolicy, env: MultiAgentVecEnv, seed: int, step_limit: int) -> EvaluationResult:
    """Play the first episode of every environment.

    Args:
        policy: The policy.
        env: The environments.
        seed: Seed of the environments.
        step_limit: Steps after which an unfinished episode is an error.

    Raises:
        RuntimeError: An episode did not end within ``step_limit`` steps.
    """
    observations, extras = env.reset(seed=seed)
    state, present, legal = extras["state"], extras["agent_mask"], extras.get("action_mask")
    starts = torch.ones(env.num_envs, dtype=torch.bool)
    playing = np.ones(env.num_envs, dtype=np.bool_)
    terminated = np.zeros(env.num_envs, dtype=np.bool_)
    returns = np.zeros(env.num_envs)
    lengths = np.zeros(env.num_envs, dtype=np.int64)
    for _ in range(step_limit):
        actions = policy.act(observations, state, starts, legal)
        observations, rewards, starts, extras = env.step(actions)
        returns += np.where(playing, team_reward(rewards, present).numpy(), 0.0)
        state, present, legal = extras["state"], extras["agent_mask"], extras.get("action_mask")
        lengths += playing
        terminated |= playing & extras["terminated"].numpy()
        playing &= ~starts.numpy()
        if not playing.any():
            return EvaluationResult(returns=returns, lengths=lengths, terminated=terminated)
    raise RuntimeError(
        f"{int(playing.sum())} episodes did not end within {step_limit} steps; "
        "give the task a time limit (max_episode_steps)"
    )
