"""Whether a learned layer plays better than its heuristic: layers cloned from others and from ourselves, in the arena.

For each teacher: a tournament in which it plays (resumable), the dataset of its decisions, L2, L3, the acceptance model
and L4 trained from it, then L3 once more by advantage-weighted regression. Each learned layer then replaces its
heuristic in our agent, alone and together with the others, on seeds of a gate that nothing was fitted to.
Positive figures would mean that learning is ahead. See docs/league/training.md.
"""

import argparse
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.harness import Benchmark, Figure
from benchmarks.offline import ROOT, dataset, tournament, training
from benchmarks.paired import play_plans
from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.arena.evaluation import Evaluation, Plan
from litaagent_std.arena.seeds import seed_block
from litaagent_std.arena.worlds import Rules
from litaagent_std.hrl_xf.training.config import PHASES
from litaagent_std.hrl_xf.training.launch import train
from litaagent_std.tournament.competitors.names import Competitor, opponents, resolve
from litaagent_std.tournament.run import run_tournament
from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing
from litaagent_std.world.setup import AgentSpec

LITA = f"{LitaAgentHRL.__module__}.{LitaAgentHRL.__qualname__}"
POOL = ("PenguinAgent", "AS0", "SBD", "TakaLinkAgent", "Std", "COW", "Rohn")
"""Opponents on the gate: finalists that decide fast, so that many worlds can be played."""
CLONED, WEIGHTED = "cloned", "weights"
"""Folders of a run: weights before and after advantage-weighted regression."""
VARIANTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "L2 cloned": (CLONED, ("l2",)),
    "L3 cloned": (CLONED, ("l3",)),
    "L3 by AWR": (WEIGHTED, ("l3",)),
    "L4 distilled": (CLONED, ("l4",)),
    "all learned": (WEIGHTED, ("l2", "l3", "l4")),
}


@dataclass(frozen=True)
class Teacher:
    """Whose decisions are learned, and the tournament of so many worlds that holds them, maybe another benchmark's."""

    agent: str
    records: str
    worlds: int = 0
    competitors: tuple[str, ...] = ()


TEACHERS = {
    "PenguinAgent": Teacher("PenguinAgent", "bench_offline", 320),
    "LitaAgentHRL": Teacher("LitaAgentHRL", "bench_layers_lita", 200, (LITA, "top-2024:1", "top-2025:1")),
}
QUICK_TEACHERS = {
    "GreedyStdAgent": Teacher("Greedy", "bench_layers_quick"),
    "LitaAgentHRL": Teacher("LitaAgentHRL", "bench_layers_quick_lita", competitors=(LITA, "GreedyStd")),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Return what can be chosen beside the common options."""
    parser.add_argument("--worlds", type=int, default=300, help="worlds per comparison at most (default 300)")
    parser.add_argument("--days", type=int, nargs="+", default=[50, 100], help="their lengths (default 50 100)")
    parser.add_argument("--gate", default="layers", help="the gate's name (default layers)")


def learn(
    agent: str, records: str, run: str, names: Sequence[str], quick: bool, worlds: int, workers: int
) -> dict[str, Any]:
    """Collect what is missing, build the dataset, train every layer; returns how much there was to learn from."""
    history, folder = f"tournament_history/{records}", f"tournament_history/{records}_dataset"
    if not run_tournament(tournament(ROOT / history, quick, worlds, workers, names)).finished:
        sys.exit("stopped while collecting: run the same command again to resume")
    made = dataset(history, folder, agent, 1 if quick else workers)
    epochs = 1 if quick else 6
    for phases in (tuple(phase for phase in PHASES if phase != "awr"), PHASES):
        config = training(history, folder, run, agent, quick, phases, awr_epochs=epochs, l4_epochs=epochs)
        if train(config):  # what is trained already stays as it is
            sys.exit("stopped while training: run the same command again to resume")
        if phases != PHASES:
            shutil.copytree(ROOT / run / WEIGHTED, ROOT / run / CLONED, dirs_exist_ok=True)
    return {"days": made["days"], "decisions": made["decisions"]}


def run_of(bench: Benchmark, teacher: str) -> str:
    """Return the folder of a teacher's training."""
    return f"training_runs/bench_{bench.label.replace('.', '_')}_{teacher}"


def plan_of(bench: Benchmark, teachers: Mapping[str, Teacher]) -> Plan:
    """Our agent, and beside it the same with learned layers of every teacher, in the worlds of a gate."""
    [heuristic] = resolve(["lita"], integer_offers=True)
    learned = [
        Competitor(
            f"{variant} from {teacher}",
            AgentSpec(
                LITA,
                {**dict.fromkeys(layers, "learned"), "weights": f"{run_of(bench, teacher)}/{weights}"},
                competitor=True,
            ),
        )
        for teacher in teachers
        for variant, (weights, layers) in VARIANTS.items()
    ]
    days = (10,) if bench.quick else tuple(bench.options.days)
    rules = Rules(opponents(POOL, integer_offers=True), days=days, levels=2 if bench.quick else None)
    block = seed_block(f"gate:{bench.options.gate}{'-quick' if bench.quick else ''}")
    return Plan(heuristic, tuple(learned), rules, block, 2 if bench.quick else bench.options.worlds)


def report(evaluation: Evaluation) -> list[Figure]:
    """Return what each learned layer adds to the agent's score: its interval holds at all looks together."""
    figures = []
    for learned in evaluation.plan.against:
        verdict = evaluation.verdict(learned.name)
        answer = {"better": "worse than its heuristic", "not better": "better than its heuristic", "open": "open"}
        interval = f"95 % interval {-verdict.high:+.4f} … {-verdict.low:+.4f}"
        note = f"{interval}, {verdict.worlds} worlds: {answer[verdict.answer]}"
        figures.append(Figure(name=f"{learned.name}: added", value=-verdict.mean, note=note))
    return [*figures, Figure(name="worlds that failed", value=len(evaluation.failed), op="==", goal=0)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    bench = Benchmark("layers", __doc__ or "", seeds=[11], argv=argv, add_options=add_options)
    restart_with_fixed_hashing()
    teachers = QUICK_TEACHERS if bench.quick else TEACHERS
    taught = {}
    for name, teacher in teachers.items():
        if bench.options.fresh:
            shutil.rmtree(ROOT / run_of(bench, name), ignore_errors=True)
        taught[name] = bench.unit(
            f"learn-{name}",
            learn,
            agent=teacher.agent,
            records=teacher.records,
            run=run_of(bench, name),
            names=list(teacher.competitors),
            quick=bench.quick,
            worlds=teacher.worlds,
            workers=bench.options.workers,
        )
    [evaluation], stopped = play_plans(bench, [plan_of(bench, teachers)])
    if stopped:
        print("stopped: the same command resumes from here; no result was written", file=sys.stderr)
        return stopped
    sizes = [
        Figure(name=f"decisions of {name}", value=one["decisions"], note=f"{one['days']} days")
        for name, one in taught.items()
    ]
    return bench.finish([*sizes, *report(evaluation)], block=evaluation.plan.block.name, pool=list(POOL))


if __name__ == "__main__":
    sys.exit(main())
