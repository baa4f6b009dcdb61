"""What a task came to, and what it took: results, failures and reports.

Results hold no wall-clock value, so they are the same bytes on every engine; everything measured is in the reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar, cast

T = TypeVar("T")

TROUBLED_KEPT = 1000
"""Task reports that a run report keeps in full; a run of a million failures must not fill the memory."""


MOST_NODES_LOST = 20
"""Machines that one task may be lost with until it is given up: it may be what brings them down."""


class FailureKind(StrEnum):
    """Why an attempt at a task came to nothing."""

    RAISED = "raised"
    """The function raised an exception (or its result could not be pickled)."""
    TIMED_OUT = "timed out"
    """The function was still running at its time limit."""
    WORKER_DIED = "worker died"
    """The process that ran it ended: ``os._exit``, a segmentation fault, a signal, such as that of a full memory."""
    NODE_LOST = "node lost"
    """The machine that it ran on is gone; it is repeated on another, and that is not counted among the retries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The reason of a failed attempt.

    Attributes:
        kind: The kind of failure.
        message: One line: the exception with its text, the limit that was passed, or the signal that ended the worker.
        traceback: The stack inside the task, empty unless the task raised.
    """

    kind: FailureKind
    message: str
    traceback: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class TaskFailedError(RuntimeError):
    """A task failed for good and its value was asked for.

    Attributes:
        index: The task's index in the run.
        label: The task's label.
        failure: The reason of its last attempt.
    """

    def __init__(self, index: int, label: str, failure: Failure) -> None:
        name = f"task {index}" + (f" ({label})" if label else "")
        super().__init__("\n".join(part for part in (f"{name} {failure}", failure.traceback) if part))
        self.index = index
        self.label = label
        self.failure = failure


@dataclass(frozen=True, slots=True)
class TaskResult(Generic[T]):
    """The outcome of one task: a value, or the reason why there is none.

    Attributes:
        index: The task's index in the run.
        label: The task's label.
        value: What the function returned; None when it failed.
        failure: The reason of the last attempt; None when it succeeded.
    """

    index: int
    label: str
    value: T | None
    failure: Failure | None = None

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.failure is None

    def unwrap(self) -> T:
        """Return the value.

        Raises:
            TaskFailedError: If the task failed.
        """
        if self.failure is not None:
            raise TaskFailedError(self.index, self.label, self.failure)
        return cast(T, self.value)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a task.

    Attributes:
        seconds: Wall-clock seconds in the function, or until the attempt was given up.
        worker: The number of the worker that made it.
        failure: Why it failed; None when it succeeded.
    """

    seconds: float
    worker: int
    failure: Failure | None = None


def may_retry(attempts: Sequence[Attempt], retries: int) -> bool:
    """Whether another attempt is due after failed ones; a lost machine does not count, within reason."""
    lost = sum(tried.failure is not None and tried.failure.kind is FailureKind.NODE_LOST for tried in attempts)
    return len(attempts) - lost <= retries and lost <= MOST_NODES_LOST


@dataclass(frozen=True, slots=True)
class TaskReport:
    """All attempts at one task, in order.

    Attributes:
        index: The task's index in the run.
        label: The task's label.
        attempts: At least one attempt; only the last can have succeeded.
    """

    index: int
    label: str
    attempts: tuple[Attempt, ...]

    @property
    def retried(self) -> bool:
        """Whether more than one attempt was made."""
        return len(self.attempts) > 1

    @property
    def ok(self) -> bool:
        """Whether the last attempt succeeded."""
        return self.attempts[-1].failure is None

    @property
    def seconds(self) -> float:
        """Wall-clock seconds over all attempts."""
        return sum(attempt.seconds for attempt in self.attempts)

    def __str__(self) -> str:
        name = f"task {self.index}" + (f" ({self.label})" if self.label else "")
        steps = [f"{attempt.failure or 'succeeded'} after {attempt.seconds:.3f} s" for attempt in self.attempts]
        return f"{name}: " + "; ".join(steps)


@dataclass(slots=True)
class RunReport:
    """What a run has done so far. It grows while the run is read.

    Attributes:
        succeeded: Tasks with a value.
        failed: Tasks that failed for good.
        retried: Tasks with more than one attempt.
        seconds: Wall-clock seconds over all attempts of all tasks.
        slowest: The longest successful attempt, in seconds.
        troubled: Reports of the tasks that were retried or failed, in finishing order, at most `TROUBLED_KEPT`.
        troubled_left_out: How many such reports were not kept. The progress hook sees every report.
    """

    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    troubled: list[TaskReport] = field(default_factory=list)
    troubled_left_out: int = 0

    @property
    def finished(self) -> int:
        """Tasks with an outcome."""
        return self.succeeded + self.failed

    def add(self, task: TaskReport) -> None:
        """Count a finished task."""
        self.seconds += task.seconds
        self.retried += task.retried
        if task.ok:
            self.succeeded += 1
            self.slowest = max(self.slowest, task.attempts[-1].seconds)
        else:
            self.failed += 1
        if task.ok and not task.retried:
            return
        if len(self.troubled) < TROUBLED_KEPT:
            self.troubled.append(task)
        else:
            self.troubled_left_out += 1

    def summary(self) -> str:
        """Return the report as text: a line of totals, then a line per task that was retried or failed."""
        lines = [
            f"{self.finished} tasks: {self.succeeded} succeeded, {self.failed} failed, {self.retried} retried; "
            f"{self.seconds:.2f} s in tasks, slowest {self.slowest:.2f} s"
        ]
        lines += [f"  {task}" for task in self.troubled]
        if self.troubled_left_out:
            lines.append(f"  and {self.troubled_left_out} more")
        return "\n".join(lines)
