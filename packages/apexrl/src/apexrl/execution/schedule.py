"""Runs tasks on a pool: takes them lazily, keeps workers busy, retries, puts results in order, reports."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from apexrl.execution.codec import require_portable
from apexrl.execution.pool import Call, Pool, Settled
from apexrl.execution.report import Attempt, Failure, FailureKind, RunReport, TaskReport, TaskResult, may_retry
from apexrl.execution.server import call_request
from apexrl.execution.shared import Shared
from apexrl.execution.tasks import RunOptions, Task, task_seed

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Job:
    """A task on its way through the run."""

    index: int
    label: str
    request: bytes
    shared: tuple[Shared[Any], ...]
    attempts: list[Attempt] = field(default_factory=list)


class _Encoder:
    """Turns tasks into jobs, checking each function once."""

    def __init__(self, seed: int | None) -> None:
        self._seed = seed
        self._checked: Callable[..., Any] | None = None

    def job(self, index: int, task: Task[Any]) -> _Job:
        if task.function is not self._checked:
            require_portable(task.function)
            self._checked = task.function
        kwargs = task.kwargs
        if self._seed is not None:
            if "seed" in kwargs:
                raise ValueError(
                    f"task {index} has seed={kwargs['seed']!r} among its arguments, and the run gives seeds too: "
                    "drop one of them"
                )
            kwargs = {**kwargs, "seed": task_seed(self._seed, index)}
        shared = tuple(value for value in (*task.args, *kwargs.values()) if isinstance(value, Shared))
        return _Job(index, task.label, call_request(task.function, task.args, kwargs), shared)


class Schedule(Generic[T]):
    """One run. `results` is the loop."""

    def __init__(self, pool: Pool, tasks: Iterable[Task[T]], options: RunOptions, report: RunReport) -> None:
        self._pool = pool
        self._tasks = enumerate(tasks)
        self._options = options
        self._report = report
        self._encoder = _Encoder(options.seed)
        self._window = options.window or max(256, 64 * len(pool.lanes))
        self._retries_due: deque[_Job] = deque()
        self._finished: dict[int, TaskResult[T]] = {}
        self._open = 0  # taken from the iterable, result not yet handed over
        self._next_index = 0

    def results(self) -> Generator[TaskResult[T], None, None]:
        """Give results until there are no more; stop what still runs when closed early."""
        try:
            while True:
                self._fill()
                if not self._open:
                    return
                for settled in self._pool.poll():
                    self._take(settled)
                for result in self._due():
                    self._open -= 1
                    if self._options.on_failure == "raise":
                        result.unwrap()
                    yield result
        finally:
            self._pool.abandon()

    def _fill(self) -> None:
        """Give a job to every idle lane, while there are jobs.

        Workers that are up come first, and when there are no more jobs they take those that wait for a worker to start:
        on a cluster it may wait for a machine that never comes.
        """
        self._pool.grow()
        for lane in sorted(self._pool.lanes, key=lambda lane: not lane.ready):
            if lane.calls:
                continue
            job = self._next_job()
            if job is None and lane.ready and (waiting := self._pool.withdraw()) is not None:
                job = waiting.tag
            if job is not None:
                self._pool.submit(lane, Call(job.request, self._options.time_limit, job, job.shared))

    def _next_job(self) -> _Job | None:
        if self._retries_due:
            return self._retries_due.popleft()
        if self._open < self._window and (taken := next(self._tasks, None)) is not None:
            self._open += 1
            return self._encoder.job(*taken)
        return None

    def _take(self, settled: Settled) -> None:
        job: _Job = settled.call.tag
        if settled.untouched:
            self._retries_due.appendleft(job)
            return
        failure = settled.failure
        job.attempts.append(Attempt(settled.seconds, settled.worker, failure))
        if failure is not None and self._worth_another(failure, job.attempts):
            self._retries_due.appendleft(job)
            return
        self._finished[job.index] = TaskResult(job.index, job.label, settled.value, failure)
        task = TaskReport(job.index, job.label, tuple(job.attempts))
        self._report.add(task)
        if self._options.progress is not None:
            self._options.progress(task, self._report)

    def _worth_another(self, failure: Failure, attempts: list[Attempt]) -> bool:
        curable = self._options.retry_raised or failure.kind is not FailureKind.RAISED
        return curable and may_retry(attempts, self._options.retries)

    def _due(self) -> Iterator[TaskResult[T]]:
        """Return the results to hand over now."""
        if not self._options.ordered:
            while self._finished:
                yield self._finished.pop(next(iter(self._finished)))
            return
        while (result := self._finished.pop(self._next_index, None)) is not None:
            self._next_index += 1
            yield result
