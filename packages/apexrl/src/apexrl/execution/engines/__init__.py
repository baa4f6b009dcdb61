"""The engines: `make_executor` makes an executor by the name of its engine, which is imported when it is asked for.

`inline` runs everything in this process, `processes` in spawned ones (their program is `worker`), `ray` in Ray actors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apexrl.execution.executor import Executor, available_cpus

__all__ = ["ENGINES", "make_executor"]

ENGINES = ("inline", "processes", "ray")
"""Names of the engines."""


def make_executor(
    name: str,
    *,
    workers: int | None = None,
    address: str | None = None,
    ray: Mapping[str, Any] | None = None,
    tasks_per_worker: int | None = None,
) -> Executor:
    """Make an executor by the name of its engine.

    Args:
        name: ``inline``, ``processes`` or ``ray``.
        workers: Tasks at once; None for one per available CPU, on a Ray cluster one per CPU of it. *inline* has one
            whatever is asked.
        address: The Ray cluster, as in ``ray.init(address=…)``; None means ``RAY_ADDRESS``, and without it Ray is
            started on this machine. For *ray* only.
        ray: Further arguments of `RayExecutor`: ``working_dir``, ``py_modules``, ``memory_gb``, ``logs``.
        tasks_per_worker: Replace a worker process after so many tasks, against memory leaks in what it runs. *inline*
            ignores it: there is no process to replace.

    Raises:
        ValueError: If the name is unknown, or an argument does not fit.
        ModuleNotFoundError: If Ray is asked for and not installed.
    """
    if name not in ENGINES:
        raise ValueError(f"unknown executor {name!r}: choose one of {', '.join(ENGINES)}")
    if address is not None and name != "ray":
        raise ValueError(
            f"address={address!r} is for the ray executor only, not for {name!r}: choose ray or leave it out"
        )
    for field_name, value in (("workers", workers), ("tasks_per_worker", tasks_per_worker)):
        if value is not None and value < 1:
            raise ValueError(f"{field_name} must be at least 1, or None for the default; got {value}")
    if name == "inline":
        from apexrl.execution.engines.inline import InlineExecutor

        return InlineExecutor()
    if name == "processes":
        from apexrl.execution.engines.processes import ProcessExecutor

        count = available_cpus() if workers is None else workers
        return ProcessExecutor(count, tasks_per_worker=tasks_per_worker)
    from apexrl.execution.engines.ray import RayExecutor

    return RayExecutor(workers, address=address, tasks_per_worker=tasks_per_worker, **(ray or {}))
