"""The processes engine: spawned interpreters on this machine, one task at a time each.

A worker is started by ``exec`` (never a bare fork), with one thread per numeric library and a fixed hash seed, in a
process group of its own: Ctrl-C reaches the parent only, and killing a worker kills what its task started. Messages
pass over the standard library's connections; the end of a connection is the end of its worker.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from multiprocessing import Pipe, connection
from typing import Any

from apexrl.execution.codec import main_module
from apexrl.execution.executor import Executor
from apexrl.execution.pool import Died, Event, Reply
from apexrl.execution.server import carry
from apexrl.execution.shared import Shared

WORKER_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Set in every worker: workers run in parallel already, and threads under them would compete for the same CPUs."""

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from apexrl.execution.engines.worker import main; main(*sys.argv[2:])"
)


class _ProcessLink:
    """A worker process, the channel to it, and a pipe whose closing ends it."""

    def __init__(self) -> None:
        self.channel, theirs = Pipe()
        lifeline, self._lifeline = os.pipe()
        try:
            self._process = _spawn(theirs.fileno(), lifeline)
        except BaseException:
            self.channel.close()
            os.close(self._lifeline)
            raise
        finally:
            theirs.close()
            os.close(lifeline)
        self.alive = True

    def send(self, request: bytes, shared: Sequence[Shared[Any]]) -> None:
        with contextlib.suppress(ConnectionError):  # a dead worker shows when its channel is read
            self.channel.send_bytes(carry(request, shared))

    def receive(self) -> Event:
        """Read a whole message, of which the first bytes must have come."""
        try:
            return Reply(self, self.channel.recv_bytes())
        except (EOFError, OSError):  # at the end of the channel, or in the middle of a message
            return Died(self, self._end())

    def kill(self) -> None:
        if self.alive:
            self._end()

    def _end(self) -> str:
        """End the process and everything in its group, and return how the process ended."""
        self.alive = False
        self.channel.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left in the group
            os.killpg(self._process.pid, signal.SIGKILL)
        os.close(self._lifeline)
        return _how_it_ended(self._process.wait())


def _spawn(channel: int, lifeline: int) -> subprocess.Popen[bytes]:
    arguments = [json.dumps(sys.path), str(channel), str(lifeline), json.dumps(main_module())]
    return subprocess.Popen(
        [sys.executable, "-c", _BOOT, *arguments],
        stdin=subprocess.DEVNULL,
        env={"PYTHONHASHSEED": "0"} | os.environ | WORKER_ENVIRONMENT,
        pass_fds=(channel, lifeline),
        process_group=0,
    )


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal without a name
        return f"killed by signal {-code}"


class _ProcessFleet:
    """The worker processes of one pool."""

    start_limit = 120.0
    longest_wait = 3600.0

    def __init__(self) -> None:
        self._links: list[_ProcessLink] = []

    def capacity(self) -> int:
        return 1  # this machine does not grow: it is the number of workers that was asked for

    def start(self) -> _ProcessLink:
        link = _ProcessLink()
        self._links = [other for other in self._links if other.alive] + [link]
        return link

    def wait(self, timeout: float) -> Iterator[Event]:
        links = [link for link in self._links if link.alive]
        readable = set(connection.wait([link.channel for link in links], timeout))
        for link in links:
            if link.channel in readable and link.alive:  # not ended by whoever took an earlier event
                yield link.receive()


class ProcessExecutor(Executor):
    """Runs tasks in spawned processes. See `Executor`.

    Args:
        workers: The number of processes.
        tasks_per_worker: Replace a process after so many tasks; None for never.
    """

    def __init__(self, workers: int, *, tasks_per_worker: int | None = None) -> None:
        super().__init__(_ProcessFleet, workers, tasks_per_worker=tasks_per_worker)
