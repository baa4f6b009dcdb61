"""HMASD, MAPPO and MAT on Alice_and_Bob, Overcooked and the UAV tasks, the ablations, and how fast everything runs.

``make bench-hmasd`` takes about twenty CPU hours and can be stopped and resumed: a finished run is a unit, and
an unfinished run resumes from its checkpoint in ``benchmarks/state/hmasd``. ``ARGS="--only 'fresh-*'"`` computes some
of the units; the table then shows what is known so far.
"""

import argparse
import fnmatch
import sys
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark, Figure
from benchmarks.hmasd_figures import (
    PICTURES,
    alice_figures,
    draw,
    fresh_figures,
    overcooked_figures,
    runs_of,
    summary,
    variant_figures,
    write_table,
)
from benchmarks.hmasd_resume import resume_figures
from benchmarks.hmasd_runs import MARKS, SEEDS, UAV_METHODS, UAV_TASKS, discard_states, planned_runs, train_run
from benchmarks.hmasd_speed import speed_figures
from benchmarks.hmasd_starts import frozen_run, planned_frozen, planned_starts, start_figures, start_run
from benchmarks.uav_policies import GreedyFlight, RandomFlight
from hmasd import UAVConfig, UAVEnv
from hmasd.learning.protocols import EpisodePolicy
from hmasd.training.evaluation import play_episodes

WITH_RESTARTS = {"fresh-paper": "fresh-default", "alice_and_bob-hmasd": "alice_and_bob-restarts"}
"""Methods with the paper's settings, each with the one that differs from it by restarts only."""


def reference_returns(task: str, kind: str, episodes: int) -> dict[str, Any]:
    """Play episodes of a reference policy without learning on a UAV task."""
    scenario: Any = task.removeprefix("uav_")
    env = UAVEnv(episodes, config=UAVConfig(scenario=scenario))
    policy: EpisodePolicy = RandomFlight() if kind == "random" else GreedyFlight(env)
    return {"returns": play_episodes(policy, env, 12345, 1000).returns.tolist()}


def compute(bench: Benchmark, runs: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Finished runs by name; those that ``--only`` names are computed if they are missing, and starts likewise."""
    starts, frozen, wanted = (
        {name: run for name, run in plan.items() if fnmatch.fnmatch(name, bench.options.only)}
        for plan in (planned_starts(bench.quick), planned_frozen(bench.quick), runs)
    )
    bench.units(start_run, starts)
    bench.units(frozen_run, frozen)
    # a run that reuses skills comes after the runs whose skills it reuses
    for reuses in (False, True):
        keep_unrestarted(bench, runs)
        bench.units(train_run, {name: run for name, run in wanted.items() if ("skills_from" in run) == reuses})
    keep_unrestarted(bench, runs)
    results = {name: bench.finished(name, **run) for name, run in runs.items()}
    known = {name: result for name, result in results.items() if result is not None}
    discard_states(runs, known)
    return known


def keep_unrestarted(bench: Benchmark, runs: dict[str, dict[str, Any]]) -> None:
    """Keep runs with restarts that never restarted as those with the paper's settings, which they equal bit by bit."""
    for name, run in runs.items():
        method, _, seed = name.rpartition("-")
        if method not in WITH_RESTARTS or bench.finished(name, **run) is not None:
            continue
        source = f"{WITH_RESTARTS[method]}-{seed}"
        result = bench.finished(source, **runs[source])
        if result is not None and result["restarts"] == 0:
            record = bench.kept(source)
            bench.keep(name, run, result | {"same_run_as": source}, "" if record is None else record["commit"])


def uav_figures(bench: Benchmark, runs_by_name: dict[str, dict[str, Any]]) -> list[Figure]:
    """Compare the returns on the UAV tasks with random and greedy flight."""
    figures = []
    for task in UAV_TASKS:
        best = 0.0
        for kind in ("random", "greedy"):
            returns = np.array(
                bench.unit(f"{task}-{kind}", reference_returns, task=task, kind=kind, episodes=128)["returns"]
            )
            best = max(best, float(returns.mean()))
            figures.append(Figure(name=f"{task} {kind} return", value=float(returns.mean()), note="128 episodes"))
        for algorithm in UAV_METHODS:
            values = np.array(
                [float(np.mean(run["returns"][-3:])) for run in runs_of(runs_by_name, f"{task}-{algorithm}")]
            )
            value, note = summary(values)
            figures.append(
                Figure(
                    name=f"{task} {algorithm} return",
                    value=value,
                    op=">",
                    goal=best,
                    note=f"goal: the better of both; {note}",
                )
            )
    return figures


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's own options."""
    parser.add_argument(
        "--only", default="*", help="compute only training runs whose name matches, for instance '*-hmasd-0'"
    )


def main(argv: list[str] | None = None) -> int:
    """Compute what is missing, draw the curves and print the table."""
    bench = Benchmark("hmasd", __doc__ or "", seeds=SEEDS, argv=argv, add_options=options)
    runs_by_name = compute(bench, planned_runs(bench.quick))
    marks = (3200,) if bench.quick else MARKS
    figures = [
        *speed_figures(bench),
        *resume_figures(bench),
        *fresh_figures(runs_by_name, marks[-1]),
        *start_figures(bench),
        *overcooked_figures(runs_by_name),
        *alice_figures(runs_by_name, marks),
        *uav_figures(bench, runs_by_name),
        *variant_figures(runs_by_name),
    ]
    if bench.quick:  # a few seconds of training reach no goal but those of speed
        figures = [f if f.unit else Figure(name=f.name, value=f.value, note=f.note) for f in figures]
    else:
        PICTURES.mkdir(parents=True, exist_ok=True)
        draw(runs_by_name)
        write_table(figures)
    return bench.finish(figures)


if __name__ == "__main__":
    sys.exit(main())
