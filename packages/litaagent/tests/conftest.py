"""What the league's tests share: a small tournament, watching agents, small worlds and their records."""

import fcntl
import importlib.util
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from apexrl.runs.digest import digest_file
from litaagent_std.records.recorder import Recorder, WorldFacts
from litaagent_std.records.world import WorldRecord
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import AgentSpec, official_setup

EVIL = '<img src=x onerror="window.broken=1"></script><script>window.broken=1</script> $x$ %{y}'


def _train(folder, seed):
    """A run's folder as the engine leaves it, with made-up curves."""
    from apexrl.runs.session import Session

    config = {"learning_rate": 0.001, "net": {"sizes": [64, 64]}}
    with Session(folder, config=config, seed=seed, sinks=("jsonl",), show_progress=False) as session:
        session.begin()
        for step in range(0, 5000, 100):
            session.log(step, {"episode/mean_reward": step / 10 + seed, "train/value_loss": 1 / (step + 1)})


def _hmasd(folder):
    from apexrl.runs.metrics.jsonl import JsonlSink

    sink = JsonlSink(folder / "logs" / "metrics.jsonl")
    for step in range(0, 1000, 100):
        sink.write(step, {"Rewards/Episode/Return_Mean": float(step), "Skills/Usage/Team_0": 0.5})
    sink.close()
    (folder / "logs" / "train.log").write_text("训练进度: 900/1000\n", encoding="utf-8")


def _rename(folder):
    """A copy of the tournament in which a competitor has a hostile name."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from litaagent_std.records.storage.manifest import Manifest

    for path in (folder / "records" / "factories").glob("*.parquet"):
        table = pq.read_table(path)
        column = table.schema.get_field_index("competitor")
        names = table["competitor"]
        hostile = pc.if_else(pc.equal(names, "RandomStdAgent"), pa.scalar(EVIL), names)
        pq.write_table(table.set_column(column, table.schema.field(column), hostile), path)
    manifest = Manifest.read(folder / "records")
    shards = [
        replace(shard, files=shard.files | {"factories": _entry(folder / "records", shard.files["factories"])})
        for shard in manifest.shards
    ]
    replace(manifest, shards=tuple(shards)).write(folder / "records")


def _entry(folder, entry):
    path = folder / entry.path
    return replace(entry, bytes=path.stat().st_size, sha256=digest_file(path))


def _make(folder, lita):
    words = ["--configs", "2", "--runs", "1", "--steps", "8", "--levels", "2", "--shard-size", "4", "--seed", "3"]
    common = ["--executor", "inline", "--quiet"]
    agents = ["--competitors", "RandomStd", "SyncRandomStd", "GreedyStd"]
    small = "tournament_history/small"
    lita(folder, "tournament", *agents, *words, *common, "--no-csv", "--output-dir", small)
    arena = ["arena", "RandomStd", "--against", "GreedyStd", "--opponents", "built-in", "--worlds", "4"]
    lita(folder, *arena, "--days", "8", "--levels", "2", *common, "--output-dir", "arena_results")
    shutil.copytree(folder / small, folder / "tournament_history/hostile")
    _rename(folder / "tournament_history/hostile")
    _train(folder / "runs/one", 1)
    _train(folder / "runs/two", 2)
    _hmasd(folder / "hmasd/first")


def _make_ours(folder, lita):
    ours = "litaagent_std.agents.hrl.LitaAgentHRL"
    words = ["--configs", "1", "--runs", "1", "--steps", "8", "--levels", "2", "--seed", "3"]
    common = ["--executor", "inline", "--quiet", "--no-csv"]
    for name, options in (("ours", ["--reasons"]), ("without", [])):
        lita(folder, "tournament", "--competitors", ours, "RandomStd", *words, *common, *options, "--output-dir", name)


def _made_once(tmp_path_factory, name, make, lita):
    """A folder that is made once for all processes of the tests."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    folder.mkdir(exist_ok=True)
    with (folder.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder.parent / f"{name}.done").exists():
            make(folder, lita)
            (folder.parent / f"{name}.done").touch()
    return folder


@pytest.fixture(scope="session")
def lita(warm_python):
    """Runs ``lita`` with some words in a folder."""

    def lita(folder, *words):
        done = warm_python.run("lita", *words, folder=folder)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return lita


@pytest.fixture(scope="session")
def recorded(tmp_path_factory, lita):
    """The folder; made once for all processes of the tests. Look at it, and copy what you change."""
    return _made_once(tmp_path_factory, "recorded", _make, lita)


@pytest.fixture(scope="session")
def with_ours(tmp_path_factory, lita):
    """A folder with the tournaments ``ours``, with our agent in a seat, and ``without`` its reasons; copy to change."""
    return _made_once(tmp_path_factory, "recorded_ours", _make_ours, lita)


@pytest.fixture
def small(recorded, tmp_path):
    """A copy of the recorded tournament that a test may damage."""
    return Path(shutil.copytree(recorded / "tournament_history/small", tmp_path / "history/small"))


@pytest.fixture
def hostile_name():
    """The hostile name in the tournament ``hostile``."""
    return EVIL


@pytest.fixture(scope="session")
def collect():
    """Collects a small tournament into a folder; options are those of `TournamentConfig`."""
    from litaagent_std.tournament.config import TournamentConfig
    from litaagent_std.tournament.run import run_tournament

    def collect(folder, **options):
        small = {
            "competitors": ("RandomStd", "GreedyStd"),
            "configs": 1,
            "runs": 1,
            "steps": 6,
            "levels": 2,
            "executor": "inline",
            "quiet": True,
        }
        run_tournament(TournamentConfig(**small | options, output_dir=folder))
        return folder

    return collect


@pytest.fixture(scope="session")
def watching_agents():
    """The module of watching agents, importable by path as seats need it."""
    name = "watching_agents"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(scope="session")
def record_world():
    """Runs a world under a recorder and returns its record."""

    def run(setup, engine="fast", inventory="as_shipped", world=0, observers=()):
        labels = tuple(agent.path if agent.competitor else None for agent in setup.agents)
        facts = WorldFacts(world, 0, 0, 0, setup.seed, labels, inventory)
        recorder = Recorder(setup, facts)
        run_world(setup, engine=engine, observers=[recorder, *observers], inventory=inventory)
        return WorldRecord(recorder.tables())

    return run


@pytest.fixture(scope="session")
def watched_setup(watching_agents):
    """Makes a world whose seats are all watched; poor factories bring bankruptcies."""

    def make(seed, n_days=14, n_levels=3, poor=False):
        setup = official_setup(seed, n_days=n_days, n_levels=n_levels)
        kinds = ("WatchingRandom", "WatchingGreedy", "Spends" if poor else "WatchingRandom")
        agents = {s: AgentSpec(f"watching_agents.{kinds[s % 3]}") for s in range(setup.n_seats)}
        setup = setup.with_agents(agents)
        if poor:
            setup = replace(setup, factories=tuple(replace(f, balance=f.balance // 4) for f in setup.factories))
        return setup

    return make
