"""The program of a worker process: read a request, answer it, until the parent closes the channel or dies.

Started by `apexrl.execution.engines.processes`. Imports only the standard library, so that a worker is ready as soon
as the interpreter is.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from multiprocessing.connection import Connection

from apexrl.execution.server import Server


def main(channel: str, lifeline: str, main_module: str) -> None:
    """Serve requests until there are no more.

    Args:
        channel: The file descriptor of the connection to the parent.
        lifeline: The file descriptor that hangs up when the parent ends.
        main_module: The parent's `apexrl.execution.codec.main_module`, as JSON.
    """
    for descriptor in (int(channel), int(lifeline)):
        os.set_inheritable(descriptor, False)
    _die_with_parent(int(lifeline))
    _raise_oom_score()
    connection: Connection = Connection(int(channel))
    if hasattr(os, "register_at_fork"):  # a child that a task leaves behind must not keep the channel open
        os.register_at_fork(after_in_child=connection.close)
    serve(connection, Server(json.loads(main_module)))


def serve(connection: Connection, server: Server) -> None:
    """Answer what comes over a connection, in order; the first message says that this worker is up."""
    reply = b""
    with contextlib.suppress(EOFError, ConnectionError):  # the parent is done, or gone
        while True:
            connection.send_bytes(reply)
            reply = server.handle(connection.recv_bytes())
            _flush_output()


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
    if sys.platform != "linux":
        return
    import fcntl
    import select

    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    hang_up = select.poll()
    hang_up.register(lifeline, 0)
    if hang_up.poll(0):  # the parent was gone before the kernel was asked
        os._exit(1)


def _raise_oom_score() -> None:
    """Ask the kernel to kill workers, not their parent, when memory runs out: a worker is replaced, a parent is not."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:  # Linux, where it is allowed
        score.write("800")
