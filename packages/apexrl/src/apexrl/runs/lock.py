"""A lock on a folder that the operating system releases when its holder dies."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import lock_descriptor

from apexrl.runs.atomic import write_failure
from apexrl.runs.errors import RunLockedError

_LOCK_NAME = "run.lock"
_PATIENCE = 10.0
"""Seconds for a lock whose holder is dead: a process that it forked just before may hold it until it dies, too."""


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Be the only writer of ``folder`` while the block runs.

    The lock file stays when the lock is released; a file without a living holder locks nothing.

    Raises:
        RunLockedError: If another holder, in this process or another, is at work.
        WriteFailedError: If the lock file cannot be written.
    """
    path = folder / _LOCK_NAME
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
    except OSError as error:
        raise write_failure(error, path) from error
    try:
        try:
            _acquire(descriptor, folder)
        except OSError as error:  # a file system without locks
            raise write_failure(error, path) from error
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, folder: Path) -> None:
    """Take the lock, or refuse at once; a dead holder is waited for."""
    end = time.monotonic() + _PATIENCE
    while not lock_descriptor(descriptor, blocking=False):
        os.lseek(descriptor, 0, os.SEEK_SET)
        holder = os.read(descriptor, 200).decode(errors="replace").strip()
        if not _is_dead(holder) or time.monotonic() > end:
            raise RunLockedError(
                f"run {os.fspath(folder)!r} is being written by {holder or 'another process'}",
                "one process at a time may write a run",
                "wait for it or stop it, or choose another folder",
            )
        time.sleep(0.02)


def _is_dead(holder: str) -> bool:
    """Return whether the process that a lock file names was on this machine and is gone."""
    match = re.fullmatch(r"process (\d+) on (.*)", holder)
    if match is None or match[2] != socket.gethostname() or os.name != "posix":  # elsewhere signal 0 would end it
        return False
    try:
        os.kill(int(match[1]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
