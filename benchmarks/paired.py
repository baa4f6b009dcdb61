"""Benchmarks that are evaluations of the arena: their units are kept, one line each, beside their results."""

from collections.abc import Mapping, Sequence
from typing import Any

from apexrl.execution import make_executor
from apexrl.runs.lock import exclusive
from apexrl.runs.signals import stop_on_signals
from benchmarks.harness import RESULTS, Benchmark
from litaagent_std.arena.contest import TASKS_PER_WORKER, progress_of
from litaagent_std.arena.evaluation import Evaluation, Plan, evaluate
from litaagent_std.arena.units import UnitLog
from litaagent_std.world.reproducible.hashing import fixed_for_workers


class SlimLog(UnitLog):
    """Units without what nobody asks for later, because the log is kept with the results."""

    def put(self, key: str, unit: Mapping[str, Any]) -> None:
        """Keep a unit."""
        super().put(key, {name: part for name, part in unit.items() if name not in {"setup", "params"}})


def play_plans(bench: Benchmark, plans: Sequence[Plan]) -> tuple[list[Evaluation], int]:
    """Plays what is not played yet, plan by plan; the same command goes on where a stopped one was.

    Args:
        bench: The benchmark.
        plans: Its evaluations.

    Returns:
        The evaluations as far as they have come, and what the shell expects after a signal, or 0.
    """
    folder = RESULTS / "units" / bench.label
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "units.jsonl"
    if bench.options.fresh:
        log.unlink(missing_ok=True)
    found = []
    with (
        fixed_for_workers(),
        exclusive(folder),
        SlimLog(log) as units,
        stop_on_signals() as stop,
        make_executor("processes", workers=bench.options.workers, tasks_per_worker=TASKS_PER_WORKER) as executor,
    ):
        for plan in plans:
            with progress_of(plan, quiet=False) as show:

                def look(evaluation: Evaluation, show: Any = show) -> bool:  # noqa: ANN401 - a progress bar
                    show(evaluation)
                    return not stop.requested

                found.append(evaluate(plan, units, executor, look=look))
    return found, stop.exit_code
