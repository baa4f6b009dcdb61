"""The store: the same shards in whatever order worlds finish, nothing twice, damage found."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from litaagent_std.records.reader import open_records
from litaagent_std.records.storage.manifest import Manifest, NoRecordsError
from litaagent_std.records.storage.segment import RecordsDamagedError, pack_failure, pack_world, read_segment
from litaagent_std.records.storage.store import RecordStore, segment_path

SOURCE = {"competitors": ["a.B"], "seed": 0}


def fill(folder, packed, order, failed, stop=None, n_worlds=9):
    """Adds worlds in some order, opening the store anew whenever ``stop`` says so."""
    store = RecordStore(folder, SOURCE, n_worlds, shard_size=4)
    for place, world in enumerate(order):
        if stop is not None and place % stop == 0:
            store = RecordStore(folder, SOURCE, n_worlds, shard_size=4)
        store.add(world, pack_failure(world, "hung") if world in failed else packed(world))
    return store


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(9)), failed=st.sets(st.integers(0, 8), max_size=9), stop=st.integers(1, 5))
def test_shards_do_not_depend_on_the_order_nor_on_stops(tmp_path_factory, packed, tree, order, failed, stop):
    plain, mixed = tmp_path_factory.mktemp("plain"), tmp_path_factory.mktemp("mixed")
    fill(plain, packed, range(9), failed)
    store = fill(mixed, packed, order, failed, stop)
    assert store.manifest.complete
    assert store.manifest.failed == dict.fromkeys(sorted(failed), "hung")
    assert tree(mixed) == tree(plain)
    assert not (mixed / "segments").exists()


def test_worlds_are_visible_as_soon_as_they_are_finished(tmp_path, packed, made_up):
    store = RecordStore(tmp_path, SOURCE, 9, shard_size=4)
    for world in (7, 2, 0, 1, 3):
        store.add(world, packed(world))
        records = open_records(tmp_path)
        assert world in [key.world for key in records.keys]
        for key in records.keys:
            for name, table in made_up(key.world).items():
                assert records.world(key).tables[name].equals(table), (key, name)
    assert len(Manifest.read(tmp_path).shards) == 1
    assert store.outcomes == {0, 1, 2, 3, 7}


def test_no_world_is_recorded_twice(tmp_path, packed):
    store = RecordStore(tmp_path, SOURCE, 2, shard_size=4)
    store.add(0, packed(0))
    with pytest.raises(ValueError, match="twice"):
        store.add(0, packed(0))
    store.add(1, packed(1))
    with pytest.raises(ValueError, match="twice"):
        RecordStore(tmp_path, SOURCE, 2, shard_size=4).add(0, packed(0))
    with pytest.raises(ValueError, match="not of the plan"):
        store.add(2, packed(2))


def test_a_folder_of_another_tournament_is_refused(tmp_path):
    RecordStore(tmp_path, SOURCE, 2)
    with pytest.raises(NoRecordsError, match="another tournament"):
        RecordStore(tmp_path, {**SOURCE, "seed": 1}, 2)


def test_any_flipped_byte_of_a_segment_is_found(tmp_path, packed):
    path, draw = tmp_path / "one.segment", random.Random(0)
    content = packed(5)
    for _ in range(60):
        place = draw.randrange(len(content))
        broken = bytearray(content)
        broken[place] ^= 1 << draw.randrange(8)
        path.write_bytes(broken)
        with pytest.raises(RecordsDamagedError):
            read_segment(path)
    path.write_bytes(content[:-1])
    with pytest.raises(RecordsDamagedError, match="Remove the file"):
        read_segment(path)
    path.write_bytes(content)
    assert read_segment(path).world == 5


def test_a_segment_without_all_tables_is_refused(made_up):
    tables = made_up(0)
    del tables["turns"]
    with pytest.raises(ValueError, match="turns"):
        pack_world(0, tables)


def test_leftovers_of_killed_writers_go(tmp_path, packed):
    store = RecordStore(tmp_path, SOURCE, 4, shard_size=4)
    for world in range(4):
        store.add(world, packed(world))
    stale = segment_path(tmp_path, 2)
    stale.parent.mkdir()
    stale.write_bytes(packed(2))
    (tmp_path / "turns" / ".00000.parquet.0123456789abcdef.partial").write_bytes(b"half")
    store = RecordStore(tmp_path, SOURCE, 4, shard_size=4)
    assert not stale.exists()
    assert not list((tmp_path / "turns").glob(".*"))
    assert store.outcomes == {0, 1, 2, 3}
