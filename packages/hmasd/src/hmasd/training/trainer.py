"""The strictly synchronous trainer: collect a batch with version v → barrier → update → version v + 1.

An *environment step* is one step of one environment, whatever its number of agents; a *batch* is ``batch_size``
environment steps, an equal share from each environment; an *agent sample* is one agent's part of an environment step.
"""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from apexrl.configuration import from_mapping, to_mapping
from apexrl.runs.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointStore,
    Retention,
    Schema,
    load_checkpoint,
    save_checkpoint,
)
from apexrl.runs.errors import ConfigMismatchError, ConfigurationError, SchemaMismatchError
from apexrl.runs.metrics.logger import MetricLogger, MetricSink
from apexrl.runs.rng import capture_rng, global_streams, streams_from
from apexrl.runs.signals import StopRequest
from hmasd.config import HMASDConfig
from hmasd.envs.pettingzoo.modules import PREFIX
from hmasd.learning.learner import Learner
from hmasd.tasks import make_env, make_learner
from hmasd.training.collection import BatchReport, Collector
from hmasd.training.evaluation import EvaluationResult, evaluate

logger = logging.getLogger(__name__)

SCHEMA: Final = Schema(name="hmasd.sync", version=2)
PATTERN: Final = "hmasd_sync_enhanced_{step}.pth"
FINAL_NAME: Final = "hmasd_sync_enhanced_final.pth"
FREE_FIELDS: Final = frozenset(
    {"total_steps", "eval_interval", "eval_episodes", "eval_deterministic", "checkpoint_interval", "keep_checkpoints"}
)
"""Fields that may differ between a checkpoint and the run that resumes it."""
_RESTART_SEED_STRIDE: Final = 1_000_003
"""Distance between the seeds of two restarts, so that they differ from the seeds of other runs."""
_STATE_KEYS: Final = frozenset({"sizes", "env_steps", "search", "learner", "collector"})


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


class Trainer:
    """A training run.

    While it works, the global random streams, which PettingZoo modules may use, are the run's own and start from its
    seed; afterwards they are as they were before the call.

    Args:
        config: Task, algorithm and hyperparameters.
        models: Folder of checkpoints; if None, nothing is saved.
    """

    def __init__(self, config: HMASDConfig, models: Path | None = None) -> None:
        self.config = config
        with global_streams(streams_from(config.seed)):
            env = make_env(config, config.num_envs, config.seed)
            self.learner: Learner = make_learner(config, env)
            self.collector = Collector(env, config.seed)
            self._streams = capture_rng()
        self.env_steps = 0
        self.restart_state = RestartState()
        self.last_evaluation: EvaluationResult | None = None
        self._models = models
        self._store = None
        if models is not None:
            retention = Retention(keep_last=config.keep_checkpoints)
            self._store = CheckpointStore(
                models, SCHEMA, pattern=PATTERN, config=to_mapping(config), retention=retention
            )

    def run(self, metrics: MetricLogger, stop: StopRequest | None = None) -> None:
        """Train for ``total_steps`` environment steps or until a stop is requested, then save."""
        with global_streams(self._streams):
            try:
                self._run(metrics, stop)
            finally:
                self._streams = capture_rng()

    def _run(self, metrics: MetricLogger, stop: StopRequest | None) -> None:
        config = self.config
        while self.env_steps < config.total_steps and not (stop and stop.requested):
            before = self.env_steps
            started = time.perf_counter(), time.process_time()
            report = self.collector.collect(self.learner, config.rollout_steps)
            self.env_steps += config.batch_size
            losses = self._update()
            metrics.log(self.env_steps, losses | report.metrics() | self._sync_metrics(started))
            self._restart_if_unrewarded(report)
            if _crossed(before, self.env_steps, config.eval_interval) or self.env_steps >= config.total_steps:
                self.last_evaluation = evaluate(self.learner, config, self.env_steps)
                metrics.log(self.env_steps, self.last_evaluation.metrics(config.task))
            if self._store is not None and (mark := _crossed(before, self.env_steps, config.checkpoint_interval)):
                metrics.flush()
                self._store.save(mark, self.state_dict())
        metrics.flush()
        self._save_end()

    def _restart_if_unrewarded(self, report: BatchReport) -> None:
        """Start with new networks after ``restart_steps`` environment steps without a rewarded episode."""
        config, state = self.config, self.restart_state
        if any(value > 0.0 for value in report.returns):
            state.last_reward_step = self.env_steps
        if not config.restart_steps or self.env_steps - state.last_reward_step < config.restart_steps:
            return
        if self.env_steps >= config.total_steps:  # no step is left to train new networks
            return
        self.restart_state = RestartState(self.env_steps, state.restarts + 1, self.env_steps)
        seed = config.seed + self.restart_state.restarts * _RESTART_SEED_STRIDE
        version = self.learner.version
        self.learner = make_learner(replace(config, seed=seed), self.collector.env)
        self.learner.version = version
        self.collector.restart(seed)
        logger.info("no reward in %d environment steps: new networks from seed %d", config.restart_steps, seed)

    def _update(self) -> dict[str, float]:
        config, version = self.config, self.learner.version
        contributed = self.learner.rollout.counts_per_env()
        samples = int(contributed.sum())
        agent_samples = float(self.learner.rollout.present.sum())
        logger.info("同步更新开始 - 收集了 %d 个样本，策略版本: %d", samples, version)
        logger.debug("环境贡献: 最少 %d, 最多 %d, 平均 %.1f", contributed.min(), contributed.max(), contributed.mean())
        losses = self.learner.update(self.env_steps - self.restart_state.start_step)
        logger.info("同步更新完成 - 策略版本更新到: %d, 已重置样本计数", self.learner.version)
        share = 100.0 * self.env_steps / config.total_steps
        logger.info(
            "训练进度: %d/%d (%.1f%%), 更新次数: %d, Episodes: %d",
            self.env_steps,
            config.total_steps,
            share,
            self.learner.version,
            self.collector.episodes,
        )
        return losses | {
            "Buffer/SamplesCollected": float(samples),
            "Buffer/AgentSamplesCollected": agent_samples,
            "Sync/EnvContribution_Min": float(contributed.min()),
            "Sync/EnvContribution_Max": float(contributed.max()),
            "Sync/EnvContribution_Mean": float(contributed.mean()),
        }

    def _sync_metrics(self, started: tuple[float, float]) -> dict[str, float]:
        wall, cpu = time.perf_counter() - started[0], time.process_time() - started[1]
        return {
            "Sync/PolicyVersion": float(self.learner.version),
            "Sync/Episodes": float(self.collector.episodes),
            "Sync/Restarts": float(self.restart_state.restarts),
            "time/steps_per_second": self.config.batch_size / max(wall, 1e-9),
            "time/steps_per_cpu_second": self.config.batch_size / max(cpu, 1e-9),
            **_peak_memory(),
        }

    def _save_end(self) -> None:
        if self._store is None or self._models is None:
            return
        if self.env_steps < self.config.total_steps:
            self._store.save(self.env_steps, self.state_dict())
            return
        content = Checkpoint(
            schema=SCHEMA,
            step=self.env_steps,
            state=self.state_dict(),
            config=to_mapping(self.config),
            rng=capture_rng(),
        )
        save_checkpoint(self._models / FINAL_NAME, content)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs to continue bit by bit."""
        return {
            "sizes": self._sizes(),
            "env_steps": self.env_steps,
            "search": self.restart_state.state_dict(),
            "learner": self.learner.state_dict(),
            "collector": self.collector.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned.

        Raises:
            SchemaMismatchError: It lacks an entry, or is of a task with other sizes.
        """
        if missing := sorted(_STATE_KEYS - state.keys()):
            raise SchemaMismatchError(
                f"the checkpoint lacks {', '.join(missing)}; it holds {', '.join(sorted(state)) or 'nothing'}",
                f"resuming needs {', '.join(sorted(_STATE_KEYS))}",
                "train again, or use the release that wrote the checkpoint",
            )
        if state["sizes"] != self._sizes():
            raise SchemaMismatchError(
                f"the checkpoint is of task {self.config.task} with the sizes {state['sizes']}",
                f"the task has {self._sizes()} in this release",
                "train again, or use the release that wrote the checkpoint",
            )
        self.env_steps = state["env_steps"]
        self.restart_state = RestartState.from_state_dict(state["search"])
        self.learner.load_state_dict(state["learner"])
        with global_streams(self._streams):  # environments may use them while they are rebuilt
            exact = self.collector.load_state_dict(state["collector"], self.config.seed + self.env_steps)
        if not exact:
            logger.warning(
                "environments of task %s cannot be captured: the run resumes with new episodes, not bit by bit",
                self.config.task,
            )

    def _sizes(self) -> dict[str, int]:
        rollout = self.learner.rollout
        return {
            "agents": rollout.n_agents,
            "observation": rollout.observations.shape[-1],
            "state": rollout.states.shape[-1],
        }

    @classmethod
    def resume(cls, path: Path, config: HMASDConfig | None = None, models: Path | None = None) -> "Trainer":
        """Return a run that continues from a checkpoint.

        Args:
            path: The checkpoint.
            config: May differ from the checkpoint's in :data:`FREE_FIELDS`; if None, the checkpoint's is used.
            models: Folder of further checkpoints.

        Raises:
            ConfigMismatchError: Another field differs.
            ConfigurationError: The task is a module that only the checkpoint names; see :func:`stored_config`.
        """
        checkpoint = load_checkpoint(path, SCHEMA)
        if config is None:
            config = stored_config(path)
        else:
            _check_same(
                from_mapping(HMASDConfig, checkpoint.config, f"the configuration in {str(path)!r}"), config, path
            )
        trainer = cls(config, models)
        trainer.load_state_dict(checkpoint.state)
        if checkpoint.rng is not None:
            trainer._streams = checkpoint.rng
        return trainer


def stored_config(path: Path, changes: Mapping[str, Any] | None = None) -> HMASDConfig:
    """Return the configuration in a checkpoint, with some fields changed.

    Raises:
        ConfigurationError: A change breaks a rule; or the task is a module and ``changes`` does not name it, because
            a file from an unknown source must not decide what is imported.
    """
    changes = changes or {}
    values = {**load_checkpoint(path, SCHEMA).config, **changes}
    config = from_mapping(HMASDConfig, values, f"the configuration in {str(path)!r}")
    if config.task.startswith(PREFIX) and "task" not in changes:
        raise ConfigurationError(
            f"checkpoint {str(path)!r} is of task {config.task}, a module that loading it would import",
            "a checkpoint does not decide what is imported",
            f"name the task if you trust it: --set task={config.task} for training, --task {config.task} otherwise",
        )
    return config


def _check_same(stored: HMASDConfig, wanted: HMASDConfig, path: Path) -> None:
    names = [field.name for field in fields(HMASDConfig) if field.name not in FREE_FIELDS]
    different = [name for name in names if getattr(stored, name) != getattr(wanted, name)]
    if different:
        lines = ", ".join(f"{name}: {getattr(stored, name)!r} → {getattr(wanted, name)!r}" for name in different)
        raise ConfigMismatchError(
            f"checkpoint {str(path)!r} was made with another configuration ({lines})",
            f"only {', '.join(sorted(FREE_FIELDS))} may change when a run is resumed",
            "leave out --config, --preset or --set to use the checkpoint's settings, or start a new run with --fresh",
        )


def _crossed(before: int, after: int, interval: int) -> int:
    """Return the last multiple of ``interval`` in (before, after], or 0."""
    mark = after // interval * interval
    return mark if mark > before else 0


def train(config: HMASDConfig, *, models: Path | None = None, sinks: tuple[MetricSink, ...] = ()) -> Trainer:
    """Train a new run to its end and return it; signals are not handled.

    Args:
        config: Task, algorithm and hyperparameters.
        models: Folder of checkpoints; if None, nothing is saved.
        sinks: Where metrics are written.
    """
    trainer = Trainer(config, models)
    with MetricLogger(sinks) as metrics:
        trainer.run(metrics)
    return trainer


def _peak_memory() -> dict[str, float]:
    """Return the most memory that this process has held, where the system can tell."""
    try:
        import resource
    except ModuleNotFoundError:
        return {}
    return {"time/memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0}
