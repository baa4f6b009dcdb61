"""The command ``lita train-online``: run folder, metrics, checkpoints and signals around the training loop."""

from __future__ import annotations

import logging

from rich.console import Console

from apexrl.runs.atomic import write_json
from apexrl.runs.checkpoints.checkpoint import CheckpointStore, Retention
from apexrl.runs.metrics.logger import ConsoleSink, MetricLogger, MetricSink
from apexrl.runs.run_dir import RunDir
from apexrl.runs.signals import StopRequest, stop_on_signals
from litaagent_std.hrl_xf.online.config import FREE_FIELDS, OnlineConfig
from litaagent_std.hrl_xf.online.trainer import SCHEMA, Trainer
from litaagent_std.world.reproducible.hashing import fixed_for_workers

__all__ = ["run_training"]

logger = logging.getLogger(__name__)

SHOWN = ("play/gain", "play/score", "play/breach_rate", "play/bankruptcies", "gate/mean", "sync/rollbacks")
TASKS_PER_WORKER = 500
"""Worlds after which a worker process is replaced: agents leave memory behind."""


def run_training(cfg: OnlineConfig) -> tuple[Trainer, int]:
    """Start or resume a run.

    Returns:
        The trainer at the end, and the exit status.
    """
    with (
        RunDir.start(cfg.output_dir, config=cfg, seed=cfg.seed, free=FREE_FIELDS) as folder,
        fixed_for_workers(),
        stop_on_signals() as stop,
        cfg.make_executor(tasks_per_worker=TASKS_PER_WORKER) as executor,
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
        values = trainer.step()
        values |= trainer.after_update()
        metrics.log(trainer.update, values)
        if trainer.update % cfg.checkpoint_every == 0:
            saved = _save(trainer, store)
    if trainer.update > saved:
        _save(trainer, store)
    trainer.save_weights()


def _save(trainer: Trainer, store: CheckpointStore) -> int:
    store.save(trainer.update, trainer.state_dict())
    return trainer.update


def summary_of(trainer: Trainer) -> dict[str, object]:
    """Return the result of a run as plain values."""
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
    """Print the result of a run."""
    summary = summary_of(trainer)
    seconds = sum(trainer.seconds.values())
    (console or Console()).print(
        f"{trainer.folder}: {summary['updates']} updates from {summary['worlds']} worlds in {seconds:.0f} CPU s; "
        f"best by the gate: {summary['best'] or 'none yet, the shipped agent stays'}"
    )
