"""A lock on a folder that the operating system releases when its holder dies."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import lock_descriptor

from apexrl.runs.atomic import write_failure
from apexrl.runs.errors import RunLockedError

_LOCK_NAME = "run.lock"


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
            is_held = lock_descriptor(descriptor, blocking=False)
        except OSError as error:  # a file system without locks
            raise write_failure(error, path) from error
        if not is_held:
            holder = os.read(descriptor, 200).decode(errors="replace").strip() or "another process"
            raise RunLockedError(
                f"run {os.fspath(folder)!r} is being written by {holder}",
                "one process at a time may write a run",
                "wait for it or stop it, or choose another folder",
            )
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        yield
    finally:
        os.close(descriptor)
