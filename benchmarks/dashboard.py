"""First view and drill-down of the dashboard on a tournament of 1,000 worlds.

It is measured on ``tournament_history/bench_collect`` if that holds enough worlds. Otherwise a few worlds are played
and replicated under other numbers until there are enough: the files are as large and the questions as wide as those of
real ones, but the worlds repeat. The note of every figure says which of the two it was.

A view is timed from its address to the HTML that the browser gets, in a process of its own, at its first request. The
figure is CPU time over all threads, which on an idle machine is no less than the time that the user waits; the wall
time, also of later requests, is in the note.
"""

import json
import statistics
import subprocess
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import Benchmark, Figure, current_commit

COLLECTED = Path("tournament_history/bench_collect")
MADE = Path(".cache/bench_dashboard/tournament")  # not among the tournaments that trainings read
FIRST_VIEW, DRILL_DOWN = 2.0, 1.0
REPEATS = 5
VIEWS = {
    "list of tournaments": ("/", ""),
    "tournament": ("/tournament", "name={name}"),
    "tournament, one level": ("/tournament", "name={name}&level=first"),
    "world": ("/world", "name={name}&world={world}"),
    "negotiation": ("/negotiation", "name={name}&world={world}&day=3&negotiation=2"),
    "agent": ("/agent", "name={name}&agent={agent}"),
}


def main() -> int:
    """Measure, print and write the result."""
    bench = Benchmark("dashboard", __doc__ or "", seeds=[0], add_options=_options)
    wanted = 100 if bench.quick else bench.options.worlds
    folder, note = _folder(wanted)
    figures = []
    times = _measured(folder)
    for view, (first, again, cpu) in times.items():
        goal = FIRST_VIEW if view in {"list of tournaments", "tournament"} else DRILL_DOWN
        more = f"{note}; wall time {first:.2f} s, then {again:.2f} s"
        figures.append(Figure(name=view, value=cpu, unit="CPU s", op="<", goal=goal, note=more))
    return bench.finish(figures, folder=str(folder), measured_at=current_commit())


def _options(parser: ArgumentParser) -> None:
    parser.add_argument("--worlds", type=int, default=1000, help="worlds of the tournament (default 1000)")


def _folder(wanted: int) -> tuple[Path, str]:
    """Return a tournament of enough worlds, and a note about it."""
    for real in (COLLECTED, *sorted(Path("tournament_history").glob("*"))):
        if real != MADE and _n_worlds(real) >= wanted:
            return real, f"{_n_worlds(real)} recorded worlds"
    if _n_worlds(MADE) < wanted:
        _make(wanted)
    return (
        MADE,
        f"{_n_worlds(MADE)} worlds, replicated from {len(_manifest(MADE)['source']['replicated'])} recorded ones",
    )


def _manifest(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "records/manifest.json").read_bytes())
    return content


def _n_worlds(folder: Path) -> int:
    from litaagent_std.records.storage.manifest import Manifest, NoRecordsError

    try:
        return sum(len(shard.worlds) for shard in Manifest.read(folder / "records").shards)
    except NoRecordsError:
        return 0


def _make(wanted: int) -> None:
    """Play a few worlds, and write them again and again under new numbers."""
    from litaagent_std.records.reader import open_records
    from litaagent_std.records.storage.segment import pack_world
    from litaagent_std.records.storage.store import RecordStore
    from litaagent_std.tournament.config import TournamentConfig
    from litaagent_std.tournament.run import run_tournament

    small = MADE.with_name("seeds")
    agents = ("RandomStd", "SyncRandomStd", "GreedyStd", "litaagent_std.agents.hrl.LitaAgentHRL")
    run_tournament(
        TournamentConfig(competitors=agents, configs=2, runs=1, steps=50, output_dir=small, csv=False, quiet=True)
    )
    records = open_records(small)
    worlds = [records.world(key).tables for key in records.keys]
    source = {"played": records.sources[0].manifest.source["played"], "replicated": list(range(len(worlds)))}
    store = RecordStore(MADE / "records", source, wanted)
    for number in range(wanted):
        if number not in store.outcomes:
            turn, which = divmod(number, len(worlds))
            store.add(number, pack_world(number, _renumbered(worlds[which], number, turn)))


def _renumbered(tables: dict[str, pa.Table], number: int, turn: int) -> dict[str, pa.Table]:
    """Return a world's tables under another number, and in a configuration of its own turn."""
    made = {}
    for name, table in tables.items():
        changed = table.set_column(0, table.schema.field("world"), pa.array([number] * table.num_rows, pa.int32()))
        if name == "worlds":
            column = table.schema.get_field_index("config")
            config = pa.array([value.as_py() + 2 * turn for value in table["config"]], pa.int32())
            changed = changed.set_column(column, table.schema.field(column), config)
        made[name] = changed
    return made


def _measured(folder: Path) -> dict[str, tuple[float, float, float]]:
    """Return each view's first time, the median of later ones, and CPU seconds, each in a process of its own."""
    times = {}
    for view in VIEWS:
        words = [sys.executable, "-m", "benchmarks.dashboard", "--measure", str(folder), view]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        times[view] = tuple(json.loads(done.stdout.splitlines()[-1]))
    return times  # type: ignore[return-value]  # three numbers each


def measure(folder: Path, view: str) -> None:
    """Print the times of one view."""
    from litaagent_std.dashboard.history import History
    from litaagent_std.dashboard.server import make_app

    client = make_app(History(folder.parent)).test_client()
    table = pq.read_table(next((folder / "records/factories").glob("*.parquet")), columns=["competitor"])
    agent = next(name for name in table["competitor"].to_pylist() if name is not None)
    path, query = VIEWS[view]
    address = f"{path}?{query.format(name=folder.name, world=_n_worlds(folder) // 2, agent=agent)}"
    spent = []
    cpu = time.process_time()
    for turn in range(1 + REPEATS):
        start = time.perf_counter()
        page = client.get(address).get_data(as_text=True)
        spent.append(time.perf_counter() - start)
        assert "cannot be shown" not in page, page
        if turn == 0:
            cpu = time.process_time() - cpu
    print(json.dumps([spent[0], statistics.median(spent[1:]), cpu]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(Path(sys.argv[2]), sys.argv[3])
    else:
        sys.exit(main())
