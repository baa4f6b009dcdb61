"""Processes of isolated agents, as the world sees them: started, asked, ended.

Each process of ours has one zygote, started when it is first needed. In a world, agents of one package share a
process, because they share the state of their modules where they are not isolated either.
"""

from __future__ import annotations

import functools
import os
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import count
from typing import Any, Final

from apexrl.runs.errors import UserFacingError
from litaagent_std.world.isolated.codec import receive, send
from litaagent_std.world.isolated.sandbox import Limits

__all__ = ["LostError", "SeatProcess", "missing_isolation"]

_START_SECONDS: Final = 120.0
_KEPT: Final = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT")
_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class LostError(Exception):
    """An isolated agent's process ended, was ended, or broke the rules; its seat makes no offers from then on."""


class IsolationError(UserFacingError):
    """Isolated agents cannot be played here."""


class _Zygote:
    """The world's end of a zygote; see `zygote`."""

    def __init__(self) -> None:
        if not hasattr(os, "fork") or not hasattr(socket, "send_fds"):
            raise IsolationError(
                f"{sys.platform} cannot fork processes",
                "an isolated agent needs one of its own",
                "play without isolation, and only agents that you trust; or use Linux",
            )
        self._control, theirs = socket.socketpair()
        command = [sys.executable, "-m", "litaagent_std.world.isolated.zygote", str(theirs.fileno())]
        self._numbers = count()
        self._process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=_environment(),
        )
        theirs.close()
        try:
            self.missing = str(receive(self._control, 1 << 20, _START_SECONDS)["missing"])
        except (OSError, EOFError, ValueError) as error:
            raise IsolationError(
                f"the process that starts isolated agents ended: {error}",
                "it imports scml, negmas and this package as this process does",
                f"see what {' '.join(command[:3])} says",
            ) from error

    def start(self, show: Sequence[str], limits: Limits) -> tuple[int, socket.socket, int]:
        """Start a process; return its number here, the connection to it, and its process id."""
        ours, theirs = socket.socketpair()
        number = next(self._numbers)
        socket.send_fds(self._control, [b"s"], [theirs.fileno()])
        path = [os.path.abspath(entry) for entry in sys.path]
        request = {"start": number, "show": list(show), "path": path, "limits": asdict(limits)}
        send(self._control, request, _START_SECONDS)
        theirs.close()
        started = receive(self._control, 1 << 20, _START_SECONDS)
        return number, ours, int(started["pid"])

    def end(self, number: int) -> None:
        """End a process and all that it has started."""
        with suppress(OSError):
            self._control.sendall(b"e")
            send(self._control, {"end": number}, _START_SECONDS)


def _environment() -> dict[str, str]:
    """Return what the zygote gets of this process' environment: nothing that is nobody's business."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    threads = {name: os.environ.get(name, "1") for name in _THREADS}
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    return kept | threads | {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "HOME": "/tmp"}


@functools.cache
def _zygote_of(pid: int) -> _Zygote:
    return _Zygote()


def missing_isolation() -> str:
    """Return what isolation lacks on this system; empty if nothing.

    Raises:
        IsolationError: If agents cannot be isolated at all.
    """
    return _zygote_of(os.getpid()).missing


class SeatProcess:
    """A process that holds isolated agents of one world.

    Args:
        limits: Its limits.
        show: Files and folders that the agents may read beside Python and ``sys.path``.

    Raises:
        LostError: If it cannot be started.
    """

    def __init__(self, limits: Limits, show: Sequence[str] = ()) -> None:
        self._limits = limits
        self._left = limits.world_seconds
        self._numbers = count()
        self._lost = ""
        zygote = _zygote_of(os.getpid())
        try:
            number, self._connection, pid = zygote.start(show, limits)
            self._times = _Times(pid)
            receive(self._connection, limits.message, _START_SECONDS)
        except (OSError, EOFError, ValueError) as error:
            raise LostError(f"its process could not be started: {error}") from error
        self._end = weakref.finalize(self, _end, zygote, number, self._connection, os.getpid())

    def ask(self, message: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Send a message and return the answer.

        Args:
            message: The message, encoded.
            seconds: Most seconds.

        Raises:
            LostError: If there is no answer in time, or none that can be read; the process is ended then.
        """
        if self._lost:
            raise LostError(self._lost)
        number = next(self._numbers)
        allowed = min(seconds, self._left)
        began = time.monotonic() - self._times.waited()

        def left() -> float:
            return allowed - (time.monotonic() - self._times.waited() - began)

        try:
            send(self._connection, {**message, "number": number}, allowed)
            answer = receive(self._connection, self._limits.message, allowed, left)
            if not isinstance(answer, dict) or answer.get("number") != number:
                raise ValueError("an answer that nobody asked for")
        except TimeoutError as error:
            raise self.lose(f"it gave no answer within {allowed:.0f} seconds") from error
        except (OSError, EOFError) as error:
            raise self.lose("its process ended") from error
        except ValueError as error:
            raise self.lose(f"it sent {error}") from error
        self._left -= max(0.0, allowed - left())
        return answer

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds of its main thread so far; 0 where the system does not count them."""
        return self._times.ran()

    def lose(self, why: str) -> LostError:
        """End the process, and return the error that says why."""
        self._lost = why
        self._end()
        return LostError(why)

    def end(self) -> None:
        """End the process."""
        self._lost = self._lost or "its world is over"
        self._end()


class _Times:
    """How long a process has run, and waited for a processor: on a busy machine waiting is not its fault.

    Args:
        pid: The process.
    """

    def __init__(self, pid: int) -> None:
        try:
            self._file: int | None = os.open(f"/proc/{pid}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # a system that does not count it
            self._file = None
        else:
            weakref.finalize(self, os.close, self._file)
        self._last = (0.0, 0.0)

    def ran(self) -> float:
        """Return the CPU seconds so far; of a process that is gone, those last seen."""
        return self._read()[0]

    def waited(self) -> float:
        """Return the seconds without a processor so far; of a process that is gone, those last seen."""
        return self._read()[1]

    def _read(self) -> tuple[float, float]:
        if self._file is not None:
            with suppress(OSError, ValueError):
                ran, waited, _ = os.pread(self._file, 100, 0).split()
                self._last = int(ran) / 1e9, int(waited) / 1e9
        return self._last


def _end(zygote: _Zygote, number: int, connection: socket.socket, pid: int) -> None:
    connection.close()
    if pid == os.getpid():  # a copy of this object in a forked process ends nothing
        zygote.end(number)
