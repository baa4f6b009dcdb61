"""What the executors add to a task: CPU time per tiny task and per actor call, in the parent and its workers together.

Workers run to their end in each measurement, since only ended processes are accounted for; the cost of starting them is
measured beside it and taken off.
"""

import math
import resource
import statistics
import sys
import time
from typing import Any

from apexrl.execution import make_executor
from benchmarks.harness import Benchmark, Figure

WORKERS = 2


class Echo:
    """An actor that does nothing."""

    def __init__(self, key: int) -> None:
        self.key = key

    def echo(self, value: float) -> float:
        """Give the value back."""
        return value


def cpu_now() -> float:
    """CPU seconds of this process and of its ended children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def tasks_cost(engine: str, count: int) -> tuple[float, float]:
    """CPU and wall-clock seconds of `count` square roots, with the workers' start."""
    cpu, wall = cpu_now(), time.perf_counter()
    with make_executor(engine, workers=WORKERS) as executor:
        executor.map(math.sqrt, range(count))
    return cpu_now() - cpu, time.perf_counter() - wall


def calls_cost(engine: str, count: int) -> tuple[float, float]:
    """CPU and wall-clock seconds of `count` calls of one actor, one after the other."""
    cpu, wall = cpu_now(), time.perf_counter()
    with make_executor(engine, workers=WORKERS) as executor, executor.actors(Echo, [0]) as group:
        for value in range(count):
            group[0].call("echo", value)
    return cpu_now() - cpu, time.perf_counter() - wall


def measure(engine: str, count: int, repeats: int) -> dict[str, Any]:
    """Microseconds per task and per call: medians over repeats, each less its own empty run."""
    figures: dict[str, list[float]] = {"task_cpu": [], "task_wall": [], "call_cpu": [], "call_wall": []}
    for _ in range(repeats):
        for name, cost in (("task", tasks_cost), ("call", calls_cost)):
            empty, full = cost(engine, WORKERS), cost(engine, count)
            figures[f"{name}_cpu"].append(1e6 * (full[0] - empty[0]) / count)
            figures[f"{name}_wall"].append(1e6 * (full[1] - empty[1]) / count)
    return {name: statistics.median(values) for name, values in figures.items()}


def main() -> int:
    """Measure inline and processes."""
    bench = Benchmark("execution", "Overhead of the executors per task and per actor call.")
    count, repeats = (2_000, 3) if bench.quick else (20_000, 5)
    figures = []
    for engine, goal in (("inline", None), ("processes", 200.0)):
        costs = bench.unit(engine, measure, engine=engine, count=count, repeats=repeats)
        common = {"unit": "µs", "op": "<"}
        figures += [
            Figure(name=f"{engine}: CPU per tiny task", value=costs["task_cpu"], goal=goal, **common),
            Figure(name=f"{engine}: wall clock per tiny task", value=costs["task_wall"], **common),
            Figure(name=f"{engine}: CPU per actor call", value=costs["call_cpu"], goal=goal, **common),
            Figure(name=f"{engine}: wall clock per actor call", value=costs["call_wall"], **common),
        ]
    return bench.finish(figures, workers=WORKERS)


if __name__ == "__main__":
    sys.exit(main())
