"""What is run, and how: tasks, the options of a run, the results as they come, and the seed of each task.

Glossary:
    task: a call of a module-level function with picklable arguments.
    attempt: one try at a task; a task whose worker dies or whose time is up is tried again with the same seed.
    worker: what runs tasks one at a time: this process (*inline*), a spawned one (*processes*), a Ray actor (*ray*).
    actor: an object that lives in a worker and is called again and again, such as a group of environments.
    engine: inline, processes or ray. The same call gives the same results on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, Literal, TypeVar

from apexrl.execution.report import RunReport, TaskReport, TaskResult

T = TypeVar("T")

Progress = Callable[[TaskReport, RunReport], None]
"""Called in the parent after each finished task with that task's report and the run's so far."""


@dataclass(frozen=True, slots=True)
class Task(Generic[T]):
    """A call to make.

    Attributes:
        function: A function at the top level of a module. It should depend on its arguments only: it may be run twice.
        args: Positional arguments, picklable.
        kwargs: Keyword arguments, picklable. A run with a seed adds ``seed``.
        label: A name for messages and reports.
    """

    function: Callable[..., T]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How tasks are run.

    Attributes:
        seed: Gives each task the keyword ``seed``, an integer made from this seed and the task's index (see
            `task_seed`). None gives none.
        time_limit: Seconds per attempt; the worker of a task that runs longer is killed. None for no limit. *inline*
            cannot interrupt a task, but judges it by the same limit when it has ended.
        retries: Further attempts after the first when the worker died or the time was up. Raising it survives more
            accidents and spends more time on tasks that can't succeed.
        retry_raised: Whether an exception is worth another attempt too. It seldom is: the same arguments raise again.
        ordered: Results in the order of the tasks, or as they finish.
        on_failure: ``record`` gives a failed task a result with its reason and continues; ``raise`` raises
            `TaskFailedError` at the first one and stops the others.
        window: The most tasks that are taken from the iterable and not yet handed over as results. It bounds the
            memory; ordered runs need it large, because results wait for a slow task before them. None means 64 per
            worker, at least 256.
        progress: Called after each finished task.
    """

    seed: int | None = None
    time_limit: float | None = None
    retries: int = 2
    retry_raised: bool = False
    ordered: bool = True
    on_failure: Literal["record", "raise"] = "record"
    window: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(f"time_limit must be more than 0 seconds, or None for no limit; got {self.time_limit}")
        if self.retries < 0:
            raise ValueError(f"retries must be 0 or more, got {self.retries}")
        if self.window is not None and self.window < 1:
            raise ValueError(f"window must be at least 1 task, or None for the default; got {self.window}")
        if self.seed is not None and self.seed < 0:
            raise ValueError(f"seed must be 0 or more, got {self.seed}")
        if self.on_failure not in ("record", "raise"):
            raise ValueError(f"on_failure must be 'record' or 'raise', got {self.on_failure!r}")


class Run(Iterator[TaskResult[T]], Generic[T]):
    """The results of a run, computed while they are read. Closing it early stops what still runs.

    Attributes:
        report: What has happened so far.
    """

    def __init__(self, results: Generator[TaskResult[T], None, None], report: RunReport) -> None:
        self.report = report
        self._results = results

    def __next__(self) -> TaskResult[T]:
        return next(self._results)

    def close(self) -> None:
        """Stop: tasks that still run are killed and no further result comes."""
        self._results.close()


def task_seed(seed: int, index: int) -> int:
    """Return the seed of the task at `index`: 63 bits of ``SeedSequence(seed).spawn(index + 1)[index]``.

    It depends on nothing else: not on the worker, the attempt or the number of tasks. ``numpy.random.seed`` takes
    32 bits: give it ``seed % 2**32``.
    """
    from numpy.random import SeedSequence  # here, because workers import this module and need no numpy

    words = SeedSequence(seed, spawn_key=(index,)).generate_state(2)
    return (int(words[0]) << 32 | int(words[1])) >> 1
