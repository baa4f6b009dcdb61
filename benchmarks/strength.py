"""How strong the agent is: paired worlds of the verdict block against each of the strongest of 2024 to 2026.

Only the agent in the focal seat changes; configuration, seats, opponents and randomness are the same. Every comparison
is checked after every world by a confidence sequence, which holds at all checks and for all opponents together, and
ends when it excludes 0, at most at ``--worlds``. With ``--weights``, the agent under trained weights is compared with
the agent itself in the same way. See docs/league/strength.md.
"""

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from apexrl.runs.errors import ConfigurationError
from benchmarks.harness import Benchmark, Figure
from benchmarks.paired import play_plans
from benchmarks.trained import trained_agent
from litaagent_std.arena.evaluation import Evaluation, Plan
from litaagent_std.arena.report import report_of
from litaagent_std.arena.seeds import seed_block
from litaagent_std.arena.sequential import ALPHA
from litaagent_std.arena.worlds import Rules
from litaagent_std.policy.networks.weights import WeightsError
from litaagent_std.tournament.competitors.names import opponents, resolve

BAR = "HorizonAwareAgent"
OTHERS = (
    "PenguinAgent",
    "AS0",
    "SBD",
    "XenoSotaAgent",
    "TakaLinkAgent",
    "Std",
    "PriceTrendStdAgent",
    "COW",
    "Rohn",
)
POOL = ("finalists-2024", "finalists-2025", "finalists-2026")
LEAD, LOWEST_LEAD = 0.10, 0.06
"""Goals of the lead over the bar, and of the lower end of its interval."""
FEWEST = 200
"""Worlds before which only what is very clear is decided: so the error stays below 5 % for skewed differences too."""
PRECISION = 0.04
"""Half width up to which the lead over the bar is measured."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--worlds", type=int, default=1500, help="worlds per comparison at most (default 1500)")
    parser.add_argument("--agent", default="lita", help="the agent, as lita arena names it (default lita)")
    parser.add_argument("--against", nargs="+", default=[BAR, *OTHERS], help="some of the opponents (default all)")
    parser.add_argument(
        "--weights",
        default="",
        help="trained weights whose worth is shown too: the folder of a run, or of its weights (default: none)",
    )
    parser.add_argument("--as-shipped", action="store_true", help="opponents' offers as they are, not whole numbers")
    parser.add_argument(
        "--gate", help="judge on the block gate:NAME instead of the verdict's; kept apart from the verdict"
    )


def plans(bench: Benchmark) -> list[Plan]:
    """Return the bar, whose lead is measured precisely, and the others, who need a clear answer only."""
    options = bench.options
    if bench.quick:
        block = seed_block("gate:strength-quick")
    else:
        block = seed_block(f"gate:{options.gate}") if options.gate else seed_block("verdict", open_verdict=True)
    integer = not options.as_shipped
    days = (50,) if bench.quick else (50, 100, 200)
    worlds = 2 if bench.quick else options.worlds
    focal, *against = resolve([options.agent, *options.against], integer_offers=integer, distinct=True)
    rules = Rules(opponents(POOL, integer_offers=integer), days=days)
    groups = [
        ([other for other in against if other.name == BAR], PRECISION),
        ([other for other in against if other.name != BAR], math.inf),
    ]
    alpha = ALPHA / len(against)  # all claims hold together
    planned = [
        Plan(focal, tuple(some), rules, block, worlds, alpha=alpha, fewest=FEWEST, precision=precision)
        for some, precision in groups
        if some
    ]
    if options.weights:
        trained, places = trained_agent(options.weights)
        planned.append(Plan(trained, (focal,), rules, block, worlds, fewest=FEWEST, places=places))
    return planned


def advantage(row: Mapping[str, Any], *, quick: bool = False, of: str = "") -> list[Figure]:
    """Return a comparison's figures: the lower end beside 0, and the lead over the bar beside its goal.

    A quick run has too few worlds to claim anything: it shows means without goals.
    """
    name, verdict, every = row["against"], row["verdict"], row["difference"]["all"]
    title = f"{of} minus {name}".strip()
    low = -math.inf if verdict["low"] is None else verdict["low"]
    high = math.inf if verdict["high"] is None else verdict["high"]
    note = f"{every['mean']:+.3f}, {low:+.3f} … {high:+.3f} at any time, {every['worlds']} worlds, {verdict['answer']}"
    if quick:
        return [Figure(name=f"{title}: mean", value=every["mean"], note=f"{every['worlds']} worlds, no claim")]
    goal = LOWEST_LEAD if name == BAR else 0.0
    figures = [Figure(name=f"{title}: lower end", value=low, op=">", goal=goal, note=note)]
    if name == BAR:
        figures.append(Figure(name=f"{title}: mean", value=every["mean"], op=">=", goal=LEAD))
    return figures


def costs(agents: Mapping[str, Any]) -> list[Figure]:
    """Decision times of everyone, by CPU; our own first."""
    figures = []
    for name, agent in agents.items():
        cpu = agent["cpu"]
        note = f"{cpu['decision_ms']:.2f} ms per round, longest {cpu['longest_decision_ms']:.0f} ms"
        figures.append(Figure(name=f"{name}: time per day", value=cpu["day_ms"], unit="ms", note=note))
    return figures


def report(evaluations: Sequence[Evaluation], *, quick: bool = False) -> tuple[list[Figure], dict[str, Any]]:
    """Return every figure, and the reports they come from."""
    reports = [report_of(evaluation) for evaluation in evaluations]
    agents: dict[str, Any] = {}
    for result in reports:
        for name, agent in result["agents"].items():
            if name not in agents or agent["scores"]["all"]["worlds"] > agents[name]["scores"]["all"]["worlds"]:
                agents[name] = agent
    focal = reports[0]["focal"]
    figures = [
        figure
        for result in reports
        for row in result["comparisons"]
        for figure in advantage(row, quick=quick, of="" if result["focal"] == focal else result["focal"])
    ]
    if focal in agents:
        facts, scores = agents[focal]["facts"], agents[focal]["scores"]["all"]
        figures += [
            Figure(name="our exceptions", value=facts["errors"], op="==", goal=0),
            Figure(name="our mean score", value=scores["mean"], note=f"5 % quantile {scores['low_tail']:.3f}"),
            Figure(name="our shortfall penalties", value=100 * facts["shortfall"], unit="% of the start balance"),
            Figure(name="our bankruptcies", value=100 * facts["bankrupt"], unit="%"),
        ]
    figures.append(
        Figure(name="worlds that failed", value=sum(len(result["failed"]) for result in reports), op="==", goal=0)
    )
    details = {
        "block": reports[0]["block"],
        "rules": reports[0]["rules"],
        "code": reports[0]["code"],
        "comparisons": [row for result in reports for row in result["comparisons"]],
        "agents": agents,
    }
    return figures + costs(agents), details


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    apart = ("as_shipped", "gate")
    bench = Benchmark(
        "strength", "Paired worlds against the strongest.", argv=argv, add_options=add_options, apart=apart
    )
    try:
        planned = plans(bench)
    except (ConfigurationError, WeightsError) as error:
        sys.exit(str(error))
    evaluations, stopped = play_plans(bench, planned)
    if stopped:
        print("stopped: the same command resumes from here; no result was written", file=sys.stderr)
        return stopped
    figures, details = report(evaluations, quick=bench.quick)
    return bench.finish(figures, **details)


if __name__ == "__main__":
    sys.exit(main())
