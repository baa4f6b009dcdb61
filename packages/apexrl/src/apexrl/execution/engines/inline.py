"""The inline engine: everything in this process, one call after the other, for tests and for debugging.

Arguments and results are pickled and unpickled here too, so that a task that works inline works elsewhere. What it
can't do: interrupt a task that hangs, or survive one that ends the process.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from apexrl.execution.executor import Executor
from apexrl.execution.pool import Event, Reply
from apexrl.execution.server import Server, carry
from apexrl.execution.shared import Shared


class _InlineLink:
    """A worker that is no process: a server and the request that waits for it."""

    def __init__(self) -> None:
        self.server = Server()
        self.request: bytes | None = None

    def send(self, request: bytes, shared: Sequence[Shared[Any]]) -> None:
        self.request = carry(request, shared)

    def kill(self) -> None:
        self.request = None


class _InlineFleet:
    """The one worker of a pool."""

    start_limit = math.inf
    longest_wait = 3600.0

    def capacity(self) -> int:
        return 1

    def start(self) -> _InlineLink:
        self._link, self._is_up = _InlineLink(), False
        return self._link

    def wait(self, timeout: float) -> Iterator[Event]:
        if not self._is_up:
            self._is_up = True
            yield Reply(self._link)
        elif (request := self._link.request) is not None:
            self._link.request = None
            yield Reply(self._link, self._link.server.handle(request))


class InlineExecutor(Executor):
    """Runs tasks in this process. See `Executor`."""

    def __init__(self) -> None:
        super().__init__(_InlineFleet, workers=1)
