"""Agents that attack: each in one way, from inside the calls that a world makes.

All are silent otherwise (`Silent`): they make no offers and end every negotiation. In a seat that is isolated, the
world with any of them must be the world with `Silent` itself. What they try to read, change and delete is a folder of
the host that the benchmark makes for them; elsewhere they only look whether they could. Never seat them unisolated.
"""

# ruff: noqa: ANN001, ANN201, ANN202, ANN204, D101, D102 - they do what one must not

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import negmas
import numpy as np
import scml
from negmas.sao import ResponseType
from scml.std.agent import StdAgent


class Silent(StdAgent):
    """Makes no offers, and ends every negotiation.

    Args:
        target: A folder of the host, for those that attack it; as letters, because a path would be shown to the agent.
        port: A port on which the host listens.
    """

    def __init__(self, target: Sequence[str] = "/nowhere", port: int = 0) -> None:
        super().__init__()
        self.target = "".join(target)
        self.port = port

    def propose(self, negotiator_id, state):
        return None

    def respond(self, negotiator_id, state, source=None):
        return ResponseType.END_NEGOTIATION


class _AtStart(Silent):
    def before_step(self):
        if self.awi.current_step == 1:
            self.attack()

    def attack(self):
        raise NotImplementedError


class InfiniteLoop(_AtStart):
    def attack(self):
        while True:
            pass


class Sleeps(_AtStart):
    def attack(self):
        time.sleep(1e6)


class MemoryBomb(_AtStart):
    def attack(self):
        hoard = [np.ones(8 << 20) for _ in range(100)]  # 6.4 GB
        raise RuntimeError(f"could take {len(hoard)} times 64 MB")


class ForkBomb(_AtStart):
    def attack(self):
        for _ in range(100):
            try:
                if os.fork() == 0:
                    time.sleep(1e6)
            except OSError:
                return
        raise RuntimeError("could fork 100 processes")


class ThreadBomb(_AtStart):
    def attack(self):
        with contextlib.suppress(RuntimeError):
            for _ in range(1000):
                threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()


class Exits(_AtStart):
    def attack(self):
        os._exit(0)


class RaisesSystemExit(_AtStart):
    def attack(self):
        sys.exit(0)


class Interrupts(_AtStart):
    def attack(self):
        raise KeyboardInterrupt


class Segfaults(_AtStart):
    def attack(self):
        ctypes.string_at(1)


class Aborts(_AtStart):
    def attack(self):
        os.abort()


class StopsItself(_AtStart):
    def attack(self):
        os.kill(os.getpid(), signal.SIGSTOP)


class DeletesFiles(_AtStart):
    def attack(self):
        shutil.rmtree(self.target, ignore_errors=True)


class WritesFiles(_AtStart):
    def attack(self):
        with contextlib.suppress(OSError):
            Path(self.target, "hostile_was_here").write_text("x")
        for path in (scml.__file__, __file__, sys.executable, "/etc/passwd"):
            with contextlib.suppress(OSError):
                os.close(os.open(path, os.O_WRONLY))
                raise RuntimeError(f"could write {path}")


class ReadsFiles(_AtStart):
    """Raises if it can read the host's folder, which counts as an exception more than it should have."""

    def attack(self):
        for path in (Path(self.target, "secret.txt"), Path("/etc/shadow"), Path("/root/.bashrc")):
            with contextlib.suppress(OSError):
                path.read_text()
                raise RuntimeError(f"could read {path}")


class FillsDisk(_AtStart):
    def attack(self):
        for number in range(10_000):
            try:
                Path(f"/tmp/{number}").write_bytes(bytes(1 << 20))
            except OSError:
                return


class Connects(_AtStart):
    def attack(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=2):
            raise RuntimeError("could connect")


class Listens(_AtStart):
    def attack(self):
        server = socket.socket()
        server.bind(("0.0.0.0", 0))
        server.listen()


class KillsParent(_AtStart):
    def attack(self):
        if os.getpid() != 1 or os.getppid() != 0:
            raise RuntimeError("could see other processes")
        for pid in (-1, 0, *range(2, 3000)):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


class RunsPrograms(_AtStart):
    def attack(self):
        with contextlib.suppress(OSError):
            subprocess.run(
                ["/bin/sh", "-c", f"rm -rf {self.target}; touch {self.target}/hostile_was_here"], check=False
            )


class TakesPrivileges(_AtStart):
    def attack(self):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.setuid(0)
        libc.unshare(0x10000000 | 0x20000)
        libc.mount(None, b"/usr", None, 32 | 4096, None)  # writable again
        libc.umount2(b"/usr", 2)
        libc.chroot(b".")
        for _ in range(20):
            with contextlib.suppress(OSError):
                os.chdir("..")
        shutil.rmtree(self.target, ignore_errors=True)


class _Rejects(Silent):
    def respond(self, negotiator_id, state, source=None):
        return ResponseType.REJECT_OFFER  # and is asked for an offer


class HugeOffers(_Rejects):
    def propose(self, negotiator_id, state):
        return (1,) * 10_000_000


class HugeNumbers(_Rejects):
    def propose(self, negotiator_id, state):
        return (10**4000, 10**4000, 10**4000)


class HugeErrors(Silent):
    def before_step(self):
        raise RuntimeError("x" * 50_000_000)


class Recurses(_AtStart):
    def attack(self):
        sys.setrecursionlimit(10**9)

        def again(n):
            return again(n + 1) + 1

        again(0)


class DeepAnswers(_Rejects):
    def propose(self, negotiator_id, state):
        offer = ()
        for _ in range(500):
            offer = (offer,)
        return offer


class FloodsOutput(_AtStart):
    def attack(self):
        for _ in range(2000):
            print("x" * 10_000)
            os.write(1, b"x" * 10_000)
            os.write(2, b"x" * 10_000)


class SendsPickles(_AtStart):
    """Writes what looks like an answer, and a pickle, to every descriptor that it has."""

    def attack(self):
        pickle = b"cos\nsystem\n(S'touch " + self.target.encode() + b"/hostile_was_here'\ntR."
        for descriptor in range(3, 64):
            with contextlib.suppress(OSError):
                os.write(descriptor, len(pickle).to_bytes(4, "big") + pickle)


class ForgesAnswers(_AtStart):
    def attack(self):
        for descriptor in range(3, 64):
            for number in range(50):
                answer = b'{"value":{"t":[1,1,1]},"number":%d}' % number
                with contextlib.suppress(OSError):
                    os.write(descriptor, len(answer).to_bytes(4, "big") + answer)


class ClosesDescriptors(_AtStart):
    def attack(self):
        os.closerange(0, 1000)


class LeavesThreads(_AtStart):
    def attack(self):
        def draw():
            while True:
                random.random()
                np.random.random()

        threading.Thread(target=draw, daemon=True).start()


class SeedsEverything(Silent):
    def before_step(self):
        random.seed(1)
        np.random.seed(1)


class Monkeypatches(_AtStart):
    def attack(self):
        negmas.sao.SAOMechanism.__init__ = None
        scml.std.StdAWI = None
        random.random = random.randint = lambda *_: 0
        np.random.rand = np.random.randint = lambda *_: 0
        sys.modules["negmas"] = None
        for name in ("settle", "score"):
            for module in list(sys.modules.values()):
                if hasattr(module, name):
                    setattr(module, name, lambda *_: 1e9)


class SearchesWorld(_AtStart):
    """Looks for other agents and for balances in everything that it can reach; raises if it finds some."""

    def attack(self):
        world = self.awi._world
        others = [agent for agent in getattr(world, "agents", {}).values() if agent is not None]
        seats = [thing for thing in gc.get_objects() if type(thing).__name__ == "Seat"]
        if others or hasattr(world, "seats") or len(seats) > 1 or hasattr(world, "setup"):
            raise RuntimeError("could see the world")


class ChangesWorld(_AtStart):
    def attack(self):
        world = self.awi._world
        for name in ("is_bankrupt", "suppliers", "consumers", "agents"):
            getattr(world, name).clear()
        self.awi.trading_prices[:] = 1e9
        self.awi.catalog_prices[:] = 1
        self.awi.current_balance = 1e12
        self.awi.profile.cost = -1000


class _StrangeError(Exception):
    def __str__(self):
        raise ValueError("no text")


class StrangeErrors(Silent):
    def before_step(self):
        raise _StrangeError

    def step(self):
        raise type("\ud801Error", (BaseException,), {})("\ud800") if self.awi.current_step == 2 else MemoryError


class RaisesInReset(Silent):
    def reset(self):
        super().reset()
        if self._awi is not None and self.awi.current_step == 2:
            raise RuntimeError("nobody plays today")


class LosesInConstructor(Silent):
    def __init__(self, target: Sequence[str] = "/nowhere", port: int = 0) -> None:
        os._exit(3)


KINDS = tuple(
    name
    for name, value in list(vars().items())
    if isinstance(value, type) and issubclass(value, Silent) and value is not Silent and not name.startswith("_")
)
"""Names of all agents that attack."""
