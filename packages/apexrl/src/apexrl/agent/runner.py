"""What all runners share: callbacks, evaluation, checkpoints and counters. Each has its own loop."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from apexrl.agent.callbacks import Callback, Callbacks
from apexrl.agent.checkpointing import Checkpointing
from apexrl.agent.evaluation import EvaluationError, evaluate, separate_env
from apexrl.agent.session import Goal, Session
from apexrl.algorithms.actor_critic import ActingPolicy
from apexrl.collect.collector import AnyVecEnv
from apexrl.collect.env_group import derived_seed


class Learner(Protocol):
    """What a runner needs of an algorithm."""

    @property
    def name(self) -> str:
        """Its name in checkpoints."""

    @property
    def cfg(self) -> Any:  # noqa: ANN401 - each algorithm has its own class
        """Its configuration."""

    @property
    def policy(self) -> ActingPolicy:
        """The policy that acts."""

    def state_dict(self) -> dict[str, Any]:
        """Return everything that decides the next update."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore such a state."""


class Runner:
    """Base of the runners.

    Args:
        agent: The algorithm.
        log_dir: Where TensorBoard events and ``metrics.jsonl`` go; None logs nowhere.
        save_dir: Where checkpoints go and relative names are resolved; if None, ``log_dir/checkpoints``.
        log_interval: Log every so many iterations, and the last; 0 never logs.
        save_interval: Save every so many iterations; 0 never saves.
        train_env: What to copy for evaluation; None if there is no training environment.
        eval_env: Environments for evaluation only.
        eval_interval: Evaluate every so many iterations; 0 never does by itself.
        eval_episodes: Episodes per periodic evaluation.
        keep_last: How many periodic checkpoints stay, beside the best one evaluated; None keeps all.
        show_progress: Whether to draw a progress bar.

    Attributes:
        iteration: Iterations finished so far, those before a resume included.
        total_timesteps: Steps so far, likewise.
    """

    def __init__(
        self,
        agent: Learner,
        *,
        log_dir: str | Path | None,
        save_dir: str | Path | None,
        log_interval: int,
        save_interval: int,
        train_env: AnyVecEnv | None,
        eval_env: AnyVecEnv | None,
        eval_interval: int,
        eval_episodes: int,
        keep_last: int | None,
        show_progress: bool,
    ) -> None:
        for name, value in (("log", log_interval), ("save", save_interval), ("eval", eval_interval)):
            if value < 0:
                raise ValueError(f"{name}_interval={value} must be 0 (never) or a positive number of iterations")
        self._learner = agent
        self.iteration = 0
        self.total_timesteps = 0
        self.log_dir = None if log_dir is None else Path(log_dir)
        self.log_interval, self.save_interval, self.eval_interval = log_interval, save_interval, eval_interval
        self.eval_episodes = eval_episodes
        self.show_progress = show_progress
        self._train_env, self._eval_env = train_env, eval_env
        self._callbacks = Callbacks()
        self._latest_eval: dict[str, float] = {}
        folder = Path(save_dir) if save_dir is not None else (self.log_dir / "checkpoints" if self.log_dir else None)
        self._checkpoints = Checkpointing(folder, f"apexrl.{agent.name}", agent.cfg, keep_last)

    def _session(self, goal: Goal, max_seconds: float | None) -> Session:
        return Session(goal, self._emit, self.log_dir, max_seconds, self.show_progress)

    def _due(self, interval: int, also: bool = False) -> bool:
        """Return whether something that happens every ``interval`` iterations is due; 0 is never."""
        return interval > 0 and (self.iteration % interval == 0 or also)

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
            seed: Seed of the episodes; if None, derived from the run's seed: every evaluation plays the same ones.

        Returns:
            ``eval/mean_reward``, ``std_reward``, ``min_reward``, ``max_reward`` and more; see
            :func:`apexrl.agent.evaluation.evaluate`.
        """
        if self._eval_env is None:
            if self._train_env is None:
                raise EvaluationError("there is no environment to evaluate on; pass eval_env= to the runner")
            self._eval_env = separate_env(self._train_env)
        if seed is None:
            seed = derived_seed(self._learner.cfg.seed, 3)
        self._latest_eval = evaluate(self._learner.policy, self._eval_env, num_episodes, seed, deterministic)
        return dict(self._latest_eval)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the run needs to resume exactly."""
        return {
            "agent": self._learner.state_dict(),
            "iteration": self.iteration,
            "total_timesteps": self.total_timesteps,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self._learner.load_state_dict(state["agent"])
        self.iteration = state["iteration"]
        self.total_timesteps = state["total_timesteps"]

    def _save_if_due(self, session: Session) -> None:
        """Write the periodic checkpoint if it is due, after the metrics that belong to it."""
        if self._due(self.save_interval):
            session.flush()
            self._checkpoints.save_periodic(self.iteration, self.state_dict(), self._latest_eval)

    def _save_if_interrupted(self, session: Session) -> None:
        """Write a checkpoint if a signal ends the run."""
        if session.interrupted:
            session.flush()
            self._checkpoints.save_interrupted(self.iteration, self.state_dict(), self._latest_eval)

    def save_checkpoint(self, name: str | Path) -> Path:
        """Save everything under a name; relative names are resolved under ``save_dir``.

        Returns:
            Where it was written.
        """
        return self._checkpoints.save_named(name, self.iteration, self.state_dict(), self._latest_eval)

    def load_checkpoint(self, name: str | Path) -> None:
        """Load what ``save_checkpoint`` or a periodic save wrote, and continue from there.

        Args:
            name: Relative names are resolved under ``save_dir``.

        Raises:
            CheckpointMissingError: There is no such file.
            CheckpointDamagedError: The file is damaged.
            SchemaMismatchError: It belongs to another algorithm, or to networks of other shapes.
        """
        self._checkpoints.load_named(name, self.load_state_dict)

    def resume(self) -> bool:
        """Load the newest undamaged checkpoint of ``save_dir``, if there is one; return whether there was."""
        return self._checkpoints.load_latest(self.load_state_dict)

    def close(self) -> None:
        """Close the environments."""
        if self._eval_env is not None:
            self._eval_env.close()
