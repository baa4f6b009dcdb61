"""Runs tasks on a pool: takes them lazily, keeps workers busy, retries, puts results in order, reports."""

from __future__ import annotations

import dataclasses
import weakref
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from apexrl.execution.actors import ActorGroup, ActorOptions
from apexrl.execution.codec import require_portable
from apexrl.execution.executor import Run, RunOptions, Task, task_seed
from apexrl.execution.pool import Call, Fleet, Lane, Pool, Settled
from apexrl.execution.report import Attempt, Failure, FailureKind, RunReport, TaskReport, TaskResult
from apexrl.execution.server import call_request

T = TypeVar("T")

_QUEUED_SECONDS = 0.004
"""Work sent ahead to a worker, so that tiny tasks don't wait for the way to the parent and back."""
_QUEUED_TASKS = 64
"""The most tasks on a worker's lane."""
_QUEUED_BYTES = 1 << 20
"""Requests beyond this size are not sent ahead."""

_DEFAULTS = RunOptions()
_ACTOR_DEFAULTS = ActorOptions()


@dataclass(slots=True, eq=False)
class _Job:
    """A task on its way through the run."""

    index: int
    label: str
    request: bytes
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
        return _Job(index, task.label, call_request(task.function, task.args, kwargs))


class _Depth:
    """How many tasks to keep on a lane: one when they are long, more when they cost less than the way to a worker."""

    def __init__(self) -> None:
        self._seconds: float | None = None

    def learn(self, seconds: float) -> None:
        # Up at once, down slowly: a task queued behind a long one waits while others could take it.
        self._seconds = max(seconds, 0.8 * (self._seconds or 0.0) + 0.2 * seconds)

    def value(self) -> int:
        if self._seconds is None:
            return 1
        return 1 + min(_QUEUED_TASKS - 1, int(_QUEUED_SECONDS / max(self._seconds, 1e-9)))


class _Schedule(Generic[T]):
    """One run. `results` is the loop."""

    def __init__(self, pool: Pool, tasks: Iterable[Task[T]], options: RunOptions, report: RunReport) -> None:
        self._pool = pool
        self._tasks = enumerate(tasks)
        self._options = options
        self._report = report
        self._encoder = _Encoder(options.seed)
        self._depth = _Depth()
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
        """Give one task to every idle lane, then more to each if tasks are tiny."""
        for depth in (1, self._depth.value()):
            for lane in self._pool.lanes:
                while self._pool.room(lane, depth) > 0:
                    if not self._give_one(lane):
                        return

    def _give_one(self, lane: Lane) -> bool:
        """Send one job to a lane; False when there is none to send."""
        if self._retries_due:
            job = self._retries_due.popleft()
        elif self._open < self._window and (taken := next(self._tasks, None)) is not None:
            job = self._encoder.job(*taken)
            self._open += 1
        else:
            return False
        if lane.calls and len(job.request) > _QUEUED_BYTES:
            self._retries_due.appendleft(job)
            return False
        self._pool.submit(lane, Call(job.request, self._options.time_limit, job))
        return True

    def _take(self, settled: Settled) -> None:
        job: _Job = settled.call.tag
        if settled.untouched:
            self._retries_due.appendleft(job)
            return
        failure = settled.failure
        job.attempts.append(Attempt(settled.seconds, settled.worker, failure))
        self._depth.learn(settled.seconds)
        if failure is not None and self._worth_another(failure, len(job.attempts)):
            self._retries_due.appendleft(job)
            return
        self._finished[job.index] = TaskResult(job.index, job.label, settled.value, failure)
        task = TaskReport(job.index, job.label, tuple(job.attempts))
        self._report.add(task)
        if self._options.progress is not None:
            self._options.progress(task, self._report)

    def _worth_another(self, failure: Failure, attempts: int) -> bool:
        curable = self._options.retry_raised or failure.kind is not FailureKind.RAISED
        return curable and attempts <= self._options.retries

    def _due(self) -> Iterator[TaskResult[T]]:
        """Return the results to hand over now."""
        if not self._options.ordered:
            while self._finished:
                yield self._finished.pop(next(iter(self._finished)))
            return
        while (result := self._finished.pop(self._next_index, None)) is not None:
            self._next_index += 1
            yield result


class PooledExecutor:
    """An executor whose workers are made by a fleet. The engines are its subclasses.

    Args:
        new_fleet: Makes the engine's fleet; called for the tasks' pool and for each group of actors.
        workers: How many tasks run at once.
        tasks_per_worker: Replace a worker after so many tasks; None for never.
    """

    def __init__(self, new_fleet: Callable[[], Fleet], workers: int, *, tasks_per_worker: int | None = None) -> None:
        if workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        self._new_fleet = new_fleet
        self._workers = workers
        self._pool = Pool(new_fleet(), workers, tasks_per_worker)
        self._running = False
        self._groups: weakref.WeakSet[ActorGroup] = weakref.WeakSet()
        self._end = weakref.finalize(self, self._pool.close)

    @property
    def workers(self) -> int:
        """How many tasks run at once."""
        return self._workers

    def run(self, tasks: Iterable[Task[T]], options: RunOptions = _DEFAULTS) -> Run[T]:
        """Run tasks, lazily taken from any iterable, and give their results while it runs.

        Args:
            tasks: The tasks; never held in memory beyond ``options.window``.
            options: Seeds, limits, retries and order.

        Returns:
            An iterator of results, with a growing report. Nothing starts before the first result is asked for.
        """
        report = RunReport()
        return Run(self._alone(_Schedule(self._pool, tasks, options, report)), report)

    def map(self, function: Callable[..., T], items: Iterable[Any], options: RunOptions = _DEFAULTS) -> list[T]:
        """Return the values of ``function(item)`` in the order of the items.

        Args:
            function: A function at the top level of a module.
            items: One argument each.
            options: Seeds, limits and retries; order and failures are settled by this method.

        Raises:
            TaskFailedError: At the first task that failed for good.
        """
        options = dataclasses.replace(options, ordered=True, on_failure="raise")
        return [result.unwrap() for result in self.run((Task(function, (item,)) for item in items), options)]

    def actors(
        self, factory: Callable[..., Any], keys: Sequence[Hashable], options: ActorOptions = _ACTOR_DEFAULTS
    ) -> ActorGroup:
        """Build one actor per key by ``factory(key)``, pinned to a worker of its own group of workers.

        Args:
            factory: A function or class at the top level of a module.
            keys: Distinct and picklable. The key at index i lives on worker i modulo the number of workers.
            options: Seeds, limits, and what happens when a worker dies.
        """
        self._require_open()
        group = ActorGroup(Pool(self._new_fleet(), min(self._workers, max(len(keys), 1))), factory, keys, options)
        self._groups.add(group)
        return group

    def close(self) -> None:
        """End all workers, those of actors included."""
        for group in list(self._groups):
            group.close()
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _alone(self, schedule: _Schedule[T]) -> Generator[TaskResult[T], None, None]:
        self._require_open()
        if self._running:
            raise RuntimeError("this executor is busy with another run: read it to its end or close() it first")
        self._running = True
        try:
            yield from schedule.results()
        finally:
            self._running = False

    def _require_open(self) -> None:
        if not self._end.alive:
            raise RuntimeError("this executor is closed: make a new one")
