"""The runner of algorithms that learn from recordings: one iteration is one epoch over the dataset."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from gymnasium.spaces import Space

from apexrl.agent.evaluation import Evaluator, PolicyRunner
from apexrl.agent.learner import Learner
from apexrl.agent.on_policy_runner import refuse_beside_agent
from apexrl.algorithms.awr import AWR
from apexrl.algorithms.bc import BC
from apexrl.algorithms.offline import OfflineAlgorithm, OfflineConfig
from apexrl.collect.env_group import AnyVecEnv
from apexrl.configuration import to_mapping
from apexrl.envs.coercion import as_vec_env
from apexrl.models.base import Policy, ValueFunction
from apexrl.runs.session import Files, Sink
from apexrl.storage.offline import OfflineDataset


class OfflineLearner(Learner):
    """Learns from one epoch over a dataset per iteration.

    Args:
        agent: The algorithm.
        dataset: What to learn from.
        validation: Decisions held out, measured after every epoch; None if there are none.
        evaluator: Plays on environments of its own.
    """

    collects = False
    files = Files(events=".", has_log=False)

    def __init__(
        self,
        agent: OfflineAlgorithm,
        dataset: OfflineDataset,
        validation: OfflineDataset | None,
        evaluator: Evaluator,
    ) -> None:
        self.name = f"apexrl.{agent.name}"
        self.agent, self.dataset, self.validation, self.evaluator = agent, dataset, validation, evaluator

    @property
    def config(self) -> Mapping[str, Any]:
        """The algorithm's configuration."""
        return to_mapping(self.agent.cfg)

    @property
    def seed(self) -> int:
        """The algorithm's seed."""
        return self.agent.cfg.seed

    @property
    def per_iteration(self) -> int:
        """Decisions in an epoch."""
        return len(self.dataset)

    def update(self) -> dict[str, float]:
        """Learn from one epoch and measure the held-out decisions."""
        stats = self.agent.update(self.dataset)
        return stats if self.validation is None else stats | self.agent.validate(self.validation)

    def evaluate(self, **options: Any) -> dict[str, float]:  # noqa: ANN401 - of the evaluator
        """Play whole episodes on ``eval_env``."""
        return self.evaluator(**options)

    def reset_learning_rate(self) -> None:
        """Take the configuration's learning rate instead of the loaded one."""
        for group in self.agent.optimizer.param_groups:
            group["lr"] = self.agent.cfg.learning_rate

    def state_dict(self) -> dict[str, Any]:
        """Return the algorithm's state."""
        return {"agent": self.agent.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.agent.load_state_dict(state["agent"])

    def close(self) -> None:
        """Close the evaluation environments."""
        self.evaluator.close()


class OfflineRunner(PolicyRunner):
    """Trains BC or AWR on a dataset, with the callbacks, checkpoints and metrics of the other runners.

    A step is one recorded decision seen in training, so ``total_timesteps`` counts decisions over all epochs.

    Args:
        dataset: What to learn from.
        observation_space: Space of one observation; not needed with ``agent`` or ``eval_env``.
        action_space: Space of one action; likewise.
        algorithm: ``"bc"`` (if None) or ``"awr"``, in any case, or a class.
        actor_class: The policy network; if None, the MLP for the action space.
        critic_class: The value network of AWR; if None, an MLP.
        actor_cfg: Keyword arguments of the actor.
        critic_cfg: Keyword arguments of the critic.
        cfg: Hyperparameters; if None, the algorithm's defaults.
        agent: An algorithm that exists already, instead of the above.
        validation: Decisions held out; measured every epoch under ``validation/``.
        log_dir: Where TensorBoard events and ``metrics.jsonl`` go; None logs nowhere.
        save_dir: Where checkpoints go; if None, ``log_dir/checkpoints``.
        device: Where to learn; None and ``"auto"`` take CUDA if there is one, else the CPU.
        log_interval: Log every so many epochs, and the last; 0 never logs.
        save_interval: Save every so many epochs; 0 never saves.
        eval_env: Environments to play on, as ``OnPolicyRunner`` takes them; needed for :meth:`eval`.
        eval_interval: Play every so many epochs; 0 never does by itself.
        eval_episodes: Episodes per periodic evaluation.
        keep_last: How many periodic checkpoints stay; None keeps all.
        sinks: Where metrics go; if None, TensorBoard and lines of JSON.
        show_progress: Whether to draw a progress bar.
    """

    algorithms: ClassVar[Mapping[str, type[OfflineAlgorithm]]] = {"bc": BC, "awr": AWR}
    default_algorithm = "bc"
    agent: OfflineAlgorithm

    def __init__(
        self,
        dataset: OfflineDataset,
        observation_space: Space[Any] | None = None,
        action_space: Space[Any] | None = None,
        algorithm: str | type[OfflineAlgorithm] | None = None,
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
        device: torch.device | str | None = None,
        log_interval: int = 1,
        save_interval: int = 0,
        eval_env: Any = None,  # noqa: ANN401 - whatever stands for environments
        eval_interval: int = 0,
        eval_episodes: int = 20,
        keep_last: int | None = None,
        sinks: Sequence[Sink] | None = None,
        show_progress: bool = True,
    ) -> None:
        eval_env = None if eval_env is None else as_vec_env(eval_env)
        if agent is None:
            chosen = self.algorithm_class(algorithm)
            spaces = _spaces(observation_space, action_space, eval_env)
            agent = chosen(*spaces, cfg, actor_class, critic_class, actor_cfg, critic_cfg, device)
        else:
            refuse_beside_agent(
                agent,
                cfg,
                algorithm=algorithm,
                actor_class=actor_class,
                critic_class=critic_class,
                actor_cfg=actor_cfg,
                critic_cfg=critic_cfg,
                device=device,
            )
        self.learner: OfflineLearner
        super().__init__(
            OfflineLearner(agent, dataset, validation, Evaluator(agent, None, eval_env, eval_episodes)),
            log_dir=log_dir,
            save_dir=save_dir,
            log_interval=log_interval,
            save_interval=save_interval,
            eval_interval=eval_interval,
            keep_last=keep_last,
            sinks=sinks,
            show_progress=show_progress,
            raise_interrupt=True,
        )
        self.agent, self.dataset, self.validation = agent, dataset, validation


def _spaces(
    observation_space: Space[Any] | None, action_space: Space[Any] | None, env: AnyVecEnv | None
) -> tuple[Space[Any], Space[Any]]:
    observation_space = observation_space or (None if env is None else env.observation_space)
    action_space = action_space or (None if env is None else env.action_space)
    if observation_space is None or action_space is None:
        raise ValueError("the networks need spaces: pass observation_space and action_space, or eval_env, or agent")
    return observation_space, action_space
