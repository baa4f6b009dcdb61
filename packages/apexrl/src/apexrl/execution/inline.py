"""The inline engine: everything in this process, one call after the other, for tests and for debugging.

Arguments and results are pickled and unpickled here too, so that a task that works inline works elsewhere. What it
can't do: interrupt a task that hangs, or survive one that ends the process.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator

from apexrl.execution.pool import Event, Ready, Reply
from apexrl.execution.schedule import PooledExecutor
from apexrl.execution.server import Server


class _InlineLink:
    """A worker that is no process: a server and the requests that wait for it."""

    def __init__(self) -> None:
        self.server = Server()
        self.requests: deque[bytes] = deque()
        self.ready = False
        self.alive = True

    def send(self, request: bytes) -> None:
        self.requests.append(request)

    def kill(self) -> None:
        self.requests.clear()
        self.alive = False


class _InlineFleet:
    """Carries out one request per wait."""

    start_limit = math.inf

    def __init__(self) -> None:
        self._links: list[_InlineLink] = []

    def start(self) -> _InlineLink:
        link = _InlineLink()
        self._links = [other for other in self._links if other.alive] + [link]
        return link

    def wait(self, timeout: float) -> Iterator[Event]:
        for link in self._links:
            if link.alive and not link.ready:
                link.ready = True
                yield Ready(link)
        for link in self._links:
            if link.requests:
                yield Reply(link, link.server.handle(link.requests.popleft()))
                return

    def close(self) -> None:
        self._links.clear()


class InlineExecutor(PooledExecutor):
    """Runs tasks in this process. See `Executor`."""

    def __init__(self) -> None:
        super().__init__(_InlineFleet, workers=1)
