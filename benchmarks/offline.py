"""From an empty folder to trained layers: collect, build the dataset, train, and measure on held-out configurations.

Collects a tournament of the official mix (resumable, kept in ``tournament_history/bench_offline``), builds the dataset
of one agent's decisions, trains L2, L3 and the acceptance model (resumable, kept in ``training_runs/bench_offline``)
and compares every network with the trivial baselines and linear models on the test configurations, which nothing was
fitted to. Times are CPU seconds of this process and its children, so that other work on the machine does not count.
"""

import argparse
import resource
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Benchmark, Figure
from litaagent_std.hrl_xf.data_pipeline import DatasetOptions, OfflineData, build_dataset
from litaagent_std.hrl_xf.training.config import PHASES, Phase, TrainRunConfig
from litaagent_std.hrl_xf.training.evaluation.tables import HIGHER, losers, scores
from litaagent_std.hrl_xf.training.launch import train
from litaagent_std.hrl_xf.training.record import TrainingRecord
from litaagent_std.hrl_xf.training.report import as_html, show_run
from litaagent_std.records.reader import open_records
from litaagent_std.tournament.config import TournamentConfig
from litaagent_std.tournament.run import run_tournament
from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing

ROOT = Path(__file__).parent.parent
SPLIT = (0.75, 0.10, 0.15)
STRONGEST = ("top-2024:1", "top-2025:3")  # PenguinAgent, AS0 and two more
DEFAULT_AGENTS = ("GreedyStd", "SyncRandomStd", "RandomStd")
SIZES: dict[str, Any] = {  # those of L2 were chosen by cross-validation over the training configurations
    "l2_epochs": 40,
    "l2_batch_size": 256,
    "l2_lr": 3e-3,
    "l2_lr_stages": ("15:1e-3", "25:3e-4", "35:1e-4"),
    "l2_q_weight": 4.0,
    "l3_epochs": 20,
    "l3_lr_stages": ("10:3e-4", "15:1e-4"),
    "acceptance_epochs": 15,
    "weight_decay": 0.1,
    "patience": 40,
}
QUICK_SIZES: dict[str, Any] = {
    "l2_epochs": 12,
    "l2_batch_size": 64,
    "l3_epochs": 2,
    "acceptance_epochs": 1,
    "eval_max_rows": 5000,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Return what can be chosen beside the common options."""
    parser.add_argument("--worlds", type=int, default=320, help="worlds to collect, at least (default 320)")
    parser.add_argument("--agent", default="PenguinAgent", help="whose decisions to learn (default PenguinAgent)")


def used() -> float:
    """CPU seconds of this process and of its finished children."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Return the result of some work, and its CPU and wall seconds."""
    cpu, wall = used(), time.perf_counter()
    result = work()
    return result, {"cpu_s": used() - cpu, "wall_s": time.perf_counter() - wall}


def tournament(folder: Path, quick: bool, worlds: int, workers: int, names: Sequence[str] = ()) -> TournamentConfig:
    """Return the tournament to learn from: short worlds of the competitors alone, or worlds of the official mix."""
    names = tuple(names) or (DEFAULT_AGENTS if quick else STRONGEST)
    common: dict[str, Any] = {"output_dir": folder, "quiet": True, "csv": False, "runs": 1, "seed": 11}
    if quick:
        return TournamentConfig(competitors=names, configs=8, steps=10, levels=2, executor="inline", **common)
    return TournamentConfig(competitors=names, official_mix=True, target_worlds=worlds, workers=workers, **common)


def collect(folder: str, quick: bool, worlds: int, workers: int) -> dict[str, Any]:
    """Collect what is missing."""
    outcome, spent = timed(lambda: run_tournament(tournament(ROOT / folder, quick, worlds, workers)))
    if not outcome.finished:
        sys.exit("stopped while collecting: run the same command again to resume")
    return {"worlds": len(open_records(ROOT / folder).keys), **spent}


def dataset(records: str, folder: str, agent: str, workers: int) -> dict[str, Any]:
    """Build the dataset."""
    options = DatasetOptions(agent_name=agent, ratios=SPLIT)
    data, spent = timed(lambda: build_dataset(ROOT / records, ROOT / folder, options, num_workers=workers))
    size = sum(path.stat().st_size for path in (ROOT / folder).rglob("*.npy"))
    return {"days": len(data.macro), "decisions": len(data.micro), "mb": size / 1e6, **spent}


def training(
    records: str, folder: str, run: str, agent: str, quick: bool, phases: Sequence[Phase], **more: int
) -> TrainRunConfig:
    """Return the options of a training on a tournament's dataset."""
    return TrainRunConfig(
        data_dir=ROOT / records,
        dataset_dir=ROOT / folder,
        output_dir=ROOT / run,
        agent_name=agent,
        split_ratios=SPLIT,
        num_workers=1,
        phases=tuple(phases),
        horizon=OfflineData.open(ROOT / folder).league_horizon,
        log_dir=ROOT / "diagnose_logs",
        **(QUICK_SIZES if quick else SIZES),
        **more,
    )


def fit(records: str, folder: str, run: str, agent: str, quick: bool) -> dict[str, Any]:
    """Train L2, L3 and the acceptance model, and evaluate them."""
    config = training(records, folder, run, agent, quick, PHASES[:3])
    status, spent = timed(lambda: train(config))
    if status:
        sys.exit("stopped while training: run the same command again to resume")
    content = TrainingRecord.read(ROOT / run).content
    speeds = {name: phase["rows_per_second"] for name, phase in content["phases"].items()}
    return {"evaluation": content["evaluation"], "speeds": speeds, **spent}


def comparisons(report: dict[str, Any], quick: bool) -> list[Figure]:
    """Return for each measure by how much the network is better than the best baseline, relative to the latter."""
    figures = []
    for what, table in scores(report).items():
        for measure, own in table["network"].items():
            others = {name: values[measure] for name, values in table.items() if name != "network"}
            sign = 1.0 if measure in HIGHER else -1.0
            best = max(others, key=lambda name: sign * others[name])
            gain = sign * (own - others[best]) / max(abs(others[best]), 1e-12)
            note = f"network {own:.4g}, {best} {others[best]:.4g}"
            goal = None if quick else 0.0
            figures.append(Figure(name=f"{what}: {measure}", value=100 * gain, unit="%", op=">", goal=goal, note=note))
    return figures


def main() -> int:
    """Run the benchmark."""
    bench = Benchmark("offline", __doc__ or "", seeds=[11], add_options=add_options)
    restart_with_fixed_hashing()
    quick, workers = bench.quick, bench.options.workers
    agent = "Greedy" if quick else bench.options.agent
    name = f"bench_{bench.label.replace('.', '_')}"
    records, run, folder = f"tournament_history/{name}", f"training_runs/{name}", f"tournament_history/{name}_dataset"
    if bench.options.fresh:
        for path in (records, run, folder):
            shutil.rmtree(ROOT / path, ignore_errors=True)
    worlds = bench.options.worlds
    collected = bench.unit("collect", collect, folder=records, quick=quick, worlds=worlds, workers=workers)
    built = bench.unit("dataset", dataset, records=records, folder=folder, agent=agent, workers=1 if quick else workers)
    fitted = bench.unit("fit", fit, records=records, folder=folder, run=run, agent=agent, quick=quick)
    test = fitted["evaluation"]["test"]
    total = sum(part["cpu_s"] for part in (collected, built, fitted))
    lost = losers(test)
    page = ROOT / run / "report.html" if quick else Path(__file__).parent / "results" / "offline.html"
    if (ROOT / run).exists():  # units may come from another clone
        text = as_html(show_run(ROOT / run), [ROOT / run]).replace(f"{ROOT}/", "")  # results name no machine
        page.write_text(text, encoding="utf-8")
    figures = [
        Figure(name="worlds", value=collected["worlds"], goal=None if quick else 300),
        Figure(name="CPU time from an empty folder to trained layers", value=total / 60, unit="min"),
        Figure(name="collecting: CPU time", value=collected["cpu_s"] / 60, unit="min"),
        Figure(name="dataset: decisions per CPU second", value=built["decisions"] / built["cpu_s"], unit="1/s"),
        Figure(name="dataset: decisions", value=built["decisions"], note=f"{built['days']} days"),
        Figure(name="training: CPU time", value=fitted["cpu_s"] / 60, unit="min"),
        *(
            Figure(name=f"training {phase}: rows per CPU second", value=speed, unit="1/s")
            for phase, speed in fitted["speeds"].items()
        ),
        *comparisons(test, quick),
    ]
    print("\n".join(["measures in which a baseline is not beaten:", *lost] if lost else ["every baseline is beaten"]))
    return bench.finish(figures, evaluation=fitted["evaluation"], picture=page.name)


if __name__ == "__main__":
    sys.exit(main())
