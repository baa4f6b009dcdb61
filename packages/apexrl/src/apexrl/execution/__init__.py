"""Execution: one executor and three engines that give the same results: inline, processes and ray.

:func:`make_executor` makes an executor; :class:`ExecutionOptions` are its options on a command line. An executor runs
:class:`Task` objects or hosts long-lived actors (`apexrl.execution.actors`). Importing this package is cheap, because
every worker process does it.
"""

from typing import TYPE_CHECKING

from apexrl.execution.engines import ENGINES, make_executor
from apexrl.execution.executor import Executor, available_cpus
from apexrl.execution.report import (
    Attempt,
    Failure,
    FailureKind,
    RunReport,
    TaskFailedError,
    TaskReport,
    TaskResult,
)
from apexrl.execution.shared import Shared
from apexrl.execution.tasks import Progress, Run, RunOptions, Task, task_seed
from apexrl.lazy import lazy_names

if TYPE_CHECKING:
    from apexrl.execution.options import EXECUTION_FIELDS, ExecutionOptions, ExecutorName
else:  # needs pydantic, which workers do not
    __getattr__, __dir__ = lazy_names(
        __name__, {"apexrl.execution.options": ("EXECUTION_FIELDS", "ExecutionOptions", "ExecutorName")}
    )

__all__ = [
    "ENGINES",
    "EXECUTION_FIELDS",
    "Attempt",
    "ExecutionOptions",
    "Executor",
    "ExecutorName",
    "Failure",
    "FailureKind",
    "Progress",
    "Run",
    "RunOptions",
    "RunReport",
    "Shared",
    "Task",
    "TaskFailedError",
    "TaskReport",
    "TaskResult",
    "available_cpus",
    "make_executor",
    "task_seed",
]
