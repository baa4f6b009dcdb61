"""The processes engine: spawned interpreters on this machine, one task at a time each.

A worker is started by ``exec`` (never a bare fork), with one thread per numeric library and a fixed hash seed, in a
process group of its own: Ctrl-C reaches the parent only, and killing a worker kills what its task started. The parent
never blocks on a worker: reading and writing wait in one selector, beside a descriptor that becomes readable when the
process has ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

from apexrl.execution.codec import MainModule
from apexrl.execution.pool import Died, Event, Ready, Receiving, Reply
from apexrl.execution.schedule import PooledExecutor
from apexrl.execution.worker import HEADER

WORKER_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Set in every worker: workers run in parallel already, and threads under them would compete for the same CPUs."""

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from apexrl.execution.worker import main; main(sys.argv[2:])"
)
_READ_SIZE = 1 << 20


class _ProcessLink:
    """A worker process: its channel, its lifeline, and what is half sent or half received."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._waits_to_write = False
        self._outbox = bytearray()
        self._inbox = bytearray()
        self._ready = False
        self._channel, theirs = socket.socketpair()
        lifeline_end, self._lifeline = os.pipe()
        try:
            self._process = _spawn(theirs.fileno(), lifeline_end)
        except BaseException:
            os.close(self._lifeline)
            self._channel.close()
            raise
        finally:
            theirs.close()
            os.close(lifeline_end)
        self._channel.setblocking(False)
        selector.register(self._channel, selectors.EVENT_READ, self)
        self._ended = os.pidfd_open(self._process.pid) if hasattr(os, "pidfd_open") else -1
        if self._ended >= 0:
            # The channel may stay open beyond the worker's end, when its task has forked.
            selector.register(self._ended, selectors.EVENT_READ, self)
        self.alive = True

    def send(self, request: bytes) -> None:
        """Queue a request, to go out with the next flush."""
        self._outbox += HEADER.pack(len(request))
        self._outbox += request

    def flush(self) -> None:
        """Write what the channel takes now, and let the selector report when it takes the rest."""
        if not self._outbox and not self._waits_to_write:
            return
        with contextlib.suppress(BlockingIOError, ConnectionError):  # a dead worker shows when its channel is read
            while self._outbox:
                sent = self._channel.send(self._outbox)
                del self._outbox[:sent]
        if self._waits_to_write != bool(self._outbox):
            self._waits_to_write = bool(self._outbox)
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._waits_to_write else 0)
            self._selector.modify(self._channel, events, self)

    def receive(self, ended: bool) -> Iterator[Event]:
        """Read what the channel holds now.

        Args:
            ended: Whether the process is known to have ended, so that nothing more will come.
        """
        at_rest = len(self._inbox)
        try:
            more = True
            while more:
                chunk = self._channel.recv(_READ_SIZE)
                self._inbox += chunk
                more = len(chunk) == _READ_SIZE or (ended and bool(chunk))
                ended = ended or not chunk
        except BlockingIOError:
            pass  # nothing more for now
        except ConnectionError:
            ended = True
        grown = len(self._inbox) > at_rest
        yield from self._messages()
        if not self.alive:  # killed by whoever took the messages
            return
        if ended:
            yield Died(self, self._end())
        elif self._inbox and grown:
            yield Receiving(self)

    def kill(self) -> None:
        """End the process and everything in its group, and release what belongs to it."""
        if self.alive:
            self._end()

    def _messages(self) -> Iterator[Event]:
        start = 0
        while len(self._inbox) >= start + HEADER.size:
            (length,) = HEADER.unpack_from(self._inbox, start)
            end = start + HEADER.size + length
            if len(self._inbox) < end:
                break
            content = bytes(memoryview(self._inbox)[start + HEADER.size : end])
            yield Reply(self, content) if self._ready else Ready(self)
            self._ready = True
            start = end
        del self._inbox[:start]

    def _end(self) -> str:
        self.alive = False
        self._selector.unregister(self._channel)
        self._channel.close()
        if self._ended >= 0:
            self._selector.unregister(self._ended)
            os.close(self._ended)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left in the group
            os.killpg(self._process.pid, signal.SIGKILL)
        os.close(self._lifeline)
        return _how_it_ended(self._process.wait())


def _spawn(channel: int, lifeline: int) -> subprocess.Popen[bytes]:
    main = MainModule.of_this_process()
    command = [sys.executable, "-c", _BOOT, json.dumps(sys.path), str(channel), str(lifeline), main.module, main.path]
    environment = {"PYTHONHASHSEED": "0"} | os.environ | WORKER_ENVIRONMENT
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, env=environment, pass_fds=(channel, lifeline), process_group=0
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

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._links: list[_ProcessLink] = []

    def start(self) -> _ProcessLink:
        link = _ProcessLink(self._selector)
        self._links = [other for other in self._links if other.alive] + [link]
        return link

    def wait(self, timeout: float) -> Iterator[Event]:
        for link in self._links:
            if link.alive:
                link.flush()
        for key, mask in self._selector.select(timeout):
            link = key.data
            if not link.alive:  # ended by an earlier event of this round
                continue
            if mask & selectors.EVENT_WRITE:
                link.flush()
            if mask & selectors.EVENT_READ:
                yield from link.receive(ended=isinstance(key.fileobj, int))

    def close(self) -> None:
        self._selector.close()


class ProcessExecutor(PooledExecutor):
    """Runs tasks in spawned processes. See `Executor`.

    Args:
        workers: The number of processes.
        tasks_per_worker: Replace a process after so many tasks; None for never.
    """

    def __init__(self, workers: int, *, tasks_per_worker: int | None = None) -> None:
        super().__init__(_ProcessFleet, workers, tasks_per_worker=tasks_per_worker)
