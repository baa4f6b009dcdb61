"""The on-policy runner: trains, logs, evaluates, saves and resumes.

Glossary:
    step: one step of one environment.
    rollout: ``num_steps`` steps of every environment, all made by one policy version.
    iteration: one rollout and the update that learns from it.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from apexrl.agent.rollout_metrics import EpisodeWindow, rollout_stats
from apexrl.agent.runner import Runner
from apexrl.agent.session import LearnResult, make_goal
from apexrl.algorithms.actor_critic import PolicySnapshot
from apexrl.algorithms.ppo import PPO
from apexrl.algorithms.ppo_config import PPOConfig
from apexrl.collect.collector import (
    AnyVecEnv,
    EnvFactory,
    ExecutorGroups,
    Groups,
    InlineGroups,
    collect_rollout,
)
from apexrl.execution.executor import Executor
from apexrl.models.base import Policy, ValueFunction
from apexrl.storage.rollout import RolloutStorage

logger = logging.getLogger(__name__)


class OnPolicyRunner(Runner):
    """Trains PPO on a vectorised environment.

    Args:
        env: The training environments: one ``VecEnv``, or a list of functions that make one env group each.
        algorithm: Name of the algorithm, such as ``"ppo"``; if None, the runner's default.
        actor_class: The policy network; if None, the MLP for the action space.
        critic_class: The value network; if None, an MLP.
        actor_cfg: Keyword arguments of the actor.
        critic_cfg: Keyword arguments of the critic.
        cfg: Hyperparameters; if None, the algorithm's defaults.
        agent: An algorithm that exists already, instead of everything above but ``env``.
        log_dir: Where TensorBoard events and ``metrics.jsonl`` go; None logs nowhere.
        save_dir: Where checkpoints go and relative names are resolved; if None, ``log_dir/checkpoints``.
        device: Where to learn; if None, the environment's device. CUDA falls back to the CPU with a warning.
        log_interval: Log every so many iterations, and the last; 0 never logs.
        save_interval: Save every so many iterations; 0 never saves.
        log_reward_components: Whether to log the mean of each reward component per episode.
        eval_env: Environments for evaluation only; if None, a copy of ``env``.
        eval_interval: Evaluate every so many iterations; 0 never does by itself.
        eval_episodes: Episodes per periodic evaluation.
        executor: Steps env groups in its workers; needs ``env`` as a list of functions.
        keep_last: How many periodic checkpoints stay, beside the best one evaluated; None keeps all.
        show_progress: Whether to draw a progress bar (plain lines where there is no terminal).

    Attributes:
        agent: The algorithm.
        iteration: Iterations finished so far, those before a resume included.
        total_timesteps: Steps so far, likewise.
    """

    algorithms: ClassVar[dict[str, type[PPO]]] = {"ppo": PPO}
    default_algorithm: ClassVar[str] = "ppo"

    def __init__(
        self,
        env: AnyVecEnv | Sequence[EnvFactory],
        algorithm: str | None = None,
        actor_class: type[Policy] | None = None,
        critic_class: type[ValueFunction] | None = None,
        actor_cfg: Mapping[str, Any] | None = None,
        critic_cfg: Mapping[str, Any] | None = None,
        *,
        cfg: PPOConfig | None = None,
        agent: PPO | None = None,
        log_dir: str | Path | None = None,
        save_dir: str | Path | None = None,
        device: torch.device | str | None = None,
        log_interval: int = 10,
        save_interval: int = 100,
        log_reward_components: bool = True,
        eval_env: AnyVecEnv | None = None,
        eval_interval: int = 0,
        eval_episodes: int = 20,
        executor: Executor | None = None,
        keep_last: int | None = None,
        show_progress: bool = True,
    ) -> None:
        template = env[0]() if isinstance(env, Sequence) else env
        if agent is None:
            algorithm_class = self._algorithm_class(algorithm or self.default_algorithm)
            agent = algorithm_class(template, cfg, actor_class, critic_class, actor_cfg, critic_cfg, device)  # type: ignore[arg-type]  # each runner's algorithms take its kind of env
        elif cfg is not None and cfg != agent.cfg:
            raise ValueError(f"cfg={cfg} differs from agent.cfg={agent.cfg}; give one of them, or the same to both")
        # A list of factories leaves the template unused by training, so evaluation may have it.
        spare = template if isinstance(env, Sequence) else None
        super().__init__(
            agent,
            log_dir=log_dir,
            save_dir=save_dir,
            log_interval=log_interval,
            save_interval=save_interval,
            train_env=template,
            eval_env=eval_env or spare,
            eval_interval=eval_interval,
            eval_episodes=eval_episodes,
            keep_last=keep_last,
            show_progress=show_progress,
        )
        self.agent = agent
        self.log_reward_components = log_reward_components
        self._groups = _make_groups(env, template, executor, agent.cfg.seed)
        self.storage = RolloutStorage(agent.cfg.num_steps, self._groups.num_envs, agent.device)
        self._episodes = EpisodeWindow()

    def _algorithm_class(self, name: str) -> type[PPO]:
        if name not in self.algorithms:
            raise ValueError(f"unknown algorithm {name!r}: {type(self).__name__} knows {', '.join(self.algorithms)}")
        return self.algorithms[name]

    def learn(
        self, total_timesteps: int | None = None, num_iterations: int | None = None, max_seconds: float | None = None
    ) -> LearnResult:
        """Train. Iterations are whole: it ends with the first one that reaches the asked number of steps.

        Args:
            total_timesteps: The run's total of steps, those before a resume included.
            num_iterations: Instead: so many further iterations.
            max_seconds: Wall-clock budget; the iteration under way is finished.

        Returns:
            How many steps were made, and why it ended: at the goal, by a callback, by a signal or by the clock.
        """
        goal = make_goal(
            self.total_timesteps, self.agent.cfg.num_steps * self._groups.num_envs, total_timesteps, num_iterations
        )
        with self._session(goal, max_seconds) as session:
            while not session.is_over(self.total_timesteps):
                session.emit("pre_iteration")
                if session.is_over(self.total_timesteps):
                    break
                session.emit("pre_rollout")
                stats = self.collect_rollout()
                session.emit("post_rollout", stats)

                session.emit("pre_update")
                stats |= self.agent.update(self.storage)
                session.emit("post_update", stats)

                self.iteration += 1
                self.total_timesteps += self.storage.num_samples
                self.agent.adjust_learning_rate(goal.progress(self.total_timesteps))

                if self._due(self.eval_interval):
                    stats |= self.eval(self.eval_episodes)
                stats |= session.throughput(self.storage.num_samples)
                last = session.is_over(self.total_timesteps)
                session.report(self.total_timesteps, stats, log=self._due(self.log_interval, also=last))
                self._save_if_due(session)
                session.emit("post_iteration", stats)
            self._save_if_interrupted(session)
            return session.result(self.total_timesteps, self.iteration)

    def collect_rollout(self) -> dict[str, float]:
        """Collect one rollout under the current policy and return its metrics."""
        snapshot = PolicySnapshot(self.agent.version, self.agent.policy)
        collect_rollout(self._groups, snapshot, self.storage, self.agent.cfg.sequence_length)
        self._episodes.add(self.storage.episodes())
        return rollout_stats(self.storage) | self._episodes.stats(self.log_reward_components)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the run needs to resume exactly."""
        return super().state_dict() | {
            "num_envs": self._groups.num_envs,
            "groups": self._groups.state_dicts(),
            "episodes": self._episodes.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        super().load_state_dict(state)
        self._episodes.load_state_dict(state["episodes"])
        if state["num_envs"] != self._groups.num_envs:
            logger.warning(
                "the checkpoint was made with %d environments, this runner has %d: it starts fresh episodes",
                state["num_envs"],
                self._groups.num_envs,
            )
            return
        exact = self._groups.load_state_dicts(state["groups"], PolicySnapshot(self.agent.version, self.agent.policy))
        if not exact:
            logger.warning(
                "the environments cannot restore their state: the run starts fresh episodes and does not resume exactly"
            )

    def close(self) -> None:
        """Close the training and evaluation environments."""
        self._groups.close()
        super().close()


def _make_groups(
    env: AnyVecEnv | Sequence[EnvFactory], template: AnyVecEnv, executor: Executor | None, seed: int
) -> Groups:
    if not isinstance(env, Sequence):
        if executor is not None:
            raise ValueError(
                "an executor makes the environments in its workers: pass env as a list of functions that make one env "
                "group each"
            )
        return InlineGroups([env], seed)
    if executor is None:
        return InlineGroups([make() for make in env], seed)
    return ExecutorGroups(executor, env, [template.num_envs] * len(env), seed)
