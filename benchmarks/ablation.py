"""What each part is worth: L1 alone, then with L2, L3, L4, urgency, learned types and goals, in both regimes.

All steps play the same worlds of a gate in the same seats, so each layer's worth is a paired difference to the step
before it. What a step is, `benchmarks.ablations` says. ``--stages cloned=FOLDER awr=FOLDER online=FOLDER`` adds agents
with trained layers to the first regime: the worth of a stage is its difference to the stage before, of the first one to
the default agent.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from apexrl.runs.errors import ConfigurationError
from apexrl.statistics import paired_difference
from benchmarks.ablations import STEPS
from benchmarks.harness import Benchmark, Figure
from benchmarks.paired import play_plans
from litaagent_std.arena.evaluation import Evaluation, Plan
from litaagent_std.arena.seeds import seed_block
from litaagent_std.arena.worlds import Rules
from litaagent_std.tournament.competitors.names import Competitor, opponents
from litaagent_std.tournament.competitors.parameter_files import parameter_file, read_parameters
from litaagent_std.world.setup import AgentSpec

BLOCK = "gate:ablation"
REGIMES = {"stock stays": "as_shipped", "stock depletes": "depleting"}
_STAGED = next(iter(REGIMES))
"""The regime in which stages of training are played: the league's."""
_DEFAULT, _ = list(STEPS.values())[-1]
POOL = ("finalists-2024", "finalists-2025", "finalists-2026")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--worlds", type=int, default=200, help="worlds per regime (default 200)")
    parser.add_argument("--days", type=int, nargs="+", default=[50, 100, 200], help="lengths (default 50 100 200)")
    parser.add_argument("--regimes", nargs="+", choices=REGIMES, default=list(REGIMES), help="regimes (default both)")
    parser.add_argument("--stages", nargs="+", default=[], help="NAME=FOLDER of trained weights, in order")
    parser.add_argument(
        "--tuned",
        default="shipped",
        help="file of tuned parameters, or its name in the package; none leaves tuning out",
    )
    parser.add_argument("--opponents", nargs="+", default=list(POOL), help=f"who else plays (default {' '.join(POOL)})")


def tuning(name: str) -> dict[str, dict[str, Any] | None]:
    """Parameters before and after tuning; the defaults alone if ``none`` is named or nothing was tuned yet."""
    if name == "none":
        return {"defaults": None}
    try:
        path = parameter_file(name)
    except ConfigurationError:
        if name != "shipped":
            raise
        return {"defaults": None}
    content = json.loads(path.read_text(encoding="utf-8"))
    return {"before tuning": content.get("start"), "after tuning": read_parameters(str(path))}


def stages_of(words: Sequence[str]) -> list[Competitor]:
    """Return the agents of the stages of training.

    Raises:
        ConfigurationError: If a word is not ``NAME=FOLDER``.
    """
    stages = []
    for word in words:
        name, equals, folder = word.partition("=")
        if not (name and equals and folder):
            raise ConfigurationError(f"--stages {word}", "a stage is NAME=FOLDER", "such as cloned=training_runs/RUN")
        stages.append(Competitor(f"stage {name}", AgentSpec(_DEFAULT, {"weights": folder}, competitor=True)))
    return stages


def plan_of(regime: str, when: Mapping[str, dict[str, Any] | None], bench: Benchmark) -> Plan:
    """Plan all steps with all parameters in one regime; which one is focal does not matter, since all are compared."""
    those = []
    for time, parameters in when.items():
        for step, (path, params) in STEPS.items():
            given = {**(parameters or {}), **params.get("parameters", {})}  # a step without a part stays without it
            settings = {**params, "parameters": given} if given else params
            those.append(Competitor(f"{step}, {time}", AgentSpec(path, settings, competitor=True)))
    if regime == _STAGED:
        those += stages_of(bench.options.stages)
    days = (20,) if bench.quick else tuple(bench.options.days)
    pool = opponents(bench.options.opponents, integer_offers=True)
    rules = Rules(pool, days=days, inventory=REGIMES[regime])  # type: ignore[arg-type]
    block = seed_block(f"{BLOCK}-quick" if bench.quick else BLOCK)
    return Plan(those[0], tuple(those[1:]), rules, block, 2 if bench.quick else bench.options.worlds, stop_early=False)


def scores_of(evaluation: Evaluation) -> dict[str, np.ndarray]:
    """Scores by name in the worlds that all have played, in the same order."""
    names = [competitor.name for competitor in (evaluation.plan.focal, *evaluation.plan.against)]
    shared = sorted(set.intersection(*(set(evaluation.units.get(name, {})) for name in names)))
    return {name: np.array([evaluation.units[name][index]["score"] for index in shared]) for name in names}


def compare(name: str, first: np.ndarray, second: np.ndarray) -> Figure:
    """Return a paired difference with its interval as a figure without a goal."""
    gap = paired_difference(first, second)
    interval = "one world" if gap.low is None else f"95 % interval {gap.low:+.4f} … {gap.high:+.4f}"
    note = f"{interval}, won {100 * gap.won:.0f} %, {gap.count} worlds"
    return Figure(name=name, value=gap.mean, note=note)


def report(evaluations: Mapping[str, Evaluation], times: Sequence[str]) -> list[Figure]:
    """Means of every step, each layer's worth, and what tuning added to all four."""
    figures = []
    for regime, evaluation in evaluations.items():
        scores = scores_of(evaluation)
        steps = list(STEPS)
        for time in times:
            for index, step in enumerate(steps):
                own = scores[f"{step}, {time}"]
                figures.append(Figure(name=f"{regime}, {time}, {step}: mean score", value=float(own.mean())))
                if index:
                    before = scores[f"{steps[index - 1]}, {time}"]
                    figures.append(compare(f"{regime}, {time}, {step}: added", own, before))
        before = scores[f"{steps[-1]}, {times[0]}"]
        for name in (competitor.name for competitor in evaluation.plan.against if competitor.name.startswith("stage ")):
            figures.append(compare(f"{regime}, {name}: added", scores[name], before))
            before = scores[name]
        if len(times) > 1:
            first, last = (scores[f"{steps[-1]}, {time}"] for time in (times[0], times[-1]))
            figures.append(compare(f"{regime}: tuning added", last, first))
    failed = sum(len(evaluation.failed) for evaluation in evaluations.values())
    return [*figures, Figure(name="worlds that failed", value=failed, op="==", goal=0)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    bench = Benchmark("ablation", "The worth of each layer.", argv=argv, add_options=add_options)
    regimes = bench.options.regimes
    try:
        when = tuning(bench.options.tuned)
        planned = [plan_of(regime, when, bench) for regime in regimes]
    except ConfigurationError as error:
        sys.exit(str(error))
    evaluations, stopped = play_plans(bench, planned)
    if stopped:
        print("stopped: the same command resumes from here; no result was written", file=sys.stderr)
        return stopped
    figures = report(dict(zip(regimes, evaluations, strict=True)), list(when))
    facts = {"tuned": bench.options.tuned, "stages": bench.options.stages, "opponents": bench.options.opponents}
    return bench.finish(figures, block=BLOCK, **facts)


if __name__ == "__main__":
    sys.exit(main())
