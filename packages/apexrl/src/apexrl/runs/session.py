"""A session: everything around a job that runs long.

It holds the run folder with its record and lock, turns signals into a request to stop, keeps the wall clock, writes
metrics to sinks and shows progress::

    with Session("runs/one", config=cfg, seed=cfg.seed) as session:
        session.begin(total=100)
        for step in range(1, 101):
            session.report(step, {"loss": work()})
            if session.should_stop:
                break
    return session.exit_code

Training loops have it through :class:`apexrl.agent.runner.Runner`; tournaments, dataset builds and searches use it
directly. It imports no torch.
"""

from __future__ import annotations

import logging
import math
import os
import shutil
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, SupportsFloat, TypeAlias

from apexrl.runs.atomic import StrPath, free_name
from apexrl.runs.digest import Plain
from apexrl.runs.errors import ConfigurationError
from apexrl.runs.metrics.jsonl import JsonlSink
from apexrl.runs.metrics.logger import ConsoleSink, CsvSink, MetricLogger, MetricSink, TensorBoardSink, WandbSink
from apexrl.runs.run_dir import Existing, RunDir, RunRecord
from apexrl.runs.signals import StopRequest, stop_on_signals

logger = logging.getLogger(__name__)

Sink: TypeAlias = MetricSink | Literal["jsonl", "tensorboard", "csv", "wandb"]
DEFAULT_SINKS: tuple[Sink, ...] = ("tensorboard", "jsonl")


@dataclass(frozen=True, kw_only=True)
class Files:
    """Names of a run's files inside its folder.

    Attributes:
        metrics: Lines of JSON; ``timings.jsonl`` is written beside them, and ``metrics.csv`` if asked for.
        events: Folder of TensorBoard events.
        has_log: Whether ``run.log`` and ``config.yaml`` are written.
        checkpoints: Folder of checkpoints.
        checkpoint: File name of a periodic checkpoint, with ``{step}`` in it once.
        final: File name of the checkpoint at the goal; None writes a periodic one only.
    """

    metrics: str = "metrics.jsonl"
    events: str = "tensorboard"
    has_log: bool = True
    checkpoints: str = "checkpoints"
    checkpoint: str = "checkpoint_{step}.pt"
    final: str | None = None


class Session:
    """The folder, lock, signals, clock, metrics and progress of one start of a job. A context manager.

    Args:
        folder: Where the run is; None writes nothing.
        files: Names of its files.
        config: What it is made from; goes into ``run.json``.
        seed: The seed that everything random comes from.
        free: Dotted names of settings that may change when it resumes.
        existing: What to do with a run that the folder already holds.
        run_id: Identity of the run if an earlier session of this process had it.
        sinks: ``"tensorboard"``, ``"jsonl"``, ``"csv"``, ``"wandb"``, or objects with ``write``, ``flush`` and
            ``close``. Named ones are opened in ``folder`` and closed with the session; objects are flushed and stay
            open, because they are the caller's.
        shown: Metrics that the progress line shows; None shows all.
        show_progress: Whether to draw a bar, or print lines where there is no terminal.
        unit: What progress counts, for the progress line.
        max_seconds: Wall-clock budget from now on; None for none.
        parent: A session around this one: its folder, lock, signals and clock hold here too, and ``folder`` is a
            folder inside its own (if None, the same).

    Attributes:
        stop: The request to stop; ``stop.requested`` is set by a signal.
    """

    stop: StopRequest

    def __init__(
        self,
        folder: StrPath | None = None,
        *,
        files: Files | None = None,
        config: object = None,
        seed: int = 0,
        free: Collection[str] = (),
        existing: Existing = "resume",
        run_id: str | None = None,
        sinks: Sequence[Sink] = DEFAULT_SINKS,
        shown: Sequence[str] | None = None,
        show_progress: bool = True,
        unit: str = "steps",
        max_seconds: float | None = None,
        parent: Session | None = None,
    ) -> None:
        self.files = files or Files()
        self.run_id = run_id
        self._folder: Path | None = None if folder is None else Path(folder)
        if folder is None and parent is not None:
            self._folder = parent._folder
        self._config, self._seed, self._free, self._existing = {} if config is None else config, seed, free, existing
        self._sinks, self._shown, self._show, self._unit = sinks, shown, show_progress, unit
        self._deadline = math.inf if max_seconds is None else time.monotonic() + max_seconds
        if parent is not None:
            self._deadline = min(self._deadline, parent._deadline)
        self._parent = parent
        self._stack = ExitStack()
        self._run: RunDir | None = None
        self._claimed: set[Path] = set()
        self._metrics = MetricLogger(())
        self._console: ConsoleSink | None = None
        self._lap = (time.monotonic(), time.process_time())

    def __enter__(self) -> Self:
        if self._parent is not None:
            self._run, self.stop, self.run_id = self._parent._run, self._parent.stop, self._parent.run_id
            return self
        with ExitStack() as opening:
            if self._folder is not None:
                self._run = opening.enter_context(self._open(self._folder, self.files.has_log))
            self.stop = opening.enter_context(stop_on_signals())
            self._stack = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _open(self, folder: Path, has_log: bool) -> RunDir:
        run = RunDir.start(
            folder,
            config=self._config,
            seed=self._seed,
            free=self._free,
            existing=self._existing,
            run_id=self.run_id,
            has_log=has_log,
        )
        self.run_id = run.record.run_id
        self._claimed.add(folder)
        return run

    def claim(self, folder: Path) -> None:
        """Make another folder the run's too: lock it, and move another run that is in it to ``earlier/``."""
        if self._parent is None and folder not in self._claimed:
            self._stack.enter_context(self._open(folder, has_log=False))

    # -- the folder

    @property
    def path(self) -> Path:
        """The run's folder."""
        if self._folder is None:
            raise ConfigurationError("this session has no folder", "", "give Session(folder)")
        return self._folder

    @property
    def record(self) -> RunRecord | None:
        """What ``run.json`` says; None without a folder."""
        return None if self._run is None else self._run.record

    @property
    def config(self) -> dict[str, Plain]:
        """The configuration as ``run.json`` holds it."""
        return {} if self._run is None else self._run.record.config

    @property
    def is_resumed(self) -> bool:
        """Whether the folder held this run before."""
        return self._run is not None and self._run.is_resumed

    # -- signals and the clock

    @property
    def should_stop(self) -> bool:
        """Whether a signal or the clock asks to leave at the next opportunity."""
        return self.stop.requested or time.monotonic() >= self._deadline

    @property
    def exit_code(self) -> int:
        """The exit status that shells expect: 128 + the signal's number, or 0."""
        return self.stop.exit_code

    # -- metrics and progress

    def begin(self, total: int | None = None, after_step: int | None = None) -> None:
        """Open metrics and progress.

        Args:
            total: The step at which the job ends; None if unknown.
            after_step: The step that the run resumes after: what was logged later is dropped. None if it starts.
        """
        sinks = [self._opened(sink, after_step) for sink in self._sinks if not self._is_pointless(sink)]
        self._metrics = self._stack.enter_context(MetricLogger(sinks, after_step))
        if self._show:
            self._console = ConsoleSink(total, shown=self._shown, title=self._unit)
            self._stack.callback(self._console.close)
        self._lap = (time.monotonic(), time.process_time())

    def set_metrics_aside(self) -> None:
        """Keep a copy of the metrics before a run that goes back to an earlier checkpoint drops the later ones."""
        if self._folder is not None:
            metrics = self._folder / self.files.metrics
            for path in (metrics, metrics.with_name("timings.jsonl"), metrics.with_suffix(".csv")):
                if path.exists():
                    shutil.copyfile(path, free_name(path))

    def _is_pointless(self, sink: Sink) -> bool:
        return isinstance(sink, str) and self._folder is None

    def _opened(self, sink: Sink, after_step: int | None) -> MetricSink:
        if not isinstance(sink, str):
            return _Kept(sink)
        metrics = self.path / self.files.metrics
        if sink == "jsonl":
            return JsonlSink(metrics, after_step)
        if sink == "csv":
            return CsvSink(metrics.with_suffix(".csv"), after_step)
        if sink == "tensorboard":
            return TensorBoardSink(os.path.normpath(self.path / self.files.events), after_step)
        if sink == "wandb":
            return WandbSink(self.path, config=self.config)
        raise ConfigurationError(
            f"sink {sink!r} is not known", "known are jsonl, tensorboard, csv, wandb, or an object with write()"
        )

    def log(self, step: int, metrics: Mapping[str, SupportsFloat]) -> None:
        """Write metrics of a step to all sinks."""
        self._metrics.log(step, metrics)

    def show(self, step: int, metrics: Mapping[str, float] | None = None) -> None:
        """Move the progress bar."""
        if self._console is not None:
            self._console.write(step, metrics or {})

    def report(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write metrics and move the progress bar."""
        self.show(step, metrics)
        self.log(step, metrics)

    def flush(self) -> None:
        """Write logged metrics to disk; call it before a checkpoint, so that they are never behind it."""
        self._metrics.flush()

    def lap(self, done: int) -> dict[str, float]:
        """Compute throughput since the last call: units per second of wall clock and of CPU time."""
        wall, cpu = time.monotonic(), time.process_time()
        seconds, cpu_seconds = wall - self._lap[0], cpu - self._lap[1]
        self._lap = (wall, cpu)
        return {
            f"time/{self._unit}_per_second": done / max(seconds, 1e-9),
            f"time/{self._unit}_per_cpu_second": done / max(cpu_seconds, 1e-9),
            "time/iteration_seconds": seconds,
        }


class _Kept:
    """A sink of the caller's: it is flushed with the session and closed by the caller."""

    def __init__(self, sink: MetricSink) -> None:
        self.write, self.flush, self.close = sink.write, sink.flush, sink.flush
