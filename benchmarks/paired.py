"""Benchmarks that are evaluations of the arena; their units are lines of the benchmark's file, by the arena's keys."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from apexrl.execution import make_executor
from apexrl.runs.signals import stop_on_signals
from benchmarks.harness import Benchmark, current_commit
from litaagent_std.arena.contest import TASKS_PER_WORKER, progress_of
from litaagent_std.arena.evaluation import Evaluation, Plan, evaluate
from litaagent_std.tournament.competitors.registry import registry_name
from litaagent_std.world.reproducible.hashing import fixed_for_workers

KEY_LENGTH = 32
"""Hexadecimal digits of a unit's key that are kept."""


class PairedUnits:
    """The arena's units in the file of a benchmark, without what nobody reads later.

    Args:
        bench: The benchmark.
    """

    def __init__(self, bench: Benchmark) -> None:
        self._bench, self._commit = bench, current_commit()

    def get(self, key: str) -> dict[str, Any] | None:
        """Return a finished unit, or None."""
        record = self._bench.kept(key[:KEY_LENGTH])
        return None if record is None else record["result"]

    def put(self, key: str, unit: Mapping[str, Any]) -> None:
        """Keep a finished unit."""
        arguments = {"agent": registry_name(unit["agent"]), "seed": unit["seed"]}
        slim = {name: part for name, part in unit.items() if name not in {"setup", "params"}}
        self._bench.keep(key[:KEY_LENGTH], arguments, slim, self._commit)


def play_plans(bench: Benchmark, plans: Sequence[Plan]) -> tuple[list[Evaluation], int]:
    """Play what is not played yet, plan by plan; the same command resumes a stopped one.

    Args:
        bench: The benchmark.
        plans: Its evaluations.

    Returns:
        The evaluations as far as they have come, and what the shell expects after a signal, or 0.
    """
    units = PairedUnits(bench)
    evaluations = []
    with (
        fixed_for_workers(),
        stop_on_signals() as stop,
        make_executor("processes", workers=bench.options.workers, tasks_per_worker=TASKS_PER_WORKER) as executor,
    ):
        for plan in plans:
            with progress_of(plan, quiet=False) as show:

                def on_unit(evaluation: Evaluation, show: Callable[[Evaluation], None] = show) -> bool:
                    show(evaluation)
                    return not stop.requested

                evaluations.append(evaluate(plan, units, executor, on_unit=on_unit))
    return evaluations, stop.exit_code
