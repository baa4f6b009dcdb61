"""The on-policy runner: PPO on vectorised environments.

Glossary:
    step: one step of one environment.
    rollout: ``num_steps`` steps of every environment, all made by one policy version.
    iteration: one rollout and the update that learns from it.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from apexrl.agent.evaluation import Evaluator, PolicyRunner, check_fits
from apexrl.agent.learner import Learner
from apexrl.algorithms.actor_critic import PolicySnapshot
from apexrl.algorithms.losses import masked_mean
from apexrl.algorithms.offline import OfflineAlgorithm, OfflineConfig
from apexrl.algorithms.ppo import PPO
from apexrl.algorithms.ppo_config import PPOConfig
from apexrl.collect.collector import EnvFactory, ExecutorGroups, Groups
from apexrl.collect.env_group import AnyVecEnv, InlineGroups
from apexrl.configuration import to_mapping
from apexrl.envs.coercion import as_vec_env
from apexrl.envs.multi_agent import MultiAgentVecEnv
from apexrl.envs.vec_env import NotAnEnvError, VecEnv
from apexrl.execution.executor import Executor
from apexrl.models.base import Policy, ValueFunction
from apexrl.runs.errors import ConfigurationError
from apexrl.runs.session import Files, Sink
from apexrl.storage.rollout import EpisodeTable, RolloutStorage

logger = logging.getLogger(__name__)


class OnPolicyLearner(Learner):
    """Collects rollouts with the present policy and learns from each once.

    Args:
        agent: The algorithm.
        groups: Where the environments live.
        evaluator: Plays on environments of its own.
        log_reward_components: Whether to report the mean of each reward component per episode.
    """

    files = Files(events=".", has_log=False)

    def __init__(self, agent: PPO, groups: Groups, evaluator: Evaluator, log_reward_components: bool) -> None:
        self.name = f"apexrl.{agent.name}"
        self.agent, self.groups, self.evaluator = agent, groups, evaluator
        self.storage = RolloutStorage(agent.cfg.num_steps, groups.num_envs, agent.device)
        self._episodes = EpisodeWindow()
        self._log_reward_components = log_reward_components

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
        """Steps of a rollout, T × N."""
        return self.agent.cfg.num_steps * self.groups.num_envs

    def collect(self) -> dict[str, float]:
        """Collect one rollout under the current policy and return its metrics."""
        agent, storage = self.agent, self.storage
        snapshot = PolicySnapshot(agent.version, agent.policy)
        # act → step → store, T times in every env group; then all fragments of one version meet at the barrier
        storage.fill(agent.version, self.groups.collect(snapshot, storage.num_steps, agent.cfg.sequence_length))
        self._episodes.add(storage.episodes())
        return rollout_stats(storage) | self._episodes.stats(self._log_reward_components)

    def update(self) -> dict[str, float]:
        """Learn from the rollout: returns, then epochs of minibatches."""
        return self.agent.update(self.storage)

    def evaluate(self, **options: Any) -> dict[str, float]:  # noqa: ANN401 - of the evaluator
        """Play whole episodes on environments of their own."""
        return self.evaluator(**options)

    def start(self, fraction: float) -> None:
        """Set the learning rate of a schedule that depends on how much of the run is done."""
        self.agent.start_schedule(fraction)

    def adjust(self, fraction: float) -> None:
        """Move the learning rate by its schedule."""
        self.agent.adjust_learning_rate(fraction)

    def reset_learning_rate(self) -> None:
        """Take the configuration's learning rate instead of the loaded one."""
        self.agent.set_learning_rate(self.agent.cfg.learning_rate)

    def state_dict(self) -> dict[str, Any]:
        """Return algorithm, environments and the episodes under way."""
        return {
            "agent": self.agent.state_dict(),
            "num_envs": self.groups.num_envs,
            "groups": self.groups.state_dicts(),
            "episodes": self._episodes.state_dict(),
            "blueprint": self.agent.blueprint(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`; environments that cannot start fresh episodes."""
        agent = self.agent
        agent.load_state_dict(state["agent"])
        self._episodes.load_state_dict(state["episodes"])
        if state["num_envs"] != self.groups.num_envs:
            logger.warning(
                "the checkpoint was made with %d environments, this runner has %d: it starts fresh episodes",
                state["num_envs"],
                self.groups.num_envs,
            )
            return
        exact = self.groups.load_state_dicts(state["groups"], PolicySnapshot(agent.version, agent.policy))
        if not exact:
            logger.warning(
                "the environments cannot restore their state: the run starts fresh episodes and does not resume exactly"
            )

    def close(self) -> None:
        """Close the training and evaluation environments."""
        self.groups.close()
        self.evaluator.close()


class OnPolicyRunner(PolicyRunner):
    """Trains PPO on a vectorised environment.

    Args:
        env: The training environments: one ``VecEnv``, or a list of functions that make one env group each. What
            :func:`apexrl.envs.as_vec_env` understands is taken too: ``"CartPole-v1"``, ``gym.make(…)``, …
        algorithm: Name of the algorithm in any case, such as ``"ppo"``, or its class; if None, the runner's default.
        actor_class: The policy network; if None, the MLP for the action space.
        critic_class: The value network; if None, an MLP.
        actor_cfg: Keyword arguments of the actor.
        critic_cfg: Keyword arguments of the critic.
        cfg: Hyperparameters; if None, the algorithm's defaults.
        agent: An algorithm that exists already, instead of everything above but ``env``, and of ``device``.
        log_dir: Where TensorBoard events and ``metrics.jsonl`` go; None logs nowhere.
        save_dir: Where checkpoints go and relative names are resolved; if None, ``log_dir/checkpoints``.
        device: Where to learn; None and ``"auto"`` take the environment's device if it is a GPU, else CUDA if there is
            one, else the CPU. CUDA falls back to the CPU with a warning.
        log_interval: Log every so many iterations, and the last; 0 never logs.
        save_interval: Save every so many iterations; 0 never saves.
        log_reward_components: Whether to log the mean of each reward component per episode.
        eval_env: Environments for evaluation only; if None, a copy of ``env``.
        eval_interval: Evaluate every so many iterations; 0 never does by itself.
        eval_episodes: Episodes per periodic evaluation.
        executor: Steps env groups in its workers; needs ``env`` as a list of functions.
        keep_last: How many periodic checkpoints stay, beside the best one evaluated; None keeps all.
        sinks: Where metrics go: ``"tensorboard"``, ``"jsonl"``, ``"csv"``, ``"wandb"``, or objects with ``write``,
            ``flush`` and ``close``; if None, the first two.
        show_progress: Whether to draw a progress bar (plain lines where there is no terminal).

    Attributes:
        agent: The algorithm.
        iteration: Iterations finished so far, those before a resume included.
        total_timesteps: Steps so far, likewise.
    """

    algorithms: ClassVar[Mapping[str, type[PPO]]] = {"ppo": PPO}
    default_algorithm = "ppo"
    agent: PPO

    def __init__(
        self,
        env: Any,  # noqa: ANN401 - whatever stands for environments
        algorithm: str | type[PPO] | None = None,
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
        eval_env: Any = None,  # noqa: ANN401 - likewise
        eval_interval: int = 0,
        eval_episodes: int = 20,
        executor: Executor | None = None,
        keep_last: int | None = None,
        sinks: Sequence[Sink] | None = None,
        show_progress: bool = True,
    ) -> None:
        env, template = _coerced(env)
        if agent is None:
            chosen = self.algorithm_class(algorithm)
            agent = chosen(self._checked(template), cfg, actor_class, critic_class, actor_cfg, critic_cfg, device)
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
            check_fits(agent.policy.actor, template, "env")
        eval_env = None if eval_env is None else as_vec_env(eval_env)
        # A list of factories leaves the template unused by training, so evaluation may have it.
        spare = template if isinstance(env, Sequence) else None
        groups = _make_groups(env, template, executor, agent.cfg.seed)
        evaluator = Evaluator(agent, template if spare is None else None, eval_env or spare, eval_episodes)
        self.learner: OnPolicyLearner
        super().__init__(
            OnPolicyLearner(agent, groups, evaluator, log_reward_components),
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
        self.agent = agent

    def _checked(self, env: AnyVecEnv) -> AnyVecEnv:
        """Refuse environments of several agents, which this runner's algorithms do not know."""
        if isinstance(env, MultiAgentVecEnv):
            raise NotAnEnvError(
                f"env is a {type(env).__name__} with {env.num_agents} agents",
                f"{type(self).__name__} trains a single agent",
                "use MultiAgentRunner (MAPPO)",
            )
        return env

    @classmethod
    def from_checkpoint(
        cls,
        path: str | Path,
        env: Any,  # noqa: ANN401 - whatever stands for environments
        *,
        algorithm: str | type[PPO] | None = None,
        actor_class: type[Policy] | None = None,
        critic_class: type[ValueFunction] | None = None,
        actor_cfg: Mapping[str, Any] | None = None,
        critic_cfg: Mapping[str, Any] | None = None,
        cfg: PPOConfig | None = None,
        device: torch.device | str | None = None,
        reset_learning_rate: bool = False,
        **options: Any,  # noqa: ANN401 - of the runner
    ) -> Self:
        """Build the runner of a checkpoint, with the run's networks, optimiser, counters and environments' state.

        Args:
            path: What ``save_checkpoint`` or a periodic save wrote.
            env: The training environments.
            algorithm: As in the constructor.
            actor_class: The policy network, if it is a class of your own.
            critic_class: The value network, likewise.
            actor_cfg: Keyword arguments of the actor, if the checkpoint could not hold them.
            critic_cfg: Keyword arguments of the critic, likewise.
            cfg: Other hyperparameters than the checkpoint's.
            device: Where to learn.
            reset_learning_rate: Learn with the learning rate of ``cfg`` instead of the checkpoint's.
            **options: Further arguments of the constructor, such as ``log_dir``.
        """
        networks = {"actor_class": actor_class, "critic_class": critic_class, "actor_cfg": actor_cfg}
        agent = cls.algorithm_class(algorithm).load(
            path, cfg=cfg, **networks, critic_cfg=critic_cfg, device=device, reset_learning_rate=True
        )
        runner = cls(env, agent=agent, **options)
        # The state is loaded once more with everything else; this decides which learning rate holds, and says so.
        runner.load_checkpoint(Path(path).resolve(), reset_learning_rate=reset_learning_rate)
        return runner

    @property
    def storage(self) -> RolloutStorage:
        """The latest rollout."""
        return self.learner.storage

    def collect_rollout(self) -> dict[str, float]:
        """Collect one rollout under the current policy and return its metrics."""
        return self.learner.collect()


def _coerced(env: Any) -> tuple[AnyVecEnv | Sequence[EnvFactory], AnyVecEnv]:  # noqa: ANN401 - whatever stands for one
    """Return environments as they are stepped, and one batch that tells their spaces."""
    if isinstance(env, Sequence) and not isinstance(env, str) and env and callable(env[0]):
        first = env[0]()
        if isinstance(first, VecEnv | MultiAgentVecEnv):
            return env, first
    batch = as_vec_env(env)
    return batch, batch


def refuse_beside_agent(agent: PPO | OfflineAlgorithm, cfg: PPOConfig | OfflineConfig | None, **given: object) -> None:
    """Refuse arguments that an existing agent has already decided; an equal configuration is fine."""
    names = [f"{name}={value!r}" for name, value in given.items() if value is not None]
    if names:
        raise ConfigurationError(
            f"agent= and {', '.join(names)} are given",
            "an agent has its algorithm, networks and device already, and they would be ignored",
            "leave them out, or leave agent out",
        )
    if cfg is not None and cfg != agent.cfg:
        raise ConfigurationError(
            f"cfg={cfg} differs from agent.cfg={agent.cfg}",
            "an agent has its configuration already",
            "give one of them",
        )


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


_WINDOW = 100
"""How many of the latest episodes the means are taken over."""


class EpisodeWindow:
    """The latest finished episodes.

    Args:
        size: How many of them to keep. Raising it makes the means smoother and slower.
    """

    def __init__(self, size: int = _WINDOW) -> None:
        self._size = size
        self._table = EpisodeTable(returns=np.zeros(0), lengths=np.zeros(0, dtype=np.int64))
        self.total = 0

    def add(self, finished: EpisodeTable) -> None:
        """Add the episodes of a rollout."""
        self.total += len(finished)
        self._table = EpisodeTable.concatenate([self._table, finished]).last(self._size)

    def stats(self, with_components: bool) -> dict[str, float]:
        """Return means over the window; only the count before the first episode has ended."""
        table = self._table
        if not len(table):
            return {"episode/count": 0.0}
        stats = {
            "episode/mean_reward": float(table.returns.mean()),
            "episode/mean_length": float(table.lengths.mean()),
            "episode/min_reward": float(table.returns.min()),
            "episode/max_reward": float(table.returns.max()),
            "episode/count": float(self.total),
        }
        if with_components:
            for name, values in table.components.items():
                if np.isfinite(values).any():
                    stats[f"reward_components/{name}"] = float(np.nanmean(values))
        if table.successes is not None and np.isfinite(table.successes).any():
            stats["episode/success_rate"] = float(np.nanmean(table.successes))
        return stats

    def state_dict(self) -> dict[str, Any]:
        """Return the episodes in the window."""
        return {
            "total": self.total,
            "returns": torch.from_numpy(self._table.returns.copy()),
            "lengths": torch.from_numpy(self._table.lengths.copy()),
            "components": {name: torch.from_numpy(values.copy()) for name, values in self._table.components.items()},
            "successes": None if self._table.successes is None else torch.from_numpy(self._table.successes.copy()),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a window from :meth:`state_dict`."""
        self.total = state["total"]
        successes = state.get("successes")
        self._table = EpisodeTable(
            returns=state["returns"].cpu().numpy().copy(),
            lengths=state["lengths"].cpu().numpy().copy(),
            components={name: values.cpu().numpy().copy() for name, values in state["components"].items()},
            successes=None if successes is None else successes.cpu().numpy().copy(),
        )


def rollout_stats(storage: RolloutStorage) -> dict[str, float]:
    """Compute means over all steps of a rollout, and collect what the environments logged."""
    valid: Tensor | None = storage.steps.get("valid")
    samples = storage.steps["rewards"].numel() if valid is None else int(valid.sum())
    stats = {
        "rollout/mean_reward": float(masked_mean(storage.steps["rewards"], valid)),
        "rollout/mean_value": float(masked_mean(storage.steps["values"], valid)),
        "rollout/num_samples": float(samples),
        "rollout/policy_version": float(storage.policy_version or 0),
    }
    return stats | {_metric_name(name): value for name, value in storage.log().items()}


def _metric_name(name: str) -> str:
    """Return the metric for a key of ``extras["log"]``: grouped keys keep their group, others go under ``env/``."""
    bare = name.lstrip("/")
    return bare if "/" in bare else f"env/{bare}"
