import errno
import fcntl
import json
import os
import stat
import subprocess
import sys

import pytest

from apexrl.runs import atomic
from apexrl.runs.errors import DiskFullError, UnwritableError, UserFacingError, WriteFailedError


def test_what_was_written_is_read_back_and_nothing_else_is_left(tmp_path):
    atomic.write_bytes(tmp_path / "a" / "b" / "data.bin", b"\x00\xff")
    atomic.write_text(tmp_path / "text.txt", "利塔")
    atomic.write_json(tmp_path / "value.json", {"b": [1, 2.5, None], "a": "利塔"})

    assert (tmp_path / "a/b/data.bin").read_bytes() == b"\x00\xff"
    assert (tmp_path / "text.txt").read_text(encoding="utf-8") == "利塔"
    assert list(json.loads((tmp_path / "value.json").read_text(encoding="utf-8"))) == ["b", "a"]
    assert sorted(os.listdir(tmp_path)) == ["a", "text.txt", "value.json"]


def test_json_that_is_not_strict_is_refused_before_anything_is_touched(tmp_path):
    atomic.write_json(tmp_path / "v.json", 1)

    with pytest.raises(ValueError, match="JSON compliant"):
        atomic.write_json(tmp_path / "v.json", float("nan"))

    assert (tmp_path / "v.json").read_text() == "1\n"


def test_the_order_is_flush_rename_flush_of_the_folder(tmp_path, monkeypatch):
    events: list[str] = []
    fsync, replace = os.fsync, os.replace

    def recorded_fsync(descriptor: int) -> None:
        events.append("flush folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "flush file")
        size = os.fstat(descriptor).st_size
        assert events != ["flush file"] or size == 5, "everything is handed over before the flush"
        fsync(descriptor)

    def recorded_replace(source, target) -> None:
        events.append("rename")
        assert os.path.dirname(source) == os.path.dirname(target), "a rename is atomic within one folder"
        replace(source, target)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "replace", recorded_replace)
    atomic.write_bytes(tmp_path / "x", b"12345")

    assert events == ["flush file", "rename", "flush folder"]


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt, FileNotFoundError])
def test_a_block_that_raises_leaves_the_old_file_and_its_own_error(tmp_path, kind):
    path = tmp_path / "x"
    atomic.write_bytes(path, b"old")

    def interrupted() -> None:
        with atomic.atomic_file(path) as file:
            file.write(b"new")
            raise kind

    with pytest.raises(kind):
        interrupted()

    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]


def test_a_library_may_write_by_path_or_replace_the_temporary_file(tmp_path):
    with atomic.atomic_path(tmp_path / "a.parquet") as temporary:
        temporary.write_bytes(b"in place")
    with atomic.atomic_path(tmp_path / "b.npz") as temporary:
        other = tmp_path / "other"
        other.write_bytes(b"moved over")
        other.replace(temporary)

    assert (tmp_path / "a.parquet").read_bytes() == b"in place"
    assert (tmp_path / "b.npz").read_bytes() == b"moved over"


def test_permissions_follow_the_umask_and_links_are_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "file")
    before = os.umask(0o027)
    try:
        atomic.write_bytes(tmp_path / "link", b"x")
    finally:
        os.umask(before)

    assert (tmp_path / "link").is_symlink()
    assert stat.S_IMODE((tmp_path / "real" / "file").stat().st_mode) == 0o640


def test_a_name_as_long_as_the_file_system_allows_can_be_written(tmp_path):
    name = "é" * 127

    atomic.write_bytes(tmp_path / name, b"x")

    assert os.listdir(tmp_path) == [name]


def test_a_full_disk_is_one_clear_error_and_leaves_nothing_half_written(tmp_path, file_size_limit):
    path = tmp_path / "big.bin"
    atomic.write_bytes(path, b"old")

    with file_size_limit(10_000), pytest.raises(DiskFullError) as caught:
        atomic.write_bytes(path, bytes(50_000))

    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["big.bin"]
    assert str(path) in str(caught.value)
    assert "Free some space" in str(caught.value)


@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, DiskFullError),
        (errno.EDQUOT, DiskFullError),
        (errno.EROFS, UnwritableError),
        (errno.EACCES, UnwritableError),
        (errno.EIO, WriteFailedError),
    ],
)
def test_a_failure_at_any_call_is_explained_and_leaves_the_old_file(tmp_path, monkeypatch, call, number, kind):
    path = tmp_path / "x"
    atomic.write_bytes(path, b"old")

    def failing(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        with pytest.raises(kind, match=os.strerror(number)):
            atomic.write_bytes(path, b"new")

    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]


def test_a_folder_that_cannot_be_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(UnwritableError, match="file/sub"):
        atomic.write_bytes(tmp_path / "file" / "sub" / "x", b"x")
    with pytest.raises(UnwritableError, match="file"):
        atomic.ensure_folder(tmp_path / "file")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UnwritableError, match="folder"):
        atomic.write_bytes(tmp_path / "folder", b"x")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_a_folder_without_permission_is_named(tmp_path):
    tmp_path.chmod(0o500)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)  # root may write everywhere
    try:
        with pytest.raises(UnwritableError, match="Permission denied"):
            atomic.write_bytes(tmp_path / "x", b"x")
    finally:
        if is_root:
            os.seteuid(0)
        tmp_path.chmod(0o700)


def test_errors_say_value_rule_and_way_out():
    assert str(UserFacingError("lr=-1", "lr must be positive", "use 0.001")) == "lr=-1. Lr must be positive. Use 0.001."
    assert str(UserFacingError("lr=-1 must be positive")) == "lr=-1 must be positive."


def test_leftovers_of_the_dead_go_and_those_of_the_living_stay(tmp_path):
    program = (
        "import os, sys\n"
        "from apexrl.runs.atomic import atomic_file\n"
        "with atomic_file(sys.argv[1]) as file:\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "dead.pt")], check=False)
    (tmp_path / ".hidden.partial").write_bytes(b"not one of ours")
    assert len(os.listdir(tmp_path)) == 2

    with atomic.atomic_file(tmp_path / "alive.pt") as file:
        file.write(b"whole")
        removed = atomic.remove_leftovers(tmp_path)

    assert [path.name.startswith(".dead.pt.") for path in removed] == [True]
    assert sorted(os.listdir(tmp_path)) == [".hidden.partial", "alive.pt"]
    assert atomic.remove_leftovers(tmp_path / "missing") == []


def test_a_new_temporary_file_taken_for_a_leftover_is_made_again(tmp_path, monkeypatch):
    flock, taken = fcntl.flock, []

    def cleaned_away_first(descriptor: int, operation: int) -> None:
        if not taken:
            (partial,) = tmp_path.iterdir()
            partial.unlink()
            taken.append(partial)
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", cleaned_away_first)
    atomic.write_bytes(tmp_path / "x", b"x")

    assert len(taken) == 1
    assert (tmp_path / "x").read_bytes() == b"x"
