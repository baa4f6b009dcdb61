"""The command ``lita train-online``: a session around the run loop that trains a `Trainer`."""

from __future__ import annotations

from rich.console import Console

from apexrl.agent.runner import Runner
from apexrl.collect.env_group import one_thread
from apexrl.runs.reading import write_sealed
from apexrl.runs.session import Session
from litaagent_std.hrl_xf.online.config import FREE_FIELDS, OnlineConfig
from litaagent_std.hrl_xf.online.trainer import Trainer
from litaagent_std.world.reproducible.hashing import fixed_for_workers

__all__ = ["online_runner", "run_training", "show_summary", "summary_of"]

SHOWN = ("play/gain", "play/score", "play/breach_rate", "play/bankruptcies", "gate/mean", "sync/rollbacks")
TASKS_PER_WORKER = 500
"""Worlds after which a worker process is replaced: agents leave memory behind."""


def run_training(cfg: OnlineConfig) -> tuple[Trainer, int]:
    """Start or resume a run.

    Returns:
        The trainer at the end, and the exit status.
    """
    with (
        Session(cfg.output_dir, config=cfg, seed=cfg.seed, free=FREE_FIELDS) as session,
        fixed_for_workers(),
        one_thread(),
        cfg.make_executor(tasks_per_worker=TASKS_PER_WORKER) as executor,
    ):
        trainer = Trainer(cfg, executor, session.path)
        runner = online_runner(trainer, session)
        runner.resume()
        if trainer.updates < cfg.updates and trainer.finished is None:
            runner.learn(total_timesteps=cfg.updates)
        trainer.save_weights()
        write_sealed(session.path / "summary.json", summary_of(trainer))
    return trainer, session.exit_code


def online_runner(trainer: Trainer, session: Session | None = None) -> Runner:
    """Return the runner of a trainer, in its folder: checkpoints, and the gate as evaluation, as its options say."""
    cfg = trainer.cfg
    return Runner(
        trainer,
        log_dir=trainer.folder,
        save_interval=cfg.checkpoint_every,
        save_last=True,
        eval_interval=cfg.gate.every,
        keep_last=3,
        show_progress=not cfg.quiet,
        shown=SHOWN,
        session=session,
    )


def summary_of(trainer: Trainer) -> dict[str, object]:
    """Return the result of a run as plain values."""
    best = trainer.monitor.best
    return {
        "updates": trainer.updates,
        "version": trainer.method.version,
        "worlds": trainer.worlds,
        "rollbacks": trainer.rollbacks,
        "stopped": trainer.finished or "",
        "best": None if trainer.best is None else str(trainer.best),
        "best_window_gain": None if best is None else best.gain,
        "cpu_seconds": trainer.seconds,
        "win_rates": trainer.pool.win_rates(),
    }


def _playing(trainer: Trainer) -> str:
    """Say which weights play where the run's folder is named (`policy.networks.weights.weights_path`)."""
    if not trainer.cfg.gate.every:
        return "no gate, so the newest weights play"
    if trainer.best is None or trainer.best == trainer.cfg.warm:
        return "nothing has passed the gate, so the newest weights play"
    return f"best by the gate: {trainer.best}"


def show_summary(trainer: Trainer, console: Console | None = None) -> None:
    """Print the result of a run."""
    summary = summary_of(trainer)
    seconds = sum(trainer.seconds.values())
    is_over = trainer.finished is not None or trainer.updates >= trainer.cfg.updates
    (console or Console(markup=False)).print(
        f"{trainer.folder}: {summary['updates']} updates from {summary['worlds']} worlds in {seconds:.0f} CPU s; "
        f"{_playing(trainer)}"
        f"{'' if is_over else '; unfinished: run the same command again to resume'}",
        soft_wrap=True,
    )
