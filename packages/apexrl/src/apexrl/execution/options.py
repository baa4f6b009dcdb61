"""Options of commands that run many tasks: which executor, how many workers, how long a task may take."""

from typing import Annotated, Final, Literal

from pydantic import Field

from apexrl.configuration import configuration, to_mapping
from apexrl.execution.engines import make_executor
from apexrl.execution.executor import Executor

__all__ = ["EXECUTION_FIELDS", "ExecutionOptions", "ExecutorName", "RayOptions"]

ExecutorName = Literal["inline", "processes", "ray"]

EXECUTION_FIELDS: Final = ("executor", "workers", "address", "ray", "time_limit")
"""Names of the options: results do not depend on them, so they may change when a run is resumed."""


@configuration
class RayOptions:
    """What a Ray cluster is asked for; see Ray's own documentation of each. Unused by other executors."""

    working_dir: str | None = None
    """Folder that Ray copies to every node and starts workers in, so that agents of your own need no installing there;
    or the address of a zip file. As `runtime_env["working_dir"]`."""

    py_modules: tuple[str, ...] = ()
    """Packages that Ray copies to every node. As `runtime_env["py_modules"]`."""

    memory_gb: Annotated[float, Field(gt=0)] | None = None
    """Memory that a task needs; a node gets no more tasks than its memory holds. Default: not counted."""

    logs: bool = False
    """Show what workers print."""


@configuration
class ExecutionOptions:
    """Where tasks are run. The configuration of a command inherits from it to have these options as its own."""

    executor: ExecutorName = "processes"
    """How tasks are run: one after the other in this process, in processes, or on a Ray cluster."""

    workers: Annotated[int, Field(ge=1)] | None = None
    """Tasks at once. Default: one per available CPU, on a Ray cluster one per CPU of the cluster."""

    address: str | None = None
    """The Ray cluster, such as auto or ray://host:10001. Default: RAY_ADDRESS, which `ray job submit` sets; without it
    Ray starts on this machine."""

    ray: RayOptions = RayOptions()
    """What a Ray cluster is asked for."""

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
            self.executor,
            workers=self.workers,
            address=self.address,
            ray=to_mapping(self.ray),
            tasks_per_worker=tasks_per_worker,
        )
