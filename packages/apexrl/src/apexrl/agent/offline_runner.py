"""The runner of algorithms that learn from recordings: one iteration is one epoch over the dataset."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from gymnasium.spaces import Space

from apexrl.agent.callbacks import Callback
from apexrl.agent.runner import Runner
from apexrl.agent.session import LearnResult, make_goal
from apexrl.algorithms.awr import AWR
from apexrl.algorithms.bc import BC
from apexrl.algorithms.offline import OfflineAlgorithm, OfflineConfig
from apexrl.collect.collector import AnyVecEnv
from apexrl.models.base import Policy, ValueFunction
from apexrl.storage.offline import OfflineDataset


class OfflineRunner(Runner):
    """Trains BC or AWR on a dataset, with the callbacks, checkpoints and metrics of the other runners.

    A step is one recorded decision seen in training, so ``total_timesteps`` counts decisions over all epochs.

    Args:
        dataset: What to learn from.
        observation_space: Space of one observation; not needed with ``agent`` or ``eval_env``.
        action_space: Space of one action; likewise.
        algorithm: ``"bc"`` or ``"awr"``.
        actor_class: The policy network; if None, the MLP for the action space.
        critic_class: The value network of AWR; if None, an MLP.
        actor_cfg: Keyword arguments of the actor.
        critic_cfg: Keyword arguments of the critic.
        cfg: Hyperparameters; if None, the algorithm's defaults.
        agent: An algorithm that exists already, instead of the above.
        validation: Decisions held out; measured every epoch under ``validation/``.
        log_dir: Where TensorBoard events and ``metrics.jsonl`` go; None logs nowhere.
        save_dir: Where checkpoints go; if None, ``log_dir/checkpoints``.
        device: Where to learn.
        log_interval: Log every so many epochs, and the last; 0 never logs.
        save_interval: Save every so many epochs; 0 never saves.
        eval_env: Environments to play on; needed for :meth:`eval`.
        eval_interval: Play every so many epochs; 0 never does by itself.
        eval_episodes: Episodes per periodic evaluation.
        keep_last: How many periodic checkpoints stay; None keeps all.
        show_progress: Whether to draw a progress bar.
    """

    algorithms: ClassVar[dict[str, type[OfflineAlgorithm]]] = {"bc": BC, "awr": AWR}

    def __init__(
        self,
        dataset: OfflineDataset,
        observation_space: Space[Any] | None = None,
        action_space: Space[Any] | None = None,
        algorithm: str = "bc",
        actor_class: type[Policy] | None = None,
        critic_class: type[ValueFunction] | None = None,
        actor_cfg: Mapping[str, Any] | None = None,
        critic_cfg: Mapping[str, Any] | None = None,
        *,
        cfg: OfflineConfig | None = None,
        agent: OfflineAlgorithm | None = None,
        validation: OfflineDataset | None = None,
        log_dir: str | Path | None = None,
        save_dir: str | Path | None = None,
        device: torch.device | str = "cpu",
        log_interval: int = 1,
        save_interval: int = 0,
        eval_env: AnyVecEnv | None = None,
        eval_interval: int = 0,
        eval_episodes: int = 20,
        keep_last: int | None = None,
        show_progress: bool = True,
    ) -> None:
        if agent is None:
            if algorithm not in self.algorithms:
                raise ValueError(f"unknown algorithm {algorithm!r}: OfflineRunner knows {', '.join(self.algorithms)}")
            spaces = _spaces(observation_space, action_space, eval_env)
            algorithm_class = self.algorithms[algorithm]
            agent = algorithm_class(*spaces, cfg, actor_class, critic_class, actor_cfg, critic_cfg, device)
        elif cfg is not None and cfg != agent.cfg:
            raise ValueError(f"cfg={cfg} differs from agent.cfg={agent.cfg}; give one of them, or the same to both")
        super().__init__(
            agent,
            log_dir=log_dir,
            save_dir=save_dir,
            log_interval=log_interval,
            save_interval=save_interval,
            train_env=None,
            eval_env=eval_env,
            eval_interval=eval_interval,
            eval_episodes=eval_episodes,
            keep_last=keep_last,
            show_progress=show_progress,
        )
        self.agent = agent
        self.dataset, self.validation = dataset, validation

    def learn(
        self, total_timesteps: int | None = None, num_iterations: int | None = None, max_seconds: float | None = None
    ) -> LearnResult:
        """Train for whole epochs.

        Args:
            total_timesteps: The total of decisions to see, those before a resume included.
            num_iterations: Instead: so many further epochs.
            max_seconds: Wall-clock budget; the epoch under way is finished.

        Returns:
            How far it came, and why it ended.
        """
        goal = make_goal(self.total_timesteps, len(self.dataset), total_timesteps, num_iterations)
        with self._session(goal, max_seconds) as session:
            while not session.is_over(self.total_timesteps):
                session.emit("pre_iteration")
                if session.is_over(self.total_timesteps):
                    break
                session.emit("pre_update")
                stats = self.agent.update(self.dataset)
                session.emit("post_update", stats)

                self.iteration += 1
                self.total_timesteps += len(self.dataset)
                if self.validation is not None:
                    stats |= self.agent.validate(self.validation)
                if self._due(self.eval_interval):
                    stats |= self.eval(self.eval_episodes)
                stats |= session.throughput(len(self.dataset))
                last = session.is_over(self.total_timesteps)
                session.report(self.total_timesteps, stats, log=self._due(self.log_interval, also=last))
                self._save_if_due(session)
                session.emit("post_iteration", stats)
            self._save_if_interrupted(session)
            return session.result(self.total_timesteps, self.iteration)

    def add_callback(self, event: str, callback: Callback) -> None:
        """Call ``callback`` at an event of every epoch; there are no rollouts here, so no rollout events.

        Args:
            event: ``pre_`` or ``post_`` with ``iteration`` or ``update``.
            callback: As in the other runners.
        """
        if event in ("pre_rollout", "post_rollout"):
            raise ValueError(
                f"event {event!r} never comes: offline training has no rollouts; use pre_update or post_update"
            )
        super().add_callback(event, callback)


def _spaces(
    observation_space: Space[Any] | None, action_space: Space[Any] | None, env: AnyVecEnv | None
) -> tuple[Space[Any], Space[Any]]:
    observation_space = observation_space or (None if env is None else env.observation_space)
    action_space = action_space or (None if env is None else env.action_space)
    if observation_space is None or action_space is None:
        raise ValueError("the networks need spaces: pass observation_space and action_space, or eval_env, or agent")
    return observation_space, action_space
