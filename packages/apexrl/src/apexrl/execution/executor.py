"""The executor: run many tasks, or talk to long-lived actors, the same way on every engine."""

from __future__ import annotations

import dataclasses
import os
import weakref
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from apexrl.execution.actors import ActorGroup, ActorOptions
from apexrl.execution.pool import Fleet, Pool
from apexrl.execution.report import RunReport, TaskResult
from apexrl.execution.schedule import Schedule
from apexrl.execution.tasks import Run, RunOptions, Task

T = TypeVar("T")

_DEFAULTS = RunOptions()
_ACTOR_DEFAULTS = ActorOptions()


class Executor:
    """Runs tasks and hosts actors. Use it in a ``with`` block, which ends its workers. The engines are its subclasses.

    Args:
        new_fleet: Makes the engine's fleet; called for the tasks' pool and for each group of actors.
        workers: How many tasks run at once.
        tasks_per_worker: Replace a worker after so many tasks; None for never.
    """

    def __init__(self, new_fleet: Callable[[], Fleet], workers: int, *, tasks_per_worker: int | None = None) -> None:
        if workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        self._new_fleet = new_fleet
        self._pool = Pool(new_fleet(), workers, tasks_per_worker)
        self._running = False
        self._groups: weakref.WeakSet[ActorGroup] = weakref.WeakSet()
        self._end = weakref.finalize(self, self._pool.close)

    @property
    def workers(self) -> int:
        """How many tasks run at once; on a cluster that grows, more later."""
        return len(self._pool.lanes)

    def run(self, tasks: Iterable[Task[T]], options: RunOptions = _DEFAULTS) -> Run[T]:
        """Run tasks, lazily taken from any iterable, and give their results while it runs.

        Args:
            tasks: The tasks; never held in memory beyond ``options.window``.
            options: Seeds, limits, retries and order.

        Returns:
            An iterator of results, with a growing report. Nothing starts before the first result is asked for. One
            run at a time: finish or close it before the next.
        """
        report = RunReport()
        return Run(self._alone(Schedule(self._pool, tasks, options, report)), report)

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
        group = ActorGroup(Pool(self._new_fleet(), min(self.workers, max(len(keys), 1))), factory, keys, options)
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

    def _alone(self, schedule: Schedule[T]) -> Generator[TaskResult[T], None, None]:
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


def available_cpus() -> int:
    """Return the CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
