"""The one logger of metrics, and the sinks that it feeds: TensorBoard, CSV, Weights & Biases and the console.

JSON lines are in :mod:`apexrl.runs.metrics.jsonl`. Any object with ``write``, ``flush`` and ``close`` is a sink.

Steps never decrease. A run logs everything that belongs to a step *before* it saves the checkpoint of that
step: a resumed run keeps the metrics up to the checkpoint's step and logs the later ones again, so it ends
with the same file as an uninterrupted one.
"""

from __future__ import annotations

import csv
import math
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, SupportsFloat

from apexrl.runs.atomic import StrPath, atomic_path, ensure_folder, write_failure
from apexrl.runs.errors import MetricError
from apexrl.runs.reading import read_bytes, reading

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

_RESERVED = frozenset({"", "step", "time"})


class MetricSink(Protocol):
    """A destination of metrics."""

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write the metrics of a step; there may be several calls per step."""

    def flush(self) -> None:
        """Make what was written so far survive the end of the process."""

    def close(self) -> None:
        """Flush and close files. The logger calls it once."""


class MetricLogger:
    """Checks metrics and hands them to every sink. A context manager that closes the sinks.

    Args:
        sinks: Where metrics go, in this order.
        after_step: The step a resumed run continues from; smaller ones are refused.
    """

    def __init__(self, sinks: Sequence[MetricSink], after_step: int | None = None) -> None:
        self._sinks = tuple(sinks)
        self._step = 0 if after_step is None else after_step
        self._is_closed = False

    def log(self, step: int, metrics: Mapping[str, SupportsFloat]) -> None:
        """Log metrics of a step. NaN and infinities are allowed and shown as such.

        Args:
            step: Not smaller than in any call before.
            metrics: Names such as ``loss/value``; names that start with ``time/`` are what the clock decides
                and stay out of comparisons.

        Raises:
            MetricError: If the step goes back, or a name or a value is not valid.
            ValueError: If the logger is closed.
        """
        if self._is_closed:
            raise ValueError(f"metrics of step {step} come after the logger was closed")
        if step < self._step:
            raise MetricError(
                f"metrics of step {step} after step {self._step}",
                "steps must not decrease",
                "log in the order of steps, or resume from an earlier checkpoint",
            )
        values = {_checked_name(name): _checked_value(name, value) for name, value in metrics.items()}
        self._step = step
        for sink in self._sinks:
            sink.write(step, values)

    def flush(self) -> None:
        """Make what was logged so far survive; call it before saving a checkpoint. Does nothing when closed."""
        if not self._is_closed:
            for sink in self._sinks:
                sink.flush()

    def close(self) -> None:
        """Flush and close every sink, even if closing one of them fails; a second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            with ExitStack() as closing:
                for sink in self._sinks:
                    closing.callback(sink.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _checked_name(name: str) -> str:
    if name in _RESERVED or not name.isprintable():
        raise MetricError(
            f"a metric is named {name!r}",
            f"a name is printable and none of {sorted(_RESERVED)}",
            "rename it, for instance to 'train/step'",
        )
    return name


def _checked_value(name: str, value: SupportsFloat) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise MetricError(
            f"metric {name!r} is {value!r}", "a metric is one number", "reduce it first, for instance by .mean()"
        ) from error
    return math.nan if math.isnan(number) else number


class TensorBoardSink:
    """Writes scalars for ``tensorboard --logdir``.

    Events are written when they are logged and in the same thread, so that a failed write is an error of the call.

    Args:
        folder: Where the event files go; each start of a run adds one.
        after_step: The step a resumed run continues from; TensorBoard hides what earlier starts logged after it.
            None hides all of it.
    """

    def __init__(self, folder: StrPath, after_step: int | None = None) -> None:
        # Imported here: it takes longer than everything else in this package together.
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._summary = Event, Summary
        self._folder = ensure_folder(folder)
        # torch's form of the name; TensorBoard reads the files of a folder in the order of their names
        name = f"events.out.tfevents.{time.time_ns()}.{socket.gethostname()}.{os.getpid()}.0"
        with self._explained():
            self._file = (self._folder / name).open("xb")
        self._records = RecordWriter(self._file)
        first_step = 0 if after_step is None else after_step + 1
        start = SessionLog(status=SessionLog.START)  # events of earlier files from this step on are hidden
        with self._explained():
            self._put(Event(file_version="brain.Event:2"))
            self._put(Event(step=first_step, session_log=start))
            self._file.flush()

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add one scalar per metric."""
        with self._explained():
            for name, value in metrics.items():
                scalar = self._summary.Value(tag=name, simple_value=value)
                self._put(self._event(step=step, summary=self._summary(value=[scalar])))
            self._file.flush()

    def flush(self) -> None:
        """Hand everything to the operating system."""
        with self._explained():
            self._file.flush()

    def close(self) -> None:
        """Flush and close the event file."""
        with self._explained():
            self._file.close()

    def _put(self, event: Any) -> None:  # noqa: ANN401 - a generated class without types
        event.wall_time = time.time()
        self._records.write(event.SerializeToString())

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise write_failure(error, self._folder) from error


class CsvSink:
    """Writes one row per step to a CSV file; a metric that appears later adds a column.

    Args:
        path: The file.
        after_step: None starts afresh; a step keeps the rows up to it and drops the rest.
    """

    def __init__(self, path: StrPath, after_step: int | None = None) -> None:
        self._path = Path(path)
        self._rows: list[dict[str, float | str]] = []
        ensure_folder(self._path.parent)
        if after_step is not None and self._path.exists():
            with reading(self._path, MetricError, "it must be a CSV file of metrics", "remove it"):
                lines = read_bytes(self._path).decode().splitlines()
                rows = [{name: value for name, value in row.items() if value} for row in csv.DictReader(lines)]
                self._rows = [dict(row) for row in rows if int(row["step"]) <= after_step]
        self._columns: dict[str, None] = dict.fromkeys(name for row in self._rows for name in row)
        self._rewrite()

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Append a row; the file is written anew when there is a new column."""
        row: dict[str, float | str] = {"step": step, **metrics}
        self._rows.append(row)
        if row.keys() <= self._columns.keys():
            with self._explained():
                self._writer.writerow(row)
            return
        self._columns |= dict.fromkeys(row)
        with self._explained():
            self._file.close()
        self._rewrite()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn a failed write into an error that says what to do."""
        try:
            yield
        except OSError as error:
            raise write_failure(error, self._path) from error

    def _rewrite(self) -> None:
        columns = list(self._columns) or ["step"]
        with atomic_path(self._path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(self._rows)
        self._file = self._path.open("a", newline="", encoding="utf-8")
        self._writer = csv.DictWriter(self._file, columns)

    def flush(self) -> None:
        """Hand everything to the disk."""
        with self._explained():
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        with self._explained():
            self._file.close()


class WandbSink:
    """Logs to Weights & Biases; needs the extra ``apexrl[wandb]``.

    ``WANDB_MODE=offline`` (or ``mode="offline"``) needs no account and writes to ``folder`` only.

    Args:
        folder: Where the files of Weights & Biases go.
        **options: Keyword arguments of ``wandb.init``, such as ``project``, ``name`` or ``mode``.
    """

    def __init__(self, folder: StrPath, **options: Any) -> None:  # noqa: ANN401 - whatever wandb.init takes
        try:
            import wandb
        except ImportError as error:
            raise MetricError(
                "the package wandb is not installed",
                "the sink 'wandb' needs it",
                "install it: pip install 'apexrl[wandb]', or leave the sink out",
            ) from error
        ensure_folder(folder)
        self._run = wandb.init(dir=os.fspath(folder), **options)

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Log the metrics of a step."""
        self._run.log(dict(metrics), step=step)

    def flush(self) -> None:
        """Do nothing: Weights & Biases writes by itself."""

    def close(self) -> None:
        """Finish the run there."""
        self._run.finish()


class ConsoleSink:
    """Shows the step and the latest values.

    Args:
        total: The step at which the run ends; None if unknown.
        shown: The metrics to show, in this order; None shows all.
        title: Text before the bar or the line.
        seconds: The least time between two plain lines. The first one and the last one always appear.
        console: Where to write; if None, standard error.
        clock: Seconds that only grow, for tests.
    """

    def __init__(
        self,
        total: int | None = None,
        *,
        shown: Sequence[str] | None = None,
        title: str = "step",
        seconds: float = 5.0,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from rich.console import Console  # here, so that a command's --help does not wait for it

        self._console = console or Console(stderr=True)
        self._total = total
        self._shown = shown
        self._title = title
        self._seconds = seconds
        self._clock = clock
        self._latest: dict[str, float] = {}
        self._printed_at: float | None = None
        self._pending: str | None = None
        self._progress = self._start_bar() if self._console.is_terminal else None

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Show the latest value of every metric seen so far."""
        chosen = metrics if self._shown is None else {name: metrics[name] for name in self._shown if name in metrics}
        self._latest.update(chosen)
        values = "  ".join(f"{name} {value:.4g}" for name, value in self._latest.items())
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], completed=step, values=values)
            return
        of_total = "" if self._total is None else f"/{self._total}"
        self._pending = f"{self._title} {step}{of_total}  {values}".rstrip()
        now = self._clock()
        if self._printed_at is None or now - self._printed_at >= self._seconds:
            self._printed_at = now
            self._print_pending()

    def flush(self) -> None:
        """Do nothing: only the rate limit holds lines back, on purpose."""

    def close(self) -> None:
        """Show the last values and end the bar."""
        self._print_pending()
        if self._progress is not None:
            self._progress.stop()

    def _start_bar(self) -> Progress:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        progress = Progress(
            TextColumn(self._title),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[values]}"),
            console=self._console,
        )
        progress.add_task(self._title, total=self._total, values="")
        progress.start()
        return progress

    def _print_pending(self) -> None:
        if self._pending is not None:
            # No wrapping, no markup, no colours: the line may end in a log file.
            self._console.print(self._pending, soft_wrap=True, markup=False, highlight=False)
            self._pending = None
