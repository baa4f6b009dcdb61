"""The process that forks the processes of isolated agents: scml and negmas are imported once, and no agent ever.

It is started by `process`, with one end of a connection as its only argument, and lives as long as the other end. It
holds nothing of any world, so neither do its children.

A child becomes two processes. One is outside the new namespaces and waits; the other is inside, process 1 there, and
serves the world (`mirror.serve`). Ending that one ends everything that the agent has started.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from litaagent_std.world.isolated.codec import receive, send
from litaagent_std.world.isolated.mirror import serve
from litaagent_std.world.isolated.sandbox import (
    Limits,
    drop_privileges,
    enter_namespaces,
    map_user,
    set_limits,
    unshare,
    visible_paths,
)

__all__ = ["main"]

_MESSAGE: Final = 1 << 20


class _Child:
    """A process of an isolated agent.

    Attributes:
        waiting: The process outside the namespaces.
        inside: The process that serves.
    """

    def __init__(self, waiting: int, inside: int) -> None:
        self.waiting = waiting
        self.inside = inside
        # a descriptor where the system has them, so that no later process with the same number is hit
        self._handle = os.pidfd_open(inside) if hasattr(os, "pidfd_open") else None

    def end(self) -> None:
        """Kill it, and everything that it has started."""
        with suppress(ProcessLookupError):
            if self._handle is None:
                os.kill(self.inside, signal.SIGKILL)
            else:
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        if self._handle is not None:
            os.close(self._handle)
        with suppress(ChildProcessError):
            os.waitpid(self.waiting, 0)


class _Zygote:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: dict[int, _Child] = {}
        self.missing = ""

    def run(self) -> None:
        """Serve until the world's process is gone."""
        self.missing = self._try_namespaces()
        send(self._control, {"missing": self.missing})
        while True:
            try:
                message, descriptors = self._request()
            except (OSError, EOFError):
                break
            if "start" in message:
                number = message["start"]
                limits = Limits(**message["limits"])
                sys.path[:] = message["path"]
                self._children[number] = self._fork(socket.socket(fileno=descriptors[0]), message["show"], limits)
                send(self._control, {"started": number, "pid": self._children[number].inside})
            else:
                child = self._children.pop(message["end"], None)
                if child is not None:
                    child.end()
        for child in self._children.values():
            child.end()

    def _request(self) -> tuple[dict[str, Any], list[int]]:
        # a descriptor comes with a byte of its own, before the message
        kind, descriptors, _, _ = socket.recv_fds(self._control, 1, 1)
        if not kind:
            raise EOFError
        return receive(self._control, _MESSAGE), list(descriptors)

    def _try_namespaces(self) -> str:
        """Return what this system does not allow; empty if it allows everything."""
        ours, theirs = socket.socketpair()
        child = self._fork(theirs, [], Limits())
        try:
            answer = receive(ours, _MESSAGE, 30.0)
            return str(answer["missing"])
        except (OSError, EOFError, ValueError):
            return "namespaces (the process that tried them ended)"
        finally:
            child.end()
            ours.close()

    def _fork(self, connection: socket.socket, show: Sequence[str], limits: Limits) -> _Child:
        ready, tell = os.pipe()  # the child has its namespaces, or none
        go, allow = os.pipe()  # its user is mapped
        pid = os.fork()
        if pid == 0:
            self._control.close()
            os.close(ready)
            os.close(allow)
            _become_child(connection, tell, go, visible_paths(show), limits)
        connection.close()
        os.close(tell)
        os.close(go)
        if os.read(ready, 1) == b"n":
            with suppress(OSError):
                map_user(pid)
        os.write(allow, b"g")
        os.close(allow)
        inside = int(os.read(ready, 20) or b"0")
        os.close(ready)
        return _Child(pid, inside or pid)


def _become_child(connection: socket.socket, tell: int, go: int, paths: Sequence[str], limits: Limits) -> None:
    """Take namespaces, fork the process that serves, and wait for it; never returns."""
    status = 1
    try:
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")
        missing = ""
        try:
            unshare()
        except OSError as error:
            missing = f"namespaces ({error})"
        os.write(tell, b"x" if missing else b"n")
        os.read(go, 1)
        os.close(go)
        inside = os.fork()
        if inside == 0:
            _serve_inside(connection, missing, paths, limits)
        os.write(tell, str(inside).encode())
        os.close(tell)
        connection.close()
        os.waitpid(inside, 0)
        status = 0
    finally:
        os._exit(status)


def _serve_inside(connection: socket.socket, missing: str, paths: Sequence[str], limits: Limits) -> None:
    """Take the limits, give up everything else, and serve; never returns."""
    try:
        alone = not missing
        if not missing:
            try:
                enter_namespaces(paths, limits)
                drop_privileges()
            except OSError as error:
                missing = f"a file system of its own ({error})"
        kept = os.dup2(connection.fileno(), 3)
        connection.detach()
        os.closerange(4, 1 << 16)
        set_limits(limits, alone=alone)
        own = socket.socket(fileno=kept)
        send(own, {"missing": missing})
        serve(own)
    finally:
        os._exit(0)


def main(descriptor: int) -> None:
    """Serve the world at the other end of a connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.collect()
    gc.freeze()  # what is imported stays shared with the children
    _Zygote(socket.socket(fileno=descriptor)).run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
