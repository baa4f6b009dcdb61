"""Evaluation on environments of its own: seeded, with frozen normalisers, and without a bias to short episodes."""

import copy
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium.spaces import Discrete, MultiDiscrete, Space
from numpy.typing import NDArray
from torch import Tensor

from apexrl.agent.runner import Runner
from apexrl.algorithms.actor_critic import ActingPolicy
from apexrl.arrays import Bools, Floats, Ints
from apexrl.collect.env_group import AnyVecEnv, derived_seed, one_thread
from apexrl.envs.multi_agent import MultiAgentVecEnv
from apexrl.envs.vec_env import NotAnEnvError, read_step
from apexrl.models.base import Policy

_CONFIDENCE = 0.95


_SAME_ENV = (
    "eval_env is the training environment: evaluating on it would cut its episodes short; pass another one, or leave "
    "eval_env out and a copy is made"
)


class EvaluationError(RuntimeError):
    """An evaluation cannot be made, or does not end."""


def separate_env(env: AnyVecEnv) -> AnyVecEnv:
    """Return a copy of an environment, so that evaluation never touches the episodes that training is in.

    Raises:
        EvaluationError: The environment cannot be copied.
    """
    try:
        return copy.deepcopy(env)
    except (TypeError, RuntimeError, NotImplementedError, ValueError, AttributeError) as error:
        raise EvaluationError(
            f"{type(env).__name__} cannot be copied for evaluation ({error}), and evaluating on the training "
            "environment would cut its episodes short: pass eval_env=, an environment made only for evaluation"
        ) from error


def _members(env: Any) -> set[int]:  # noqa: ANN401 - batches, and batches around them
    """Return the identities of a batch, of what it wraps, and of the single environments in it."""
    members: set[int] = set()
    while env is not None:
        vector_env = getattr(env, "vector_env", env)
        singles = [getattr(single, "unwrapped", single) for single in getattr(vector_env, "envs", ())]
        members |= {id(part) for part in (env, vector_env, *singles)}
        env = getattr(env, "env", None)  # as in FrameStack
    return members


def check_fits(actor: Policy, env: AnyVecEnv, name: str) -> None:
    """Refuse environments that a policy cannot act in.

    Args:
        actor: The policy.
        env: The environments.
        name: Which argument they are, for the message.

    Raises:
        NotAnEnvError: Observations, actions or the number of agents have another form.
    """
    numbers = ("one", "several")
    pairs = {
        "observations": (actor.observation_space, env.observation_space),
        "actions": (actor.action_space, env.action_space),
        "agents": (numbers[actor.agent_axes], numbers[isinstance(env, MultiAgentVecEnv)]),
    }
    for what, (needed, given) in pairs.items():
        if _form(needed) != _form(given):
            raise NotAnEnvError(
                f"the {what} of {name} are {given}",
                f"the agent was made for {needed}",
                "pass an environment of the same kind, or make an agent for this one",
            )


def _form(space: Any) -> Any:  # noqa: ANN401 - a space, or a text
    """Return what networks must agree on: bounds may differ, sizes may not."""
    if isinstance(space, Discrete):
        return int(space.n)
    if isinstance(space, MultiDiscrete):
        return space.nvec.ravel().tolist()
    return space.shape if isinstance(space, Space) else space


class Evaluator:
    """Evaluates a policy on environments of its own.

    Args:
        agent: Gives ``policy`` and ``cfg.seed``.
        train_env: What to copy when there is no ``eval_env``; None if there is no training environment.
        eval_env: Environments for evaluation only.
        num_episodes: How many episodes count if nothing else is said.

    Raises:
        EvaluationError: ``eval_env`` is the training environment, or a batch of the same environments.
        NotAnEnvError: ``eval_env`` has other observations or actions than the policy.
    """

    def __init__(
        self,
        agent: Any,  # noqa: ANN401 - any algorithm
        train_env: AnyVecEnv | None,
        eval_env: AnyVecEnv | None,
        num_episodes: int,
    ) -> None:
        if eval_env is not None and train_env is not None and _members(eval_env) & _members(train_env):
            raise EvaluationError(_SAME_ENV)
        if eval_env is not None:
            check_fits(agent.policy.actor, eval_env, "eval_env")
        self._agent, self._train_env, self._eval_env = agent, train_env, eval_env
        self._num_episodes = num_episodes

    def __call__(
        self, num_episodes: int | None = None, deterministic: bool = True, seed: int | None = None
    ) -> dict[str, float]:
        """Play whole episodes; see :func:`evaluate`."""
        if self._eval_env is None:
            if self._train_env is None:
                raise EvaluationError("there is no environment to evaluate on; pass eval_env= to the runner")
            self._eval_env = separate_env(self._train_env)
        if seed is None:
            seed = derived_seed(self._agent.cfg.seed, 3)
        count = self._num_episodes if num_episodes is None else num_episodes
        return evaluate(self._agent.policy, self._eval_env, count, seed, deterministic)

    def close(self) -> None:
        """Close the evaluation environments."""
        if self._eval_env is not None:
            self._eval_env.close()


class PolicyRunner(Runner):
    """A runner of an algorithm whose policy plays environments."""

    algorithms: ClassVar[Mapping[str, Any]]
    default_algorithm: ClassVar[str]
    agent: Any

    @classmethod
    def algorithm_class(cls, algorithm: str | type | None) -> Any:  # noqa: ANN401 - a class of the runner's kind
        """Return an algorithm by its name in any case, or a class as it is; if None, the runner's default."""
        if isinstance(algorithm, type):
            return algorithm
        name = str(algorithm or cls.default_algorithm).lower()
        if name not in cls.algorithms:
            raise ValueError(
                f"unknown algorithm {algorithm!r}: {cls.__name__} knows {', '.join(cls.algorithms)}, and takes a class "
                "of your own"
            )
        return cls.algorithms[name]

    def predict(
        self,
        observation: Any,  # noqa: ANN401 - an array, a tensor, or a Dict of arrays
        state: dict[str, Tensor] | None = None,
        episode_start: NDArray[Any] | Tensor | None = None,
        deterministic: bool = True,
        action_mask: NDArray[Any] | Tensor | None = None,
    ) -> tuple[Any, dict[str, Tensor]]:
        """Choose actions; see :meth:`apexrl.algorithms.actor_critic.ActingPolicy.predict`."""
        policy: ActingPolicy = self.agent.policy
        return policy.predict(observation, state, episode_start, deterministic, action_mask)

    def eval(  # type: ignore[override]  # the learner's options by their names
        self, num_episodes: int | None = None, deterministic: bool = True, seed: int | None = None
    ) -> dict[str, float]:
        """Play whole episodes on environments of their own; training and its statistics are not touched.

        Args:
            num_episodes: Exactly so many count, a fixed number per environment; if None, ``eval_episodes``.
            deterministic: Take the most probable action.
            seed: Seed of the episodes; if None, derived from the run's seed: every evaluation plays the same ones.

        Returns:
            ``eval/mean_reward``, ``std_reward``, ``min_reward``, ``max_reward`` and more; see
            :func:`apexrl.agent.evaluation.evaluate`.
        """
        return super().eval(num_episodes=num_episodes, deterministic=deterministic, seed=seed)


def quotas(num_episodes: int, num_envs: int) -> Ints:
    """Return how many episodes each environment plays: fixed, so that short episodes are not drawn more often."""
    if num_episodes < 1:
        raise ValueError(f"num_episodes={num_episodes} must be at least 1")
    base, extra = divmod(num_episodes, num_envs)
    return np.array([base + (index < extra) for index in range(num_envs)])


def evaluate(
    policy: ActingPolicy,
    env: AnyVecEnv,
    num_episodes: int,
    seed: int,
    deterministic: bool = True,
    max_episode_steps: int = 100_000,
) -> dict[str, float]:
    """Play whole episodes and summarise them.

    Args:
        policy: Networks and normalisers; nothing in it changes.
        env: Environments made for evaluation; they are reset.
        num_episodes: Split evenly over the environments; exactly so many count.
        seed: Seed of the environments and, if not deterministic, of the actions.
        deterministic: Take the most probable action instead of sampling.
        max_episode_steps: An episode that is longer is an error.

    Returns:
        ``eval/`` mean_reward, std_reward, min_reward, max_reward, mean_length, num_episodes, and the ends of the 95 %
        confidence interval of the mean, ci_low and ci_high (Student's t); success_rate if the environments say which
        episodes succeeded.

    Raises:
        EvaluationError: An episode does not end.
    """
    with one_thread():  # as in collection, so that results do not depend on how many threads a process has
        return _evaluate(policy, env, num_episodes, seed, deterministic, max_episode_steps)


def _evaluate(
    policy: ActingPolicy, env: AnyVecEnv, num_episodes: int, seed: int, deterministic: bool, max_episode_steps: int
) -> dict[str, float]:
    left = quotas(num_episodes, env.num_envs)
    returns: list[float] = []
    lengths: list[int] = []
    successes: list[float] = []
    total, length = np.zeros(env.num_envs), np.zeros(env.num_envs, dtype=np.int64)
    player = _Player(policy, env, seed, deterministic)
    while left.any():
        rewards, dones, counted = player.step()
        total += rewards * counted
        length += counted
        for index in np.nonzero(dones)[0]:
            if left[index]:
                returns.append(float(total[index]))
                lengths.append(int(length[index]))
                successes.append(math.nan if player.success is None else float(player.success[index]))
                left[index] -= 1
            total[index], length[index] = 0.0, 0
        if (length[left > 0] >= max_episode_steps).any():
            raise EvaluationError(
                f"an evaluation episode of {type(env).__name__} did not end within {max_episode_steps} steps; limit "
                "episodes in the environment, or raise max_episode_steps"
            )
    return _summary(np.array(returns), np.array(lengths), np.array(successes))


class _Player:
    """Steps the environments with the policy and keeps its memory."""

    def __init__(self, policy: ActingPolicy, env: AnyVecEnv, seed: int, deterministic: bool) -> None:
        self._policy, self._env, self._deterministic = policy, env, deterministic
        self._generator = torch.Generator(policy.device).manual_seed(seed)
        self._memory = policy.initial_memory(env.num_envs)
        self._starts = torch.ones(env.num_envs, dtype=torch.bool, device=policy.device)
        agents = (env.num_agents,) if isinstance(env, MultiAgentVecEnv) else ()
        self._shape = (env.num_envs, *agents)
        self.success: Tensor | None = None
        self._extras: Any
        self._obs, self._extras = env.reset(seed=seed)

    @torch.inference_mode()
    def step(self) -> tuple[Floats, Bools, Bools]:
        """Return rewards (team means if there are several agents), dones, and which rows were more than a reset."""
        policy, extras = self._policy, self._extras
        present = extras.get("agent_mask")
        obs = self._obs.to(policy.device)
        if obs.is_floating_point():
            obs = obs.to(policy.dtype)
        outputs = policy.act(obs, self._memory, self._starts)
        mask = extras.get("action_mask")
        distribution = policy.distribution(outputs, None if mask is None else mask.to(policy.device))
        actions = distribution.mode() if self._deterministic else distribution.sample(self._generator)
        self._obs, rewards, dones, self._extras = self._env.step(actions.to(self._env.device))
        rewards, dones, _, _ = read_step(self._shape, rewards, dones, self._extras)
        self.success = self._extras.get("success")
        ignored: Any = self._extras.get("ignore")
        self._starts = (dones if ignored is None else dones | ignored).to(policy.device)
        if isinstance(self._env, MultiAgentVecEnv):
            rewards = _team_mean(rewards, present)
        counted = np.ones(self._env.num_envs, dtype=bool) if ignored is None else ~ignored.cpu().numpy()
        return rewards.cpu().numpy().astype(np.float64), dones.cpu().numpy(), counted


def _team_mean(rewards: Tensor, present: Any) -> Tensor:  # noqa: ANN401 - a tensor by the contract of multi-agent envs
    weights = present.to(rewards.dtype)
    mean: Tensor = (rewards * weights).sum(-1) / weights.sum(-1).clamp(min=1.0)
    return mean


def _summary(returns: Floats, lengths: Ints, successes: Floats) -> dict[str, float]:
    from scipy.special import stdtrit  # slow to import

    count, mean = len(returns), float(returns.mean())
    std = float(returns.std(ddof=1)) if count > 1 else 0.0
    half = float(stdtrit(count - 1, 0.5 + _CONFIDENCE / 2)) * std / math.sqrt(count) if count > 1 else math.nan
    known = successes[~np.isnan(successes)]
    rate = {"eval/success_rate": float(known.mean())} if len(known) else {}
    return rate | {
        "eval/mean_reward": mean,
        "eval/std_reward": std,
        "eval/min_reward": float(returns.min()),
        "eval/max_reward": float(returns.max()),
        "eval/ci_low": mean - half,
        "eval/ci_high": mean + half,
        "eval/mean_length": float(lengths.mean()),
        "eval/num_episodes": float(count),
    }
