"""Questions to records: complete, running, damaged; and that nothing is read that is not asked for."""

import json
import shutil
from pathlib import Path

import pytest

from litaagent_std.dashboard.warehouse import Warehouse
from litaagent_std.records.reader import open_records
from litaagent_std.records.schema import TABLES
from litaagent_std.records.storage.manifest import NoRecordsError
from litaagent_std.records.storage.segment import RecordsDamagedError, pack_failure, pack_world
from litaagent_std.records.storage.store import RecordStore


@pytest.fixture
def running(recorded, tmp_path):
    """A tournament of seven worlds of which four are in a shard, one is a segment and one has failed."""
    source = open_records(recorded / "tournament_history/small")
    store = RecordStore(tmp_path / "running/records", {"played": {}}, 7, shard_size=4)
    for key in source.keys[:5]:
        store.add(key.world, pack_world(key.world, source.world(key).tables))
    store.add(5, pack_failure(5, "it hung"))
    return tmp_path / "running"


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_what_the_reader_reads(recorded, name):
    folder = recorded / "tournament_history/small"
    expected = open_records(folder).table(name).drop_columns(["source"])
    rows = Warehouse(folder / "records").ask(f"SELECT * FROM {name}", [name])
    assert sorted(map(repr, rows)) == sorted(map(repr, expected.to_pylist()))


def test_a_running_tournament_shows_shards_and_segments(running, recorded):
    store = Warehouse(running / "records")
    assert store.worlds == [0, 1, 2, 3, 4]
    assert not store.manifest.complete
    source = open_records(recorded / "tournament_history/small")
    [row] = store.ask("SELECT count(*) AS n FROM turns", ["turns"], world=4)
    assert row["n"] == source.world(source.keys[4]).tables["turns"].num_rows


def test_a_question_about_one_world_opens_its_files_only(small):
    for path in (small / "records").rglob("00001.parquet"):
        path.unlink()
    store = Warehouse(small / "records")
    assert store.ask("SELECT count(*) AS n FROM turns", ["turns"], world=0)[0]["n"] > 0
    with pytest.raises(RecordsDamagedError, match="verify"):
        store.ask("SELECT count(*) AS n FROM turns", ["turns"])


@pytest.mark.parametrize("keep", [0, 3, 0.5])
def test_a_cut_file_is_named_as_damage(small, keep):
    path = small / "records/turns/00000.parquet"
    data = path.read_bytes()
    path.write_bytes(data[: keep if isinstance(keep, int) else int(len(data) * keep)])
    with pytest.raises(RecordsDamagedError):
        Warehouse(small / "records").ask("SELECT sum(round) AS n FROM turns", ["turns"], world=0)


def test_overwritten_pages_are_named_as_damage(small):
    path = small / "records/turns/00000.parquet"
    data = bytearray(path.read_bytes())
    data[200 : len(data) // 2] = bytes(len(data) // 2 - 200)
    path.write_bytes(data)
    with pytest.raises(RecordsDamagedError):
        Warehouse(small / "records").ask("SELECT * FROM turns", ["turns"])


def test_a_damaged_segment_is_left_out_and_named(running):
    path = running / "records/segments/000004.segment"
    path.write_bytes(path.read_bytes()[:-9])
    store = Warehouse(running / "records")
    assert store.worlds == [0, 1, 2, 3]
    assert "checksum" in store.damaged[4]


def test_letters_that_are_patterns_elsewhere_are_letters_here(small):
    strange = Path(shutil.move(small, small.with_name("it's [a-z]*? {b}")))
    assert Warehouse(strange / "records").ask("SELECT count(*) AS n FROM worlds", ["worlds"]) == [{"n": 6}]


def test_a_manifest_that_names_a_file_elsewhere_is_not_followed(small):
    path = small / "records/manifest.json"
    content = json.loads(path.read_text())
    del content["sha256"]
    content["shards"][0]["files"]["worlds"]["path"] = "../../../../etc/passwd"
    path.write_text(json.dumps(content))
    with pytest.raises(RecordsDamagedError, match="leads out of"):
        Warehouse(small / "records").ask("SELECT * FROM worlds", ["worlds"])


def test_a_manifest_that_is_cut_off_says_so(small):
    path = small / "records/manifest.json"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(NoRecordsError):
        Warehouse(small / "records")
