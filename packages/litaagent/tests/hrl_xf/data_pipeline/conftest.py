"""A small recorded tournament, worlds of both engines, and the samples that slow and plain code makes of them."""

from dataclasses import replace

import pytest

from litaagent_std.hrl_xf.data_pipeline.build import build_dataset
from litaagent_std.hrl_xf.data_pipeline.extraction.world_samples import pad_histories, world_samples
from litaagent_std.hrl_xf.data_pipeline.options import DatasetOptions
from litaagent_std.records.recorder import Recorder, WorldFacts
from litaagent_std.records.threads import decisions
from litaagent_std.records.world import WorldRecord
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import official_setup


@pytest.fixture(scope="session")
def tournament(collect, tmp_path_factory):
    """Three configurations, two rotations each, in one folder."""
    return collect(tmp_path_factory.mktemp("history") / "first", configs=3)


@pytest.fixture(scope="session")
def dataset(tournament, tmp_path_factory):
    """The dataset of all greedy agents."""
    options = DatasetOptions(agent_name="Greedy")
    return build_dataset(tournament, tmp_path_factory.mktemp("dataset"), options, num_workers=1)


@pytest.fixture(scope="session", params=[("fast", 3), ("scml", 2)], ids=["fast", "scml"])
def record(request):
    """A world of three levels on our engine, and a shorter chain on scml's own, which is slow."""
    engine, n_levels = request.param
    setup = official_setup(7, n_days=5 if engine == "scml" else 7, n_levels=n_levels)
    recorder = Recorder(setup, WorldFacts(0, 0, 0, 0, 7, (None,) * setup.n_seats))
    run_world(setup, engine=engine, observers=[recorder])
    return WorldRecord(recorder.tables())


@pytest.fixture(scope="session")
def whole():
    """Make the samples of a world, with padded histories."""

    def make(record, seats=None, **options):
        samples = world_samples(record, range(len(record.names)) if seats is None else seats, **options)
        return replace(samples, micro=pad_histories(samples.micro, samples.offers, record.facts["n_rounds"]))

    return make


@pytest.fixture(scope="session")
def known_threads():
    """What a factory knew before each of its turns, in the order of negotiations, from the reader of records."""

    def threads(record, seat):
        rows = record.tables["turns"].to_pylist()
        known = dict((row, thread) for thread, row in decisions(record.tables, record.columns, record.days, seat))
        return [(int(record.columns.thread[row]), known[row], rows[row]) for row in sorted(known)]

    return threads


@pytest.fixture(scope="session")
def tree():
    """The content of every file under a folder, by relative path."""
    return lambda folder: {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "run.lock"
    }
