"""The reader: one folder or many as one, some columns, some worlds, damage found."""

import contextlib
import hashlib
import json
import random
from pathlib import Path

import numpy as np
import pytest

from apexrl.runs.digest import digest_config
from apexrl.runs.reading import write_sealed
from litaagent_std.hrl_xf.data_pipeline.extraction.world_samples import world_samples
from litaagent_std.records.reader import WorldKey, open_records
from litaagent_std.records.storage.manifest import NoRecordsError
from litaagent_std.records.storage.segment import RecordsDamagedError, pack_failure, read_segment
from litaagent_std.records.storage.store import RecordStore

FIRST_VERSION = Path(__file__).parent / "first_version"
ROWS = {"factories": 9, "days": 27, "negotiations": 60, "turns": 1108, "contracts": 37}
"""Rows of the one world in that folder."""


@pytest.fixture
def two_folders(tmp_path, packed):
    """A finished tournament of 5 worlds, one of which failed, and an unfinished one."""
    first = RecordStore(tmp_path / "a" / "records", {"seed": 0}, 5, shard_size=2)
    for world in range(5):
        first.add(world, pack_failure(world, "hung") if world == 1 else packed(world))
    second = RecordStore(tmp_path / "b" / "records", {"seed": 1}, 50, shard_size=2)
    for world in (0, 1, 7):
        second.add(world, packed(world))
    second.add(9, pack_failure(9, "died"))
    return tmp_path


def test_several_folders_are_read_as_one(two_folders, made_up):
    records = open_records(two_folders)
    assert records.keys == ((0, 0), (0, 2), (0, 3), (0, 4), (1, 0), (1, 1), (1, 7))
    turns = records.table("turns")
    assert turns.num_rows == sum(made_up(key.world)["turns"].num_rows for key in records.keys)
    assert turns.column_names[:2] == ["source", "world"]
    assert open_records([two_folders / "a", two_folders]).keys == records.keys, "each folder once"


def test_columns_and_worlds_can_be_chosen(two_folders, made_up):
    records = open_records(two_folders)
    keys = [WorldKey(0, 3), WorldKey(1, 7)]
    for name in ("turns", "days"):
        table = records.table(name, columns=["day"], keys=keys)
        assert table.column_names == ["source", "world", "day"]
        expected = [day for key in keys for day in made_up(key.world)[name]["day"].to_pylist()]
        assert table["day"].to_pylist() == expected
    assert records.table("errors", keys=[]).num_rows == 0


def test_unknown_tables_columns_and_worlds_are_named(two_folders):
    records = open_records(two_folders)
    with pytest.raises(KeyError, match="no table 'offers'"):
        records.table("offers")
    with pytest.raises(KeyError, match="price"):
        records.table("turns", columns=["price"])
    with pytest.raises(KeyError, match="finished worlds"):
        records.world(WorldKey(0, 1))


def test_no_records_are_an_error_with_a_way_out(tmp_path):
    with pytest.raises(NoRecordsError, match="Name the folder"):
        open_records(tmp_path)


def test_damaged_files_are_found(two_folders):
    records = open_records(two_folders)
    assert records.verify() == []
    victim = two_folders / "a" / "records" / "turns" / "00000.parquet"
    content = bytearray(victim.read_bytes())
    content[40] ^= 1
    victim.write_bytes(content)
    (two_folders / "b" / "records" / "days" / "00000.parquet").unlink()
    wrong = records.verify()
    assert len(wrong) == 2
    assert any("turns/00000.parquet is not the file" in line for line in wrong)
    with pytest.raises(RecordsDamagedError, match="not the file that was written"):
        records.table("turns")
    with pytest.raises(RecordsDamagedError, match="is missing"):
        records.table("days")
    with pytest.raises(RecordsDamagedError, match="not the file that was written"):
        records.world(WorldKey(0, 0))


def test_records_of_the_first_version_are_read():
    """They were written before records could hold reasons, and while the engine emitted rows instead of columns."""
    records = open_records(FIRST_VERSION)
    [world] = (records.world(key) for key in records.keys)
    assert {name: table.num_rows for name, table in world.tables.items() if name in ROWS} == ROWS
    assert all(world.reasons(seat) is None for seat in range(len(world.names)))
    samples = world_samples(world, range(len(world.names)))
    assert len(samples.micro["op"]) == ROWS["turns"]
    assert len(samples.macro["day"]) == ROWS["days"]
    assert np.isfinite(samples.macro["x_static"]).all()


def _change(folder, change):
    """Change a manifest and seal it again, as somebody does who knows the format."""
    path = folder / "manifest.json"
    content = json.loads(path.read_bytes())
    del content["sha256"]
    change(content)
    content["source_digest"] = digest_config(content["source"])
    write_sealed(path, content)


def _set(**values):
    return lambda content: content["shards"][0].update(values)


@pytest.mark.parametrize(
    "change",
    [
        _set(stop=10**11),
        _set(first=-1),
        _set(number=7),
        _set(files=[1]),
        _set(files={"turns": {"path": 1, "rows": 1, "bytes": 1, "sha256": "x"}}),
        _set(failed={"99": "outside"}),
        _set(failed=[]),
        lambda content: content.update(n_worlds=10**12),
        lambda content: content.update(shard_size=0),
        lambda content: content.update(shards=content["shards"] * 2),
        lambda content: content.update(complete=False),
        lambda content: content.update(more=1),
        lambda content: content.pop("shards"),
    ],
)
def test_a_manifest_that_no_release_wrote_is_refused(two_folders, change):
    _change(two_folders / "a" / "records", change)
    with pytest.raises(NoRecordsError, match=r"manifest\.json' cannot be used"):
        open_records(two_folders)


def test_a_manifest_of_an_earlier_release_has_no_digest(two_folders):
    keys = open_records(two_folders).keys
    path = two_folders / "a" / "records" / "manifest.json"
    content = json.loads(path.read_bytes())
    del content["sha256"]
    path.write_text(json.dumps(content))
    assert open_records(two_folders).keys == keys


def test_no_file_outside_the_folder_is_read(two_folders):
    folder = two_folders / "a" / "records"
    outside = two_folders / "outside.parquet"
    outside.write_bytes((folder / "turns" / "00000.parquet").read_bytes())
    _change(folder, lambda content: content["shards"][0]["files"]["turns"].update(path="../../outside.parquet"))
    with pytest.raises(RecordsDamagedError, match="leads out of"):
        open_records(two_folders).table("turns")
    assert any("leads out of" in line for line in open_records(two_folders).verify())
    _change(folder, lambda content: content["shards"][0]["files"]["turns"].update(path="turns/00000.parquet"))
    (folder / "turns" / "00000.parquet").unlink()
    (folder / "turns" / "00000.parquet").symlink_to(outside)
    with pytest.raises(RecordsDamagedError, match="leads out of"):
        open_records(two_folders).table("turns")


def test_a_segment_sealed_again_after_a_change_is_refused_by_name(tmp_path, packed):
    data = packed(3)
    draw = random.Random(0)
    for number in range(60):
        changed = bytearray(data[:-32])
        for _ in range(1 + number % 3):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        path = tmp_path / "000003.segment"
        path.write_bytes(bytes(changed) + hashlib.sha256(changed).digest())
        with contextlib.suppress(RecordsDamagedError):
            read_segment(path)
    path.rename(tmp_path / "000004.segment")
    (tmp_path / "000004.segment").write_bytes(data)
    with pytest.raises(RecordsDamagedError, match="it holds world 3"):
        read_segment(tmp_path / "000004.segment")
