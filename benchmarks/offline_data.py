"""From records to samples: speed beside scml's own negotiation tables, samples per second, and memory as data grow.

Both ways start from the same worlds, played by scml's own engine, and end with the same actions in memory: one reads
what scml saves of them (``negotiations.csv``), the other our records. A finished dataset on the disk is timed as well.
Time is CPU time of this process, the least of several rounds that take turns.
"""

import csv
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness import Benchmark, Figure
from litaagent_std.hrl_xf.data_pipeline import build_macro_dataset, build_micro_dataset, load_negotiation_csv
from litaagent_std.hrl_xf.data_pipeline.build import build_dataset
from litaagent_std.hrl_xf.data_pipeline.extraction.world_samples import pad_histories, world_samples
from litaagent_std.hrl_xf.data_pipeline.options import DatasetOptions
from litaagent_std.hrl_xf.data_pipeline.selection import select_worlds
from litaagent_std.hrl_xf.data_pipeline.shards import read_worlds
from litaagent_std.records.reader import open_records
from litaagent_std.records.recorder import Recorder, WorldFacts
from litaagent_std.records.storage.segment import pack_world
from litaagent_std.records.storage.store import RecordStore
from litaagent_std.tournament.config import TournamentConfig
from litaagent_std.tournament.run import run_tournament
from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing
from litaagent_std.world.scml.engine import make_scml_world
from litaagent_std.world.setup import official_setup

EVERYBODY = DatasetOptions(agent_name="")

_MEASURE = """
import json, resource, sys
from litaagent_std.hrl_xf.data_pipeline.build import build_dataset
from litaagent_std.hrl_xf.data_pipeline.options import DatasetOptions
data = build_dataset(sys.argv[1], sys.argv[2], DatasetOptions(agent_name=""), num_workers=1)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"peak_mb": peak, "actions": len(data.micro), "worlds": data.manifest["counts"]["worlds"]}))
"""


def play(folder: Path, *, worlds: int, days: int) -> dict[str, int]:
    """Play worlds with scml's own engine; leave scml's tables and our records of them."""
    store = RecordStore(folder / "records", {"benchmark": "offline_data"}, worlds)
    for number in range(worlds):
        setup = official_setup(100 + number, n_days=days)
        recorder = Recorder(setup, WorldFacts(number, number, 0, 0, 100 + number, (None,) * setup.n_seats))
        world = make_scml_world(setup, [recorder])
        world.save_negotiations = True
        world.run_to_end()
        logs = folder / "logs" / f"world-{number}"
        logs.mkdir(parents=True)
        with (logs / "negotiations.csv").open("w", newline="", encoding="utf-8") as file:
            rows = world.saved_negotiations
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        store.add(number, pack_world(number, recorder.tables()))
    return {"worlds": worlds}


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of a call, and what it gave."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def parse(folder: Path) -> int:
    """Read records into samples, whole histories included; return the number of actions."""
    chosen = select_worlds(open_records(folder), EVERYBODY)
    actions = 0
    for world, record in zip(chosen, read_worlds(str(folder), chosen), strict=True):
        samples = world_samples(record, world.seats)
        actions += len(pad_histories(samples.micro, samples.offers, world.n_rounds)["history"])
    return actions


def compare(worlds: int, days: int, rounds: int) -> dict[str, Any]:
    """Time both ways from the same worlds to the same samples."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        play(folder, worlds=worlds, days=days)
        tables, records, parsed = [], [], []
        for number in range(rounds):
            spent, table = seconds(lambda: load_negotiation_csv(folder / "logs"))
            made, samples = seconds(lambda t=table: (build_macro_dataset(t), build_micro_dataset(t)))
            tables.append(spent + made)
            spent, actions = seconds(lambda: parse(folder / "records"))
            parsed.append(spent)
            target = folder / f"dataset{number}"
            spent, data = seconds(lambda to=target: build_dataset(folder / "records", to, EVERYBODY, num_workers=1))
            records.append(spent)
        if not len(samples[1]) == actions == len(data.micro):
            raise RuntimeError(f"tables give {len(samples[1])} actions, records {actions}: not the same samples")
        return {
            "tables": min(tables),
            "parsed": min(parsed),
            "records": min(records),
            "negotiations": table.num_rows,
            "actions": actions,
            "days": len(data.macro),
        }


def throughput(worlds: int, days: int) -> dict[str, Any]:
    """Time a dataset of every factory of a tournament on our engine."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _tournament(folder / "history", configs=worlds, days=days)
        times = []
        for number in range(3):
            target = folder / f"dataset{number}"
            spent, data = seconds(lambda to=target: build_dataset(folder / "history", to, EVERYBODY, num_workers=1))
            times.append(spent)
        return {"seconds": min(times), "actions": len(data.micro), "days": len(data.macro)}


def memory(worlds: int, days: int, factor: int) -> dict[str, Any]:
    """Peak memory of a build in a process of its own, for some worlds and for many times as many."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _tournament(folder / "one" / "history", configs=worlds, days=days)
        for copy in range(factor):
            shutil.copytree(folder / "one" / "history" / "records", folder / "many" / f"copy{copy}" / "records")
        memory = {}
        for name in ("one", "many"):
            words = [sys.executable, "-c", _MEASURE, str(folder / name), str(folder / f"dataset-{name}")]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            memory[name] = json.loads(done.stdout.splitlines()[-1])
        return memory


def _tournament(folder: Path, *, configs: int, days: int) -> None:
    run_tournament(
        TournamentConfig(
            competitors=("RandomStd", "GreedyStd"),
            configs=configs,
            runs=1,
            steps=days,
            levels=2,
            executor="inline",
            quiet=True,
            output_dir=str(folder),
        )
    )


def main() -> int:
    """Measure, and compare with the goals."""
    restart_with_fixed_hashing()
    bench = Benchmark("offline_data", "From records to samples, beside scml's own tables.", seeds=[100])
    size = {"worlds": 1, "days": 12, "rounds": 3} if bench.quick else {"worlds": 3, "days": 25, "rounds": 3}
    speed = bench.unit("compare", compare, **size)
    rate = bench.unit("throughput", throughput, worlds=2 if bench.quick else 5, days=10 if bench.quick else 50)
    grown = bench.unit("memory", memory, worlds=2 if bench.quick else 4, days=10 if bench.quick else 40, factor=10)
    per = {way: speed[way] / speed["negotiations"] * 1e6 for way in ("tables", "parsed", "records")}
    note = f"{speed['negotiations']} negotiations, {speed['actions']} actions"
    more = grown["many"]["actions"] / grown["one"]["actions"]
    return bench.finish(
        [
            Figure(name="negotiation, scml's table to samples", value=per["tables"], unit="µs CPU"),
            Figure(name="negotiation, records to samples", value=per["parsed"], unit="µs CPU", note=note),
            Figure(name="negotiation, records to dataset on disk", value=per["records"], unit="µs CPU", note=note),
            Figure(
                name="parsing, times faster",
                value=per["tables"] / per["parsed"],
                unit="x",
                goal=20.0,
                note="with our agent folded over every record, the base of residuals, which scml's tables do not have",
            ),
            Figure(name="with the dataset written, times faster", value=per["tables"] / per["records"], unit="x"),
            Figure(name="actions per CPU second", value=rate["actions"] / rate["seconds"], unit="1/s"),
            Figure(name="days per CPU second", value=rate["days"] / rate["seconds"], unit="1/s"),
            Figure(
                name="peak memory", value=grown["one"]["peak_mb"], unit="MB", note=f"{grown['one']['actions']} actions"
            ),
            Figure(
                name="peak memory as data grow",
                value=grown["many"]["peak_mb"] / grown["one"]["peak_mb"],
                unit="x",
                op="<=",
                goal=1.15,
                note=f"{more:.0f} times the actions",
            ),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
