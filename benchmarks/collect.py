"""Collecting complete records: speed and size beside scml with ``log_negotiations=True``, and 1,000 worlds once.

Both sides play the same worlds of the official mix with the best of 2024, 2025 and 2026, in one process, one after the
other; CPU time is compared. Ours includes recording, packing and gathering into shards. The collection of 1,000 worlds
runs on two processes, is kept in ``tournament_history/bench_collect``, and resumes where it stopped.
"""

import argparse
import gc
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from negmas.situated import save_stats

from benchmarks.harness import Benchmark, Figure
from litaagent_std.records.reader import open_records
from litaagent_std.records.recorder import Recorder, WorldFacts
from litaagent_std.records.storage.segment import pack_world
from litaagent_std.records.storage.store import RecordStore
from litaagent_std.tournament.competitors.names import resolve
from litaagent_std.tournament.config import TournamentConfig
from litaagent_std.tournament.plan import make_plan
from litaagent_std.tournament.play import WorldTask, make_setup, play_world
from litaagent_std.tournament.run import run_tournament
from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing
from litaagent_std.world.reproducible.silence import silence
from litaagent_std.world.run import run_world
from litaagent_std.world.scml.engine import plain_scml_world

ROOT = Path(__file__).parent.parent
COLLECTION = ROOT / "tournament_history" / "bench_collect"
ROSTER = ("top-2025:5", "top-2024:5", "finalists-2026")
EXAMPLE = (
    "--configs 1 --runs 1 --max-top-2025 2 --max-top-2024 2 --max-worlds-per-config 11 --parallelism loky --foreground"
)


def folder_bytes(folder: Path) -> int:
    """Return the size of all files under a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def world_task(world: int, days: int | None) -> WorldTask:
    """Return a world of the official mix with agents as shipped, so that scml can play the same one."""
    config = TournamentConfig(official_mix=True, configs=world + 1, runs=1, seed=7)
    competitors = resolve(ROSTER, integer_offers=False)
    specs = [spec for spec in make_plan(config, len(competitors)).worlds if spec.config == world]
    spec = specs[world % len(specs)]
    names, agents = zip(*((competitor.name, competitor.spec) for competitor in competitors), strict=True)
    return WorldTask(spec, names, agents, days, None, "as_shipped", "fast", False)


def compare(world: int, days: int | None) -> dict[str, float]:
    """CPU seconds and bytes of one world on both sides."""
    task = world_task(world, days)
    setup, _ = make_setup(task)
    _warm_up(task)
    with tempfile.TemporaryDirectory() as temporary:
        ours, theirs = Path(temporary) / "ours", Path(temporary) / "scml"
        store = RecordStore(ours, {}, task.spec.world + 1, shard_size=1)
        started = time.process_time()
        store.add(task.spec.world, play_world(task).packed)
        our_seconds = time.process_time() - started
        started = time.process_time()
        with silence():
            full = {"log_folder": str(theirs), "fast": False, "compact": False, "no_logs": False}
            scml = plain_scml_world(setup, **full, log_negotiations=True, ignore_agent_exceptions=True)
            scml.run()
            save_stats(scml, scml.log_folder)
        scml_seconds = time.process_time() - started
        sizes = (folder_bytes(ours), folder_bytes(theirs))
    result = {"days": setup.n_days, "ours_s": our_seconds, "scml_s": scml_seconds}
    return result | {"ours_bytes": sizes[0], "scml_bytes": sizes[1]}


def _warm_up(task: WorldTask) -> None:
    """Import the agents and plays a few days: importing is no part of a world's cost."""
    short, _ = make_setup(replace(task, days=5))
    with silence():
        run_world(short)


def recording(world: int, days: int | None, defaults: Literal["hosted", "native"]) -> dict[str, float]:
    """CPU seconds of one world without and with its record, packed.

    Nine pairs of runs, who goes first in turns; the quickest run of each kind is the one that was disturbed least.
    """
    task = world_task(world, days)
    setup, labels = make_setup(task)
    facts = WorldFacts(0, 0, 0, 0, 0, labels)
    _warm_up(task)

    def bare() -> None:
        run_world(setup, defaults=defaults)

    def recorded() -> None:
        recorder = Recorder(setup, facts)
        run_world(setup, observers=[recorder], defaults=defaults)
        pack_world(0, recorder.tables())

    seconds: dict[Callable[[], None], list[float]] = {bare: [], recorded: []}
    with silence():
        for pair in range(9):
            for run in (bare, recorded) if pair % 2 else (recorded, bare):
                gc.collect()
                started = time.process_time()
                run()
                seconds[run].append(time.process_time() - started)
    return {"bare_s": min(seconds[bare]), "recorded_s": min(seconds[recorded])}


def example(steps: int) -> dict[str, float]:
    """Play the small example of docs/league/tournaments.md; return its seconds and bytes."""
    with tempfile.TemporaryDirectory() as temporary:
        target = Path(temporary) / "hrl_data_smoke_std"
        words = [*EXAMPLE.split(), "--steps", str(steps), "--output-dir", str(target)]
        started = time.perf_counter()
        command = [sys.executable, "-m", "runners.hrl_data_runner", *words]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - started
        worlds = len(open_records(target).keys)
        return {"seconds": seconds, "worlds": worlds, "bytes": folder_bytes(target / "records")}


def collection(worlds: int, days: int | None, folder: str, workers: int) -> dict[str, Any]:
    """Return a collection of the official mix on processes; it resumes where it stopped."""
    target = ROOT / folder
    config = TournamentConfig(
        competitors=ROSTER,
        official_mix=True,
        target_worlds=worlds,
        steps=days,
        runs=1,
        output_dir=target,
        executor="processes",
        workers=workers,
        csv=False,
    )
    outcome = run_tournament(config)
    if not outcome.finished:
        sys.exit(outcome.exit_code or 1)
    timings = [json.loads(line) for line in (target / "wall_clock.jsonl").read_text().splitlines()]
    busy = sum(attempt["seconds"] for timing in timings for attempt in timing["attempts"])
    records = open_records(target)
    return {
        "worlds": len(records.keys),
        "failed": len(records.sources[0].manifest.failed),
        "days": sum(records.table("worlds", columns=["n_days"])["n_days"].to_pylist()),
        "cpu_hours": sum(timing["cpu_seconds"] or 0 for timing in timings) / 3600,
        "wall_hours": busy / workers / 3600,
        "bytes": folder_bytes(target / "records"),
        "turns": sum(shard.files["turns"].rows for shard in records.sources[0].manifest.shards),
    }


def figures(
    pairs: list[dict[str, float]],
    costs: dict[str, list[dict[str, float]]],
    shown: dict[str, float],
    big: dict[str, Any],
) -> list[Figure]:
    """Return the table."""
    ours, scml = sum(p["ours_s"] for p in pairs), sum(p["scml_s"] for p in pairs)
    size, scml_size = sum(p["ours_bytes"] for p in pairs), sum(p["scml_bytes"] for p in pairs)
    days = f"{len(pairs)} worlds, {sum(p['days'] for p in pairs):.0f} days"
    spread = (
        f"{min(p['scml_s'] / p['ours_s'] for p in pairs):.1f} to {max(p['scml_s'] / p['ours_s'] for p in pairs):.1f}"
    )
    shares = {kind: [c["recorded_s"] / c["bare_s"] - 1 for c in some] for kind, some in costs.items()}
    return [
        Figure(name="CPU time of scml / ours", value=scml / ours, unit="x", goal=25.0, note=f"{days}; {spread}"),
        Figure(name="bytes of scml / ours", value=scml_size / size, unit="x", goal=10.0, note=days),
        Figure(name="worlds per CPU hour, ours", value=len(pairs) / ours * 3600),
        Figure(name="worlds per CPU hour, scml", value=len(pairs) / scml * 3600),
        Figure(name="MB per world, ours", value=size / len(pairs) / 1e6, unit="MB"),
        Figure(name="MB per world, scml", value=scml_size / len(pairs) / 1e6, unit="MB"),
        *(
            Figure(
                name=f"cost of recording, {kind} default agents",
                value=statistics.median(some) * 100,
                unit="%",
                op="<",
                goal=10.0,
                note=f"median of {len(some)} worlds",
            )
            for kind, some in shares.items()
        ),
        Figure(name="small example: time", value=shown["seconds"], unit="s", note=f"{shown['worlds']} worlds"),
        Figure(name="small example: records", value=shown["bytes"] / 1e6, unit="MB"),
        Figure(name="collection: worlds", value=big["worlds"], note=f"{big['failed']} failed, {big['days']} days"),
        Figure(name="collection: time on two processes", value=big["wall_hours"], unit="h"),
        Figure(name="collection: CPU time", value=big["cpu_hours"], unit="h"),
        Figure(name="collection: MB per world", value=big["bytes"] / big["worlds"] / 1e6, unit="MB"),
        Figure(name="collection: bytes per turn", value=big["bytes"] / big["turns"], unit="B"),
    ]


def options(parser: argparse.ArgumentParser) -> None:
    """Return the size of the collection."""
    parser.add_argument("--worlds", type=int, default=1000, help="worlds of the collection")


def main() -> int:
    """Measure, collect and show."""
    restart_with_fixed_hashing()
    bench = Benchmark("collect", __doc__ or "", seeds=[7, 0], add_options=options)
    days = 8 if bench.quick else None
    n_pairs = 2 if bench.quick else 5
    some, longer = (20, 60) if bench.quick else (None, None)
    pairs = [bench.unit(f"pair-{world}", compare, world=world, days=some) for world in range(n_pairs)]
    costs = {
        kind: [
            bench.unit(f"recording-{kind}-{world}", recording, world=world, days=longer, defaults=kind)
            for world in range(n_pairs)
        ]
        for kind in ("hosted", "native")
    }
    shown = bench.unit("example", example, steps=6 if bench.quick else 50)
    folder = COLLECTION.relative_to(ROOT).as_posix() + ("_quick" if bench.quick else "")
    if bench.options.fresh:
        shutil.rmtree(ROOT / folder, ignore_errors=True)
    worlds = 16 if bench.quick else bench.options.worlds
    big = bench.unit("collection", collection, worlds=worlds, days=days, folder=folder, workers=2)
    records = open_records(ROOT / folder) if (ROOT / folder).exists() else None
    if records is not None:
        rng = random.Random(0)
        world = records.world(rng.choice(records.keys))
        negotiations = [row for row in world.tables["negotiations"].to_pylist() if row["n_turns"] > 1]
        chosen = rng.choice(negotiations)
        print(world.negotiation(chosen["day"], chosen["negotiation"]))
    return bench.finish(figures(pairs, costs, shown, big))


if __name__ == "__main__":
    sys.exit(main())
