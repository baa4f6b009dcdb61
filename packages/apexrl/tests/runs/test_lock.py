"""The lock of a folder: one holder, refused at once while it lives, and waited for while what it forked dies."""

import os
import signal
import time

import pytest

from apexrl.runs.errors import RunLockedError
from apexrl.runs.lock import exclusive


def forked_holder(folder, child_lives):
    """Start a process that holds the lock and has forked another, which lives for some seconds; return both ids."""
    reader, writer = os.pipe()
    holder = os.fork()
    if holder == 0:
        with exclusive(folder):
            child = os.fork()
            if child == 0:
                time.sleep(child_lives)
                os._exit(0)
            os.write(writer, str(child).encode())
            time.sleep(60)
        os._exit(0)
    child = int(os.read(reader, 20))
    os.close(reader)
    os.close(writer)
    return holder, child


def test_a_living_holder_is_refused_at_once(tmp_path):
    holder, child = forked_holder(tmp_path, 60)
    began = time.monotonic()
    with pytest.raises(RunLockedError, match=f"written by process {holder} on"), exclusive(tmp_path):
        pass
    assert time.monotonic() - began < 5
    for process in (child, holder):
        os.kill(process, signal.SIGKILL)
    os.waitpid(holder, 0)


def test_what_a_dead_holder_forked_is_waited_for(tmp_path):
    holder, _ = forked_holder(tmp_path, 1.0)
    os.kill(holder, signal.SIGKILL)
    os.waitpid(holder, 0)
    began = time.monotonic()
    with exclusive(tmp_path):
        assert f"process {os.getpid()} on" in (tmp_path / "run.lock").read_text()
    assert time.monotonic() - began < 9


def test_a_lock_within_the_process_is_refused(tmp_path):
    with exclusive(tmp_path), pytest.raises(RunLockedError, match=f"process {os.getpid()}"), exclusive(tmp_path):
        pass


def test_a_file_without_a_holder_locks_nothing(tmp_path):
    (tmp_path / "run.lock").write_bytes(b"process 99999999999999999999 on \xff")
    with exclusive(tmp_path):
        pass
