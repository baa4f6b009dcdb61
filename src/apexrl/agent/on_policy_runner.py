"""The runner of document 003: trains an on-policy algorithm, logs, evaluates, saves and resumes.

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

from apexrl.agent.callbacks import Callback, Callbacks
from apexrl.agent.checkpointing import Checkpointing
from apexrl.agent.episode_window import EpisodeWindow
from apexrl.agent.evaluation import evaluate, separate_env
from apexrl.agent.session import LearnResult, Session, make_goal
from apexrl.agent.statistics import rollout_stats
from apexrl.algorithms.ppo import PPO
from apexrl.algorithms.ppo_config import PPOConfig
from apexrl.collect.collector import AnyVecEnv, EnvFactory, ExecutorGroups, Groups, InlineGroups, collect_rollout
from apexrl.collect.env_group import derived_seed
from apexrl.collect.snapshot import PolicySnapshot
from apexrl.execution.executor import Executor
from apexrl.models.base import Policy, ValueFunction
from apexrl.storage.rollout import RolloutStorage

logger = logging.getLogger(__name__)


class OnPolicyRunner:
    """Trains PPO on a vectorised environment.

    Args:
        env: The training environments: one ``VecEnv``, or a list of functions that make one env group each.
        algorithm: Name of the algorithm, such as ``"ppo"``; the runner's own default without.
        actor_class: The policy network; the MLP for the action space without.
        critic_class: The value network; an MLP without.
        actor_cfg: Keyword arguments of the actor.
        critic_cfg: Keyword arguments of the critic.
        cfg: Hyperparameters; the algorithm's defaults without.
        agent: An algorithm that exists already, instead of everything above but ``env``.
        log_dir: Where TensorBoard events and ``metrics.jsonl`` go; None logs nowhere.
        save_dir: Where checkpoints go and relative names are resolved; ``log_dir/checkpoints`` without.
        device: Where to learn; the environment's device without. CUDA falls back to the CPU with a warning.
        log_interval: Log every so many iterations, and the first and the last; 0 never logs.
        save_interval: Save every so many iterations; 0 never saves.
        log_reward_components: Whether to log the mean of each reward component per episode.
        eval_env: Environments for evaluation only; a copy of ``env`` without.
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
        self.agent = agent
        self.iteration = 0
        self.total_timesteps = 0
        self.log_dir = None if log_dir is None else Path(log_dir)
        self.log_interval, self.save_interval = (
            _interval("log_interval", log_interval),
            _interval("save_interval", save_interval),
        )
        self.eval_interval, self.eval_episodes = _interval("eval_interval", eval_interval), eval_episodes
        self.log_reward_components = log_reward_components
        self.show_progress = show_progress
        self._groups = _make_groups(env, template, executor, agent.cfg.seed)
        # A list of factories leaves the template unused by training, so evaluation may have it.
        self._eval_env = eval_env or (template if isinstance(env, Sequence) else None)
        self._train_env = template
        self.storage = RolloutStorage(agent.cfg.num_steps, self._groups.num_envs, agent.device)
        self._callbacks = Callbacks()
        self._episodes = EpisodeWindow()
        self._latest_eval: dict[str, float] = {}
        folder = Path(save_dir) if save_dir is not None else (self.log_dir / "checkpoints" if self.log_dir else None)
        self._checkpoints = Checkpointing(folder, f"apexrl.{agent.name}", agent.cfg, keep_last)

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
        with Session(goal, self._emit, self.log_dir, max_seconds, self.show_progress) as session:
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
                if self._due(self.save_interval):
                    session.flush()
                    self._checkpoints.save_periodic(self.iteration, self.state_dict(), self._latest_eval)
                session.emit("post_iteration", stats)
            if session.interrupted:
                session.flush()
                self._checkpoints.save_interrupted(self.iteration, self.state_dict(), self._latest_eval)
            return session.result(self.total_timesteps, self.iteration)

    def _due(self, interval: int, also: bool = False) -> bool:
        """Whether something that happens every ``interval`` iterations happens now; 0 is never."""
        return interval > 0 and (self.iteration % interval == 0 or also)

    def collect_rollout(self) -> dict[str, float]:
        """Collect one rollout under the present policy and return what it showed."""
        snapshot = PolicySnapshot(self.agent.version, self.agent.policy)
        collect_rollout(self._groups, snapshot, self.storage, self.agent.cfg.sequence_length)
        self._episodes.add(self.storage.episodes())
        return rollout_stats(self.storage) | self._episodes.stats(self.log_reward_components)

    def _emit(self, event: str, stats: Mapping[str, float] | None) -> str | None:
        return self._callbacks.emit(event, self, stats)

    def add_callback(self, event: str, callback: Callback) -> None:
        """Call ``callback`` at an event of every iteration; see :mod:`apexrl.agent.callbacks`.

        Args:
            event: ``pre_`` or ``post_`` with ``iteration``, ``rollout`` or ``update``.
            callback: Takes the runner, or at ``post_`` events the runner and the statistics. Returning False, or
                raising ``StopTraining``, ends training; other exceptions are raised.
        """
        self._callbacks.add(event, callback)

    def eval(self, num_episodes: int = 100, deterministic: bool = True, seed: int | None = None) -> dict[str, float]:
        """Play whole episodes on environments of their own; training and its statistics are not touched.

        Args:
            num_episodes: Exactly so many count, a fixed number per environment.
            deterministic: Take the most probable action.
            seed: Of the episodes; derived from the run's seed without, so every evaluation plays the same ones.
        """
        if self._eval_env is None:
            self._eval_env = separate_env(self._train_env)
        if seed is None:
            seed = derived_seed(self.agent.cfg.seed, 3)
        self._latest_eval = evaluate(self.agent.policy, self._eval_env, num_episodes, seed, deterministic)
        return dict(self._latest_eval)

    def state_dict(self) -> dict[str, Any]:
        """Everything that the run needs to go on as if it had not stopped."""
        return {
            "agent": self.agent.state_dict(),
            "iteration": self.iteration,
            "total_timesteps": self.total_timesteps,
            "num_envs": self._groups.num_envs,
            "groups": self._groups.state_dicts(),
            "episodes": self._episodes.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state that :meth:`state_dict` gave."""
        self.agent.load_state_dict(state["agent"])
        self.iteration = state["iteration"]
        self.total_timesteps = state["total_timesteps"]
        self._episodes.load_state_dict(state["episodes"])
        if state["num_envs"] != self._groups.num_envs:
            logger.warning(
                "the checkpoint was made with %d environments, this runner has %d: it would go on with fresh episodes",
                state["num_envs"],
                self._groups.num_envs,
            )
            return
        exact = self._groups.load_state_dicts(state["groups"], PolicySnapshot(self.agent.version, self.agent.policy))
        if not exact:
            logger.warning(
                "the environments cannot restore their state: the run goes on with fresh episodes, not bit by bit"
            )

    def save_checkpoint(self, name: str | Path) -> Path:
        """Save everything under a name; relative names are resolved under ``save_dir``.

        Returns:
            Where it was written.
        """
        return self._checkpoints.save_named(name, self.iteration, self.state_dict(), self._latest_eval)

    def load_checkpoint(self, name: str | Path) -> None:
        """Load what ``save_checkpoint`` or a periodic save wrote, and go on from there.

        Args:
            name: Relative names are resolved under ``save_dir``.

        Raises:
            CheckpointMissingError: There is no such file.
            CheckpointDamagedError: The file is damaged.
            SchemaMismatchError: It belongs to another algorithm.
        """
        self._checkpoints.load_named(name, self.load_state_dict)

    def resume(self) -> bool:
        """Load the newest sound checkpoint of ``save_dir``, if there is one; returns whether there was."""
        return self._checkpoints.load_latest(self.load_state_dict)

    def close(self) -> None:
        """Close the training and evaluation environments."""
        self._groups.close()
        if self._eval_env is not None:
            self._eval_env.close()


def _interval(name: str, value: int) -> int:
    if value < 0:
        raise ValueError(f"{name}={value} must be 0 (never) or a positive number of iterations")
    return value


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
