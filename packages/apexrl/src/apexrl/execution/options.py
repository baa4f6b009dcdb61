"""Options of commands that run many tasks: which executor, how many workers, how long a task may take."""

from typing import Annotated, Final, Literal

from pydantic import Field

from apexrl.configuration import configuration
from apexrl.execution.executor import Executor
from apexrl.execution.factory import make_executor

__all__ = ["EXECUTION_FIELDS", "ExecutionOptions", "ExecutorName"]

ExecutorName = Literal["inline", "processes", "ray"]

EXECUTION_FIELDS: Final = ("executor", "workers", "address", "time_limit")
"""Names of the options: results do not depend on them, so they may change when a run is resumed."""


@configuration
class ExecutionOptions:
    """Where tasks are run. The configuration of a command inherits from it to have these options as its own."""

    executor: ExecutorName = "processes"
    """How tasks are run: one after the other in this process, in processes, or on a Ray cluster."""

    workers: Annotated[int, Field(ge=1)] | None = None
    """Tasks at once. Default: one per available CPU."""

    address: str | None = None
    """The Ray cluster, such as auto or ray://host:10001."""

    time_limit: Annotated[float, Field(gt=0)] = 3600.0
    """Seconds that a task may take before it is given up."""

    def make_executor(self, *, tasks_per_worker: int | None = None) -> Executor:
        """Make the executor; use it in a ``with`` block.

        Args:
            tasks_per_worker: Replace a worker process after so many tasks; if None, never.

        Raises:
            ValueError: If an address is given for another executor than ray.
            ModuleNotFoundError: If Ray is asked for and not installed.
        """
        return make_executor(
            self.executor, workers=self.workers, address=self.address, tasks_per_worker=tasks_per_worker
        )
