"""What ``lita train-online`` does: the run's folder, metrics, checkpoints and signals around the loop."""

from __future__ import annotations

import logging

from rich.console import Console

from apexrl.execution import make_executor
from apexrl.runs.atomic import write_json
from apexrl.runs.checkpoints.checkpoint import CheckpointStore, Retention
from apexrl.runs.metrics.console import ConsoleSink
from apexrl.runs.metrics.logger import MetricLogger, MetricSink
from apexrl.runs.run_dir import RunDir
from apexrl.runs.signals import StopRequest, stop_on_signals
from litaagent_std.hrl_xf.online.config import FREE_FIELDS, OnlineConfig
from litaagent_std.hrl_xf.online.trainer import SCHEMA, Trainer
from litaagent_std.world.reproducible.hashing import fixed_for_workers

__all__ = ["run_training"]

logger = logging.getLogger(__name__)

SHOWN = ("play/gain", "play/score", "play/breach_rate", "play/bankruptcies", "gate/mean", "sync/rollbacks")
TASKS_PER_WORKER = 500
"""Worlds after which a worker is replaced, against what agents leave behind in a process."""


def run_training(cfg: OnlineConfig) -> tuple[Trainer, int]:
    """Start a run, or goes on with it.

    Returns:
        The trainer as it ended, and the exit status.
    """
    with (
        RunDir.start(cfg.output_dir, config=cfg, seed=cfg.seed, free=FREE_FIELDS) as folder,
        fixed_for_workers(),
        stop_on_signals() as stop,
        make_executor(
            cfg.executor, workers=cfg.workers, address=cfg.address, tasks_per_worker=TASKS_PER_WORKER
        ) as executor,
    ):
        store = folder.checkpoints(SCHEMA, retention=Retention(keep_last=3))
        trainer = Trainer(cfg, executor, folder.path)
        checkpoint = store.resume()
        if checkpoint is not None:
            trainer.load_state_dict(checkpoint.state)
        sinks: list[MetricSink] = [] if cfg.quiet else [ConsoleSink(cfg.updates, shown=SHOWN, title="update")]
        metrics = folder.metric_logger(trainer.update or None, more=sinks)
        _loop(trainer, store, metrics, stop)
        write_json(folder.path / "summary.json", summary_of(trainer))
    return trainer, stop.exit_code


def _loop(trainer: Trainer, store: CheckpointStore, metrics: MetricLogger, stop: StopRequest) -> None:
    cfg = trainer.cfg
    saved = trainer.update
    while trainer.update < cfg.updates and not trainer.stopped and not stop.requested:
        found = trainer.step()
        found |= trainer.after()
        metrics.log(trainer.update, found)
        if trainer.update % cfg.checkpoint_every == 0:
            saved = _save(trainer, store)
    if trainer.update > saved:
        _save(trainer, store)
    trainer.save_weights()


def _save(trainer: Trainer, store: CheckpointStore) -> int:
    store.save(trainer.update, trainer.state_dict())
    return trainer.update


def summary_of(trainer: Trainer) -> dict[str, object]:
    """How a run ended, in plain values."""
    best = trainer.monitor.best
    return {
        "updates": trainer.update,
        "version": trainer.method.version,
        "worlds": trainer.worlds,
        "rollbacks": trainer.rollbacks,
        "stopped": trainer.stopped,
        "best": None if trainer.best is None else str(trainer.best),
        "best_window_gain": None if best is None else best.gain,
        "cpu_seconds": trainer.seconds,
        "win_rates": trainer.pool.win_rates(),
    }


def show_summary(trainer: Trainer, console: Console | None = None) -> None:
    """Print how a run ended."""
    told = summary_of(trainer)
    seconds = sum(trainer.seconds.values())
    (console or Console()).print(
        f"{trainer.folder}: {told['updates']} updates from {told['worlds']} worlds in {seconds:.0f} CPU s; "
        f"best by the gate: {told['best'] or 'none yet, the shipped agent stays'}"
    )
