"""Whether layers trained online beat the heuristics that their training started from, on the verdict's seeds.

Only the agent in the focal seat changes; configuration, seats, opponents and randomness are the same, and a confidence
sequence that holds at all checks together is computed after every world. No gate of a training ever used these seeds.
Layers that were trained for some levels of the chain are judged at these: elsewhere both are the same agent. Without
options it is the default agent, whose L2 comes with the package. With ``--cloned`` the agent meets one whose L2 was
cloned instead, at all levels, into a result of its own. See docs/league/online.md.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from apexrl.runs.errors import ConfigurationError
from apexrl.statistics import paired_difference
from benchmarks.harness import Benchmark, Figure
from benchmarks.layers import LITA, POOL
from benchmarks.paired import play_plans
from litaagent_std.arena.evaluation import Evaluation, Plan
from litaagent_std.arena.report import report_of
from litaagent_std.arena.seeds import seed_block
from litaagent_std.arena.worlds import Rules, draw
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.policy.learned import SHIPPED_GOALS
from litaagent_std.policy.networks.weights import WeightsError
from litaagent_std.policy.parameters import LEVELS, Level, Parameters
from litaagent_std.tournament.competitors.names import Competitor, opponents
from litaagent_std.tournament.competitors.parameter_files import read_parameters
from litaagent_std.world.setup import AgentSpec

FEWEST = 200
"""Worlds before which only what is very clear is decided; see benchmarks.strength."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Return what can be chosen beside the common options."""
    parser.add_argument("--weights", default="", help="trained weights: a folder (default: the package's L2)")
    parser.add_argument("--parameters", help="instead, parameters by lita tune: a file, or a name of the package")
    parser.add_argument("--cloned", type=Path, help="against L2 by these cloned weights: a folder")
    parser.add_argument("--worlds", type=int, default=1500, help="worlds per comparison at most (default 1500)")
    parser.add_argument("--days", type=int, nargs="+", default=[50, 100], help="their lengths (default 50 100)")
    parser.add_argument("--gate", help="judge on the block gate:NAME instead of the verdict's")


def trained_agent(weights: str, parameters: str | None = None) -> tuple[Competitor, tuple[Level, ...]]:
    """Return the agent in question, and the levels of the chain at which it differs from the heuristic agent."""
    if parameters is not None:
        values = read_parameters(parameters)
        elsewhere = replace(Parameters.from_mapping(values), overrides={}) == Parameters()
        levels = tuple(level for level in LEVELS if level in values["overrides"]) if elsewhere else LEVELS
        return Competitor("trained", AgentSpec(LITA, {"parameters": values}, competitor=True)), levels
    levels = Hierarchy.load(weights or SHIPPED_GOALS).levels
    params = {"weights": weights} if weights else {}
    return Competitor("trained", AgentSpec(LITA, params, competitor=True)), levels


def plan_of(bench: Benchmark) -> Plan:
    """Return the trained agent, and beside it the one that it started from."""
    options = bench.options
    trained, levels = trained_agent(options.weights, options.parameters)
    against = Competitor("heuristic", AgentSpec(LITA, {"l2": "heuristic"}, competitor=True))
    if options.cloned is not None:
        params = {"l2": "learned", "weights": str(options.cloned)}
        against, levels = Competitor("cloned", AgentSpec(LITA, params, competitor=True)), LEVELS
    if bench.quick:
        block = seed_block("gate:trained-quick")
    else:
        block = seed_block(f"gate:{options.gate}") if options.gate else seed_block("verdict", open_verdict=True)
    days = (10,) if bench.quick else tuple(options.days)
    rules = Rules(opponents(POOL, integer_offers=True), days=days)
    worlds = 2 if bench.quick else options.worlds
    return Plan(trained, (against,), rules, block, worlds, fewest=FEWEST, places=levels)


def report(evaluation: Evaluation, *, quick: bool) -> list[Figure]:
    """Return the lower ends beside 0, and the advantage by level."""
    result = report_of(evaluation)
    figures = []
    for row in result["comparisons"]:
        name, verdict, every = row["against"], row["verdict"], row["difference"]["all"]
        if quick or verdict["low"] is None:
            figures.append(Figure(name=f"minus {name}: mean", value=every["mean"], note=f"{every['worlds']} worlds"))
            continue
        interval = f"{verdict['low']:+.4f} … {verdict['high']:+.4f} at any time"
        note = f"{every['mean']:+.4f}, {interval}, {every['worlds']} worlds, {verdict['answer']}"
        figures.append(Figure(name=f"minus {name}: lower end", value=verdict["low"], op=">", goal=0.0, note=note))
        figures += [
            Figure(name=f"minus {name}: {group}", value=part["mean"], note=f"{part['worlds']} worlds")
            for group, part in row["difference"].items()
            if group != "all" and part["worlds"]
        ]
    figures += [figure for competitor in evaluation.plan.against for figure in by_chain(evaluation, competitor.name)]
    return [*figures, Figure(name="worlds that failed", value=len(result["failed"]), op="==", goal=0)]


def by_chain(evaluation: Evaluation, name: str) -> list[Figure]:
    """Return the advantage by the number of levels of the chain, with the interval of a fixed number of worlds."""
    pairs = list(zip(*evaluation.pairs(name), strict=True))
    levels = [draw(evaluation.plan.rules, own["seed"]).setup.n_levels for own, _ in pairs]
    figures = []
    for number in sorted(set(levels)):
        some = [pair for pair, of in zip(pairs, levels, strict=True) if of == number]
        gap = paired_difference([own["score"] for own, _ in some], [other["score"] for _, other in some])
        interval = "" if gap.low is None else f", 95 % interval {gap.low:+.4f} … {gap.high:+.4f}"
        note = f"{gap.count} worlds{interval}"
        figures.append(Figure(name=f"minus {name}: chains of {number} levels", value=gap.mean, note=note))
    return figures


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    apart = ("parameters", "cloned", "gate")
    bench = Benchmark("trained", __doc__ or "", argv=argv, add_options=add_options, apart=apart)
    try:
        plan = plan_of(bench)
    except (ConfigurationError, WeightsError) as error:
        sys.exit(str(error))
    [evaluation], stopped = play_plans(bench, [plan])
    if stopped:
        print("stopped: the same command resumes from here; no result was written", file=sys.stderr)
        return stopped
    figures = report(evaluation, quick=bench.quick)
    trained = bench.options.parameters or bench.options.weights or SHIPPED_GOALS.name
    return bench.finish(figures, block=evaluation.plan.block.name, pool=list(POOL), trained=trained)


if __name__ == "__main__":
    sys.exit(main())
