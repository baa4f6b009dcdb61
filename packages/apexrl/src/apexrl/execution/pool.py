"""The part that all engines share: lanes of calls to workers, with time limits and recovery from dead workers.

An engine supplies a `Fleet`, which starts workers and carries bytes. A `Pool` puts calls on *lanes*. A lane has at most
one worker at a time, and a worker one call: the first of its lane is the one that runs, and the one that failed when
the worker dies or the time is up. The calls behind it come back untouched.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from apexrl.execution.report import Failure, FailureKind
from apexrl.execution.server import read_reply
from apexrl.execution.shared import Shared, latest

START_ATTEMPTS = 3
"""Workers in a row that may end before they are ready until the pool gives up."""


class WorkerStartError(RuntimeError):
    """No worker can be started."""


class Link(Protocol):
    """The parent's end of one worker."""

    def send(self, request: bytes, shared: Sequence[Shared[Any]]) -> None:
        """Send a request to the worker, which is up and has no other, with the shared values that it has not yet."""

    def kill(self) -> None:
        """End the worker at once, whatever it does. No event of it follows. Harmless when it is dead already."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A worker answered its request. The first reply of a worker says that it is up, and has no content."""

    link: Link
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class Died:
    """A worker ended; `reason` says how.

    Attributes:
        link: The worker.
        reason: How it ended.
        is_lost: Whether the machine that it was on, or was to start on, is gone: another one is waited for, and it is
            not held against the task.
    """

    link: Link
    reason: str
    is_lost: bool = False


Event = Reply | Died


class Fleet(Protocol):
    """Starts workers and carries messages: all that differs between engines."""

    start_limit: float
    """Seconds that a worker may take until it is ready."""
    longest_wait: float
    """Seconds after which the pool looks again at `capacity` and at time limits, whatever happens."""

    def capacity(self) -> int:
        """Return how many workers there is room for now; a pool of tasks grows to it, and never shrinks."""

    def start(self) -> Link:
        """Begin to start a worker; an empty reply follows when it is up."""

    def wait(self, timeout: float) -> Iterable[Event]:
        """Return the events of all workers, in order per worker; waits for the first at most `timeout` seconds."""


@dataclass(slots=True, eq=False)
class Call:
    """A request on a lane.

    Attributes:
        request: The encoded request.
        time_limit: Seconds that it may run; None for no limit.
        tag: Whatever its sender needs to recognise it.
        shared: Shared values that it uses.
    """

    request: bytes
    time_limit: float | None
    tag: Any
    shared: tuple[Shared[Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Settled:
    """A call that left its lane.

    Attributes:
        call: The call.
        worker: The lane's number.
        seconds: How long it ran.
        value: What it returned.
        failure: Why it failed, if it did.
        untouched: True when it never ran: its worker ended before its turn.
    """

    call: Call
    worker: int
    seconds: float = 0.0
    value: Any = None
    failure: Failure | None = None
    untouched: bool = False


@dataclass(slots=True, eq=False)
class Lane:
    """A slot for one worker, and the calls sent to it.

    Attributes:
        number: The lane's index in the pool.
        link: Its worker; None before the first call and after a death.
        ready: Whether the worker is up.
        calls: Unanswered, in order; the first one runs, the others wait.
        since: When the first call began, or when the worker was started.
        served: Calls that the present worker has answered.
        generation: How many workers this lane has had.
        last_end: How the worker before the present one ended.
        kept: Digests of the shared values that the present worker has.
    """

    number: int
    link: Link | None = None
    ready: bool = False
    calls: deque[Call] = field(default_factory=deque)
    since: float = 0.0
    served: int = 0
    generation: int = 0
    last_end: str = ""
    kept: list[str] = field(default_factory=list)

    def deadline(self, start_limit: float) -> float | None:
        """Return the moment (monotonic clock) from which on this lane's worker has taken too long."""
        if self.link is None or not self.calls:
            return None
        limit = self.calls[0].time_limit if self.ready else start_limit
        return None if limit is None else self.since + limit


class Pool:
    """A fixed number of lanes, filled by one owner.

    Args:
        fleet: The engine.
        workers: The number of lanes.
        calls_per_worker: Replace a worker after so many calls (against leaks in what it runs); None for never.
    """

    def __init__(self, fleet: Fleet, workers: int, calls_per_worker: int | None = None) -> None:
        self.lanes = [Lane(number) for number in range(workers)]
        self._fleet = fleet
        self._calls_per_worker = calls_per_worker
        self._lane_of: dict[Link, Lane] = {}
        self._failed_starts = 0
        self._closed = False

    def submit(self, lane: Lane, call: Call) -> None:
        """Put a call on a lane, with a new worker if there is none."""
        self._require_open()
        lane.calls.append(call)
        if lane.link is None:
            lane.link = self._fleet.start()
            lane.served, lane.since, lane.kept = 0, time.monotonic(), []
            lane.generation += 1
            self._lane_of[lane.link] = lane
        elif lane.ready and len(lane.calls) == 1:
            self._send_next(lane)

    def poll(self) -> list[Settled]:
        """Wait until something happens, and return the calls that left their lanes.

        Raises:
            WorkerStartError: If workers end again and again before they are ready.
        """
        self._require_open()
        first = min(
            (deadline for lane in self.lanes if (deadline := self._deadline(lane)) is not None), default=math.inf
        )
        timeout = min(max(first - time.monotonic(), 0.0), self._fleet.longest_wait)
        settled: list[Settled] = []
        for event in self._fleet.wait(timeout):
            lane = self._lane_of.get(event.link)
            if lane is not None:
                self._take(event, lane, settled)
        now = time.monotonic()
        for lane in self.lanes:
            deadline = self._deadline(lane)
            if deadline is not None and now >= deadline:
                self._give_up(lane, settled)
        return settled

    def grow(self) -> None:
        """Add lanes when there is room for more workers than there are; for pools whose calls go to any lane."""
        missing = range(len(self.lanes), self._fleet.capacity())
        self.lanes += [Lane(number) for number in missing]

    def withdraw(self) -> Call | None:
        """Take back a call that waits for a worker to start; None if there is none. Its worker goes on starting."""
        lane = next((lane for lane in self.lanes if lane.calls and not lane.ready), None)
        return None if lane is None else lane.calls.pop()

    def abandon(self) -> None:
        """Drop all calls. Busy workers are killed, idle ones stay."""
        for lane in self.lanes:
            if lane.calls:
                self._drop_worker(lane)
                lane.calls.clear()

    def close(self) -> None:
        """End all workers."""
        self._closed = True
        for lane in self.lanes:
            lane.calls.clear()
            self._drop_worker(lane)

    def _take(self, event: Event, lane: Lane, settled: list[Settled]) -> None:
        if isinstance(event, Died) and lane.ready:
            lane.last_end = event.reason
            kind = FailureKind.NODE_LOST if event.is_lost else FailureKind.WORKER_DIED
            self._lose_worker(lane, Failure(kind=kind, message=event.reason), settled)
        elif isinstance(event, Died):
            if not event.is_lost:
                self._count_failed_start(event.reason)
            self._lose_worker(lane, None, settled)
        elif lane.ready:
            settled.append(self._settle(lane, event.content))
            if lane.served == self._calls_per_worker:
                self._drop_worker(lane)
            self._send_next(lane)
        else:
            lane.ready = True
            self._failed_starts = 0
            self._send_next(lane)

    @staticmethod
    def _send_next(lane: Lane) -> None:
        """Let an idle worker run the first call of its lane, if there is one."""
        if lane.link is not None and lane.calls:
            call, lane.since = lane.calls[0], time.monotonic()
            missing = [value for value in call.shared if value.key.digest not in lane.kept]
            lane.kept = latest(lane.kept, [value.key.digest for value in call.shared])
            lane.link.send(call.request, missing)

    def _settle(self, lane: Lane, reply: bytes) -> Settled:
        call = lane.calls.popleft()
        lane.served += 1
        seconds, value, failure = read_reply(reply)
        if call.time_limit is not None and seconds > call.time_limit:
            # It came back just before it was given up. Whether it did must not depend on when the parent polls.
            value, failure = None, _timed_out(call.time_limit)
        return Settled(call, lane.number, seconds, value, failure)

    def _deadline(self, lane: Lane) -> float | None:
        return lane.deadline(self._fleet.start_limit)

    def _give_up(self, lane: Lane, settled: list[Settled]) -> None:
        limit = lane.calls[0].time_limit
        if lane.ready and limit is not None:
            self._lose_worker(lane, _timed_out(limit), settled)
        else:
            self._count_failed_start(f"not ready after {self._fleet.start_limit:g} s")
            self._lose_worker(lane, None, settled)

    def _lose_worker(self, lane: Lane, failure: Failure | None, settled: list[Settled]) -> None:
        seconds = time.monotonic() - lane.since
        self._drop_worker(lane)
        if failure is not None and lane.calls:
            settled.append(Settled(lane.calls.popleft(), lane.number, seconds, failure=failure))
        settled += [Settled(call, lane.number, untouched=True) for call in lane.calls]
        lane.calls.clear()

    def _drop_worker(self, lane: Lane) -> None:
        if lane.link is not None:
            lane.link.kill()
            del self._lane_of[lane.link]
            lane.link, lane.ready = None, False

    def _require_open(self) -> None:
        if self._closed:
            raise RuntimeError("the executor was closed while its results were being read")

    def _count_failed_start(self, reason: str) -> None:
        self._failed_starts += 1
        if self._failed_starts >= START_ATTEMPTS:
            raise WorkerStartError(
                f"{START_ATTEMPTS} workers in a row could not be started (the last one: {reason}); what they wrote to "
                "the standard error stream says why; `python -c 'import apexrl.execution.engines.worker'` must work"
            )


def _timed_out(limit: float) -> Failure:
    return Failure(kind=FailureKind.TIMED_OUT, message=f"longer than the limit of {limit:g} s")
