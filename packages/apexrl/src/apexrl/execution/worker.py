"""The program of a worker process: read a request, answer it, until the parent closes the channel or dies.

Started by `apexrl.execution.processes` as ``python -c … CHANNEL LIFELINE MODULE PATH``. Imports only the standard
library, so that a worker is ready as soon as the interpreter is.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import socket
import struct
import sys

from apexrl.execution.codec import MainModule
from apexrl.execution.server import Server

HEADER = struct.Struct("!Q")
"""Precedes every message on the channel: the length of what follows."""
READY = b""
"""The first message of a worker."""

_BUFFER = 1 << 16


def main(arguments: list[str]) -> None:
    """Serve requests until there are no more.

    Args:
        arguments: The channel's and the lifeline's file descriptors, and the parent's main module by name and by path.
    """
    channel, lifeline, module, path = arguments
    _die_with_parent(int(lifeline))
    _raise_oom_score()
    with socket.socket(fileno=int(channel)) as connection:
        serve(connection, Server(MainModule(module, path)))


def serve(connection: socket.socket, server: Server) -> None:
    """Answer what comes over a connection, in order."""
    connection.sendall(HEADER.pack(len(READY)) + READY)
    with connection.makefile("rb", buffering=_BUFFER) as requests:
        while header := requests.read(HEADER.size):
            (length,) = HEADER.unpack(header)
            reply = server.handle(requests.read(length))
            _flush_output()
            connection.sendall(HEADER.pack(len(reply)) + reply)


def _flush_output() -> None:
    """Show what the task printed before its result is known, also when this process is killed later."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            with contextlib.suppress(OSError):  # nobody reads it any more: no reason to lose a result
                stream.flush()


def _die_with_parent(lifeline: int) -> None:
    """Let the kernel kill this process and its children when the parent ends, however it ends.

    The lifeline is the reading end of a pipe whose writing end only the parent holds and never writes to. Its hang-up
    is turned into SIGKILL for the whole process group by the kernel, so that it works while a task holds the
    interpreter lock. (``PR_SET_PDEATHSIG`` would do so too, but counts the end of the parent's *thread* as its death.)
    On systems without ``F_SETSIG`` a worker ends when its running task does, by the end of its channel.
    """
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    hang_up = select.poll()
    hang_up.register(lifeline, 0)
    if hang_up.poll(0):  # the parent was gone before the kernel was asked
        os._exit(1)


def _raise_oom_score() -> None:
    """Ask the kernel to kill workers, not their parent, when memory runs out: a worker is replaced, a parent is not."""
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write("800")
    except OSError:
        return  # not Linux, or not allowed here: the kernel chooses by itself
