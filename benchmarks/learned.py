"""What learning added to the first agent that won the league, and the worth of each learned part.

Paired worlds with all finalists as opponents; only the agent in the focal seat changes. The number of worlds is fixed
beforehand, so the intervals are plain 95 % ones; ``--look`` says which look at the verdict's block a run is.

========= ==========================================================================================
verdict   the agent with partner models alone (its L2 the heuristic) against ``lita-v1``, 50, 100 and 200 days, verdict
          seeds of their own
depleting the same where production consumes stock, 50 and 100 days
parts     what urgency adds to ``lita-v1``, and what types add to both, in the first worlds of the verdict
hierarchy the default agent, trained layers included, against ``lita-v1`` on another block of the verdict; what these
          layers add to partner models alone is `benchmarks.trained`
========= ==========================================================================================

See docs/league/partners.md.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from apexrl.runs.errors import ConfigurationError
from apexrl.statistics import paired_difference
from benchmarks.harness import Benchmark, Figure
from benchmarks.paired import play_plans
from litaagent_std.arena.evaluation import Evaluation, Plan, Unit
from litaagent_std.arena.seeds import seed_block
from litaagent_std.arena.worlds import Rules, draw, play_unit
from litaagent_std.policy.parameters import LEVELS
from litaagent_std.tournament.competitors.names import Competitor, opponents, resolve

BLOCK = "verdict:partners"
HIERARCHY_BLOCK = "verdict:hierarchy"
REFERENCE = "lita-v1"
POOL = ("finalists-2024", "finalists-2025", "finalists-2026")
GROUPS = ("verdict", "depleting", "parts", "hierarchy")
PARTNERS: dict[str, Any] = {"l2": "heuristic"}
"""Settings of the default agent with partner models alone: types and urgency."""
URGENT: dict[str, Any] = {**PARTNERS, "l3": "model"}
"""Settings that leave its urgency alone."""
DAY_RATIO = 1.3
"""How much longer a day may take."""

Pairs = Sequence[tuple[Unit, Unit]]
Goals = tuple[float | None, float | None]
"""Goals of a mean and of the lower end of its interval."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=list(GROUPS), help="what to play (default all)")
    parser.add_argument("--worlds", type=int, default=350, help="worlds of the verdict (default 350)")
    parser.add_argument("--depleting-worlds", type=int, default=100, help="worlds with depleting stock (default 100)")
    parser.add_argument("--part-worlds", type=int, default=300, help="worlds for the parts (default 300)")
    parser.add_argument("--hierarchy-worlds", type=int, default=600, help="worlds of the second block (default 600)")
    parser.add_argument("--look", type=int, default=1, help="which look at the verdict's block this is (default 1)")


def plans(bench: Benchmark) -> dict[str, Plan]:
    """Return the evaluation of each group that is asked for."""
    options = bench.options
    pool = opponents(("PenguinAgent", "AS0") if bench.quick else POOL, integer_offers=True)
    default, reference = resolve(["lita", REFERENCE], integer_offers=True)
    partners = Competitor("partner models", replace(default.spec, params=PARTNERS))
    urgent = Competitor("urgency", replace(default.spec, params=URGENT))
    shipped, depleting = Rules(pool, days=(50, 100, 200)), Rules(pool, days=(50, 100), inventory="depleting")
    table: dict[str, tuple[list[Competitor], Rules, str, int]] = {
        "verdict": ([partners, reference], shipped, BLOCK, options.worlds),
        "depleting": ([partners, reference], depleting, f"{BLOCK}-depleting", options.depleting_worlds),
        "parts": ([partners, urgent, reference], shipped, BLOCK, options.part_worlds),
        "hierarchy": ([default, reference], shipped, HIERARCHY_BLOCK, options.hierarchy_worlds),
    }
    planned = {}
    for group in options.groups:
        (focal, *against), rules, block, worlds = table[group]
        if bench.quick:
            rules, block, worlds = replace(rules, days=(15,)), f"gate:learned-quick-{group}", 4
        seeds = seed_block(block, open_verdict=True)
        planned[group] = Plan(focal, tuple(against), rules, seeds, worlds, stop_early=False)
    return planned


def difference(name: str, pairs: Pairs, goals: Goals = (None, None)) -> list[Figure]:
    """Return the mean of a paired difference with its interval, and its lower end if that has a goal."""
    if len(pairs) < 2:
        return [Figure(name=f"{name}: worlds", value=len(pairs))]
    gap = paired_difference([own["score"] for own, _ in pairs], [other["score"] for _, other in pairs])
    low, high = gap.low or 0.0, gap.high or 0.0
    note = f"95 % interval {low:+.4f} … {high:+.4f}, {gap.count} worlds"
    figures = [Figure(name=f"{name}: mean", value=gap.mean, goal=goals[0], note=note)]
    if goals[1] is not None:
        figures.append(Figure(name=f"{name}: lower end", value=low, op=">", goal=goals[1]))
    return figures


def verdict_figures(evaluation: Evaluation, name: str, goals: dict[str, Goals]) -> list[Figure]:
    """Return the difference over all worlds, by level, by length, and by who our consumers are."""
    plan = evaluation.plan
    pairs = list(zip(*evaluation.pairs(REFERENCE), strict=True))
    figures = difference(f"{name}, all levels", pairs, goals.get("all", (None, None)))
    for level in LEVELS:
        some = [pair for pair in pairs if pair[0]["level"] == level]
        figures += difference(f"{name}, {level} level", some, goals.get(level, (None, None)))
    for days in plan.rules.days:
        figures += difference(f"{name}, {days} days", [pair for pair in pairs if pair[0]["n_days"] == days])
    selling = [pair for pair in pairs if pair[0]["level"] != "last"]
    for title, wanted in (("edge", True), ("inner", False)):
        some = [pair for pair in selling if _at_edge(plan.rules, pair[0]) == wanted]
        figures += difference(f"{name}, {title}", some)
    return figures


def _at_edge(rules: Rules, unit: Unit) -> bool:
    """Whether the focal seat sells to the last level."""
    setup = draw(rules, unit["seed"]).setup
    return setup.factories[unit["seat"]].level == setup.n_levels - 2


def part_figures(evaluation: Evaluation) -> list[Figure]:
    """Return what urgency adds to the reference, what types add to urgency, and both together."""
    units, focal = evaluation.units, evaluation.plan.focal.name
    steps = {"urgency": ("urgency", REFERENCE), "types": (focal, "urgency"), "both": (focal, REFERENCE)}
    figures = []
    for name, (with_part, without) in steps.items():
        own, other = units.get(with_part, {}), units.get(without, {})
        pairs = [(own[index], other[index]) for index in sorted(own.keys() & other.keys())]
        figures += difference(f"parts, {name}", pairs)
        selling = [pair for pair in pairs if pair[0]["level"] != "last"]
        figures += difference(f"parts, {name}, first and middle", selling)
    return figures


def day_ratio(worlds: int, days: int) -> dict[str, float]:
    """Return the median ratio of our CPU time per day to the reference's; one process plays both in turn."""
    specs = [competitor.spec for competitor in resolve(["lita", REFERENCE], integer_offers=True)]
    rules = Rules(opponents(["PenguinAgent"], integer_offers=True), days=(days,))
    block = seed_block("gate:learned-time")
    ratios = []
    for index in range(worlds):
        own, reference = (play_unit(rules, block.seed(index), spec)["cpu"]["day_ms"] for spec in specs)
        ratios.append(own / reference)
    return {"ratio": float(np.median(ratios))}


def cost_figures(evaluations: Sequence[Evaluation], ratio: float) -> list[Figure]:
    """Return our time per day beside the reference's, failures, and the CPU hours of all worlds."""
    units = [unit for evaluation in evaluations for some in evaluation.units.values() for unit in some.values()]
    hours = sum(unit["cpu"]["world_seconds"] for unit in units) / 3600
    return [
        Figure(name="time per day, ratio (median)", value=ratio, unit="x", op="<=", goal=DAY_RATIO),
        Figure(name="our exceptions", value=sum(unit["n_errors"] for unit in units), op="==", goal=0),
        Figure(name="worlds that failed", value=sum(len(e.failed) for e in evaluations), op="==", goal=0),
        Figure(name="CPU hours", value=hours, unit="h"),
    ]


VERDICT_GOALS: dict[str, Goals] = {
    "all": (0.02, 0.0),
    "first": (None, 0.0),
    "middle": (None, 0.0),
    "last": (None, -0.005),
}
HIERARCHY_GOALS: dict[str, Goals] = {"all": (0.03, 0.0)}
REPORTS: dict[str, Callable[[Evaluation], list[Figure]]] = {
    "verdict": lambda evaluation: verdict_figures(evaluation, "verdict", VERDICT_GOALS),
    "depleting": lambda evaluation: verdict_figures(evaluation, "depleting", {"all": (-0.005, None)}),
    "parts": part_figures,
    "hierarchy": lambda evaluation: verdict_figures(evaluation, "hierarchy", HIERARCHY_GOALS),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    bench = Benchmark("learned", __doc__ or "", argv=argv, add_options=add_options)
    try:
        planned = plans(bench)
    except ConfigurationError as error:
        sys.exit(str(error))
    evaluations, stopped = play_plans(bench, list(planned.values()))
    if stopped:
        print("stopped: the same command resumes from here; no result was written", file=sys.stderr)
        return stopped
    figures = []
    for group, evaluation in zip(planned, evaluations, strict=True):
        figures += REPORTS[group](evaluation)
    if bench.quick:  # too few worlds for a claim
        figures = [replace(figure, goal=None) for figure in figures]
    worlds, days = (2, 10) if bench.quick else (40, 50)
    figures += cost_figures(evaluations, bench.unit("time-per-day", day_ratio, worlds=worlds, days=days)["ratio"])
    return bench.finish(figures, block=BLOCK, look=bench.options.look, pool=list(POOL), against=REFERENCE)


if __name__ == "__main__":
    sys.exit(main())
