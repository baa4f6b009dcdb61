"""Execution: one executor protocol and three engines that give the same results: inline, processes and ray."""

from apexrl.execution.executor import (
    ENGINES,
    Executor,
    Progress,
    Run,
    RunOptions,
    Task,
    available_cpus,
    make_executor,
    task_seed,
)
from apexrl.execution.report import (
    Attempt,
    Failure,
    FailureKind,
    RunReport,
    TaskFailedError,
    TaskReport,
    TaskResult,
)

__all__ = [
    "ENGINES",
    "Attempt",
    "Executor",
    "Failure",
    "FailureKind",
    "Progress",
    "Run",
    "RunOptions",
    "RunReport",
    "Task",
    "TaskFailedError",
    "TaskReport",
    "TaskResult",
    "available_cpus",
    "make_executor",
    "task_seed",
]
