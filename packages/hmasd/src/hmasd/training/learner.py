"""What the run loop trains here: an agent, its environments, and new networks after a long time without reward.

An *environment step* is one step of one environment, whatever its number of agents; a *batch* is ``batch_size``
environment steps, an equal share from each environment; an *agent sample* is one agent's part of an environment step.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from apexrl.agent.learner import Learner
from apexrl.configuration import to_mapping
from apexrl.runs.rng import capture_rng, global_streams, streams_from
from apexrl.runs.session import Files
from apexrl.storage.rollout import check_finite
from hmasd.agent import HMASDAgent
from hmasd.config import HMASDConfig
from hmasd.learning.protocols import Agent
from hmasd.tasks import make_agent, make_env
from hmasd.training.collection import BatchReport, Collector
from hmasd.training.evaluation import EvaluationResult, evaluate

logger = logging.getLogger(__name__)

FREE_FIELDS: Final = frozenset(
    {
        "total_steps",
        "batch_size",
        "num_envs",
        "device",
        "eval_interval",
        "eval_episodes",
        "eval_deterministic",
        "checkpoint_interval",
        "keep_checkpoints",
    }
)
"""Fields that may differ between a checkpoint and the run that resumes it."""
_RESTART_SEED_STRIDE: Final = 1_000_003
"""Distance between the seeds of two restarts, so that they differ from the seeds of other runs."""


@dataclass
class RestartState:
    """Counters of ``restart_steps``.

    Attributes:
        last_reward_step: Environment steps after the last batch with a rewarded episode, or at the last restart.
        restarts: Number of restarts so far.
        start_step: Environment steps at the last restart.
    """

    last_reward_step: int = 0
    restarts: int = 0
    start_step: int = 0

    def state_dict(self) -> dict[str, int]:
        """Return the counters under their names in checkpoints."""
        return {"fruitless_since": self.last_reward_step, "restarts": self.restarts, "started": self.start_step}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, int]) -> "RestartState":
        """Return the counters that :meth:`state_dict` described."""
        return cls(state.get("fruitless_since", 0), state.get("restarts", 0), state.get("started", 0))


class SyncLearner(Learner):
    """HMASD or a baseline under strictly synchronous training: one batch of one policy version, then the update.

    While it works, the global random streams, which PettingZoo modules may use, are the run's own and start from its
    seed; afterwards they are as they were before.

    Args:
        config: Task, algorithm and hyperparameters.

    Attributes:
        agent: The algorithm; replaced at a restart.
        collector: The training environments.
        env_steps: Environment steps so far.
        last_evaluation: Episodes of the last evaluation.
    """

    name = "hmasd.sync"
    schema_version = 2
    files = Files(
        metrics="metrics.jsonl",
        events="../tf-logs",
        has_log=False,
        checkpoints="../models",
        checkpoint="hmasd_sync_enhanced_{step}.pth",
        final="hmasd_sync_enhanced_final.pth",
    )
    free = FREE_FIELDS

    def __init__(self, config: HMASDConfig) -> None:
        self.settings = config
        with global_streams(streams_from(config.seed)):
            env = make_env(config, config.num_envs, config.seed)
            self.agent: Agent = make_agent(config, env)
            self.collector = Collector(env, config.seed)
            self._streams = capture_rng()
        self.env_steps = 0
        self.restart_state = RestartState()
        self.last_evaluation: EvaluationResult | None = None
        self._report = BatchReport()

    @property
    def config(self) -> Mapping[str, Any]:
        """The settings, in plain values."""
        return to_mapping(self.settings)

    @property
    def seed(self) -> int:
        """The seed that everything random comes from."""
        return self.settings.seed

    @property
    def per_iteration(self) -> int:
        """Environment steps of a batch."""
        return self.settings.batch_size

    @contextmanager
    def running(self) -> Iterator[None]:
        """Give the run its own global random streams."""
        with global_streams(self._streams):
            try:
                yield
            finally:
                self._streams = capture_rng()

    def collect(self) -> dict[str, float]:
        """Collect a batch with the present policy version."""
        if self.session is not None:  # the curve of samples restarts with every batch
            collected = self.settings.num_envs
            self.session.log(self.env_steps + collected, {"Buffer/SamplesCollected": float(collected)})
        self._report = self.collector.collect(self.agent, self.settings.rollout_steps)
        rollout = self.agent.rollout
        seen = {"observations": rollout.observations, "states": rollout.states, "rewards": rollout.rewards}
        check_finite(seen, range(rollout.num_envs), self.settings.task)
        self.env_steps += self.settings.batch_size
        return self._report.metrics()

    def update(self) -> dict[str, float]:
        """Update both levels and the discriminators, or the baseline, from the batch."""
        config, agent = self.settings, self.agent
        contributed = agent.rollout.counts_per_env()
        samples = int(contributed.sum())
        agent_samples = float(agent.rollout.present.sum())
        logger.info("同步更新开始 - 收集了 %d 个样本，策略版本: %d", samples, agent.version)
        logger.debug("环境贡献: 最少 %d, 最多 %d, 平均 %.1f", contributed.min(), contributed.max(), contributed.mean())
        losses = agent.update(self.env_steps - self.restart_state.start_step)
        logger.info("同步更新完成 - 策略版本更新到: %d, 已重置样本计数", agent.version)
        logger.info(
            "训练进度: %d/%d (%.1f%%), 更新次数: %d, Episodes: %d",
            self.env_steps,
            config.total_steps,
            100.0 * self.env_steps / config.total_steps,
            agent.version,
            self.collector.episodes,
        )
        return losses | {
            "Buffer/SamplesCollected": float(samples),
            "Buffer/AgentSamplesCollected": agent_samples,
            "Sync/EnvContribution_Min": float(contributed.min()),
            "Sync/EnvContribution_Max": float(contributed.max()),
            "Sync/EnvContribution_Mean": float(contributed.mean()),
            "Sync/PolicyVersion": float(agent.version),
            "Sync/Episodes": float(self.collector.episodes),
            "Sync/Restarts": float(self.restart_state.restarts),
            **_peak_memory(),
        }

    def start(self, fraction: float) -> None:
        """Do the restart that was due when a shorter run ended here, so that raising ``total_steps`` continues it."""
        self._restart_if_due()

    def adjust(self, fraction: float) -> None:
        """Start with new networks after ``restart_steps`` environment steps without a rewarded episode."""
        if any(value > 0.0 for value in self._report.returns):
            self.restart_state.last_reward_step = self.env_steps
        self._restart_if_due()

    def _restart_if_due(self) -> None:
        config, state = self.settings, self.restart_state
        if not config.restart_steps or self.env_steps - state.last_reward_step < config.restart_steps:
            return
        if self.env_steps >= config.total_steps:  # no step is left to train new networks
            return
        self.restart_state = RestartState(self.env_steps, state.restarts + 1, self.env_steps)
        seed = (config.seed + self.restart_state.restarts * _RESTART_SEED_STRIDE) % 2**32
        before = self.agent
        self.agent = make_agent(replace(config, seed=seed), self.collector.env)
        self.agent.version = before.version
        if config.freeze_skills and isinstance(self.agent, HMASDAgent):  # only the coordinator is new
            self.agent.load_skills(before.state_dict())
        self.collector.restart(seed)
        logger.info("no reward in %d environment steps: new networks from seed %d", config.restart_steps, seed)

    def evaluate(self, **options: Any) -> dict[str, float]:  # noqa: ANN401 - settings
        """Play whole episodes on separate environments; ``options`` are settings such as ``eval_episodes=100``."""
        self.last_evaluation = evaluate(self.agent, replace(self.settings, **options), self.env_steps)
        metrics = self.last_evaluation.metrics(self.settings.task)
        success = f", 成功率 {metrics['Eval/SuccessRate']:.2f}" if "Eval/SuccessRate" in metrics else ""
        logger.info("评估: 步数 %d, 平均回报 %.2f%s", self.env_steps, metrics["Eval/ReturnMean"], success)
        return metrics

    def checkpoint_step(self, iteration: int, progress: int, interval: int) -> int:
        """Return the multiple of ``interval`` that a checkpoint has passed, which is in its name."""
        return progress // interval * interval if interval else progress

    def counters(self, state: Mapping[str, Any]) -> tuple[int, int]:
        """Return updates and environment steps of a checkpoint."""
        return state["learner"]["version"], state["env_steps"]

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs to continue bit by bit."""
        return {
            "env_steps": self.env_steps,
            "search": self.restart_state.state_dict(),
            "learner": self.agent.state_dict(),
            "collector": self.collector.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.env_steps = state["env_steps"]
        self.restart_state = RestartState.from_state_dict(state["search"])
        self.agent.load_state_dict(state["learner"])
        if not self.collector.load_state_dict(state["collector"], self.settings.seed + self.env_steps):
            before, now = len(state["collector"]["starts"]), self.settings.num_envs
            cause = f"num_envs was {before} and is {now}"
            if before == now:
                cause = f"{now} environments of task {self.settings.task} cannot be restored"
            logger.warning("%s: the run resumes with new episodes, not bit by bit", cause)

    def close(self) -> None:
        """Close the environments."""
        self.collector.env.close()


def _peak_memory() -> dict[str, float]:
    """Return the most memory that this process has held, where the system reports it."""
    try:
        import resource
    except ModuleNotFoundError:
        return {}
    return {"time/memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0}
