"""Records in object storage: what is published is read again, byte by byte, and only what is whole."""

import pytest

from apexrl.runs.errors import ReadFailedError
from litaagent_std.records.reader import open_records
from litaagent_std.records.storage.manifest import MANIFEST_NAME, Manifest, NoRecordsError
from litaagent_std.records.storage.remote import StorageError, is_remote, local_path, publish
from litaagent_std.records.storage.store import RecordStore


@pytest.fixture
def store(tmp_path, packed, monkeypatch):
    monkeypatch.setenv("LITA_CACHE", str(tmp_path / "cache"))
    made = RecordStore(tmp_path / "one" / "records", {"seed": 0}, 6, shard_size=2)
    for world in range(3):
        made.add(world, packed(world))
    return made


def test_published_records_are_read_as_they_were_written(store, tmp_path, tree, packed):
    address = f"file://{tmp_path}/bucket/one/records"
    assert publish(store.folder, address) == len(store.manifest.shards[0].files)
    assert publish(store.folder, address) == 0, "nothing is sent twice"
    copy = local_path(f"file://{tmp_path}/bucket") / "one" / "records"
    own = tree(store.folder)
    assert tree(copy) == {name: data for name, data in own.items() if "segments" not in name}
    assert open_records(f"file://{tmp_path}/bucket").keys == ((0, 0), (0, 1))
    store.add(3, packed(3))  # the second shard is complete now
    assert publish(store.folder, address) == len(store.manifest.shards[1].files)
    assert open_records(f"file://{tmp_path}/bucket").keys == tuple((0, world) for world in range(4))


def test_the_manifest_is_the_commit_point(store, tmp_path, monkeypatch):
    address = f"file://{tmp_path}/bucket/records"
    with monkeypatch.context() as patch:
        patch.setattr("litaagent_std.records.storage.remote.MANIFEST_NAME", "nowhere/manifest.json")
        with pytest.raises(StorageError):
            publish(store.folder, address)
    with pytest.raises(NoRecordsError, match="there are no records at"):
        local_path(address)
    assert publish(store.folder, address) > 0
    assert Manifest.read(local_path(address)) == store.manifest


def test_a_damaged_copy_is_fetched_again_and_a_damaged_original_is_refused(store, tmp_path):
    address = f"file://{tmp_path}/bucket/records"
    publish(store.folder, address)
    [copy] = (local_path(address) / "turns").iterdir()
    copy.write_bytes(b"damaged")
    assert (local_path(address) / "turns" / copy.name).read_bytes() != b"damaged"
    original = tmp_path / "bucket" / "records" / "turns" / copy.name
    data = bytearray(original.read_bytes())
    data[50] ^= 1
    original.write_bytes(data)
    copy.unlink()
    with pytest.raises(ReadFailedError, match="not the file that was written"):
        local_path(address)


def test_addresses_survive_being_paths(tmp_path):
    from pathlib import Path

    assert is_remote(Path("s3://bucket/a"))
    assert is_remote("gs://bucket/a")
    assert not is_remote(tmp_path / MANIFEST_NAME)
    assert not is_remote("s3")
    assert local_path("here") == Path("here")
