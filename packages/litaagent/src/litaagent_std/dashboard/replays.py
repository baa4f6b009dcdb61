"""Replays that a page requested: one at a time, in processes of their own, with their results kept in a folder.

A result is kept under the digest of the recorded world and of the code that played it, so that it is never shown for
another recording or another release.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, Literal

from apexrl.runs.digest import digest_code, digest_config, digest_file
from litaagent_std.dashboard.decisions import SeatDecisions, decisions_from

__all__ = ["Asked", "Replays", "cache_folder", "code_digest", "shared_replays"]

_VARIABLE: Final = "LITA_CACHE_DIR"
_PACKAGE: Final = Path(__file__).parents[1]
_PLAYING: Final = ("agents/**/*", "policy/**/*", "world/**/*", "tournament/competitors/**/*")
_DATA: Final = frozenset({".npz", ".json", ".yaml"})
_SECONDS: Final = 1800.0
_MOST_WAITING: Final = 8
_MOST_KEPT: Final = 200


def cache_folder() -> Path:
    """Return where replays are kept: ``$LITA_CACHE_DIR``, or ``litaagent`` in the user's cache folder."""
    configured = os.environ.get(_VARIABLE)
    if configured:
        return Path(configured) / "replays"
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "litaagent" / "replays"


@cache
def code_digest() -> str:
    """Return the digest of everything that determines a world with our agent: code, parameters and weights."""
    files = [path for pattern in _PLAYING for path in sorted(_PACKAGE.glob(pattern)) if path.is_file()]
    code = digest_code(path for path in files if path.suffix == ".py")
    data = {path.name: digest_file(path) for path in files if path.suffix in _DATA}
    return digest_config({"code": code, "data": data})


@dataclass(frozen=True, slots=True)
class Asked:
    """The state of a replay.

    Attributes:
        state: ``none`` if it was not requested, ``running`` while it waits or runs, ``done`` or ``failed``.
        decisions: Its result.
        why: Why it failed.
    """

    state: Literal["none", "running", "done", "failed"]
    decisions: SeatDecisions | None = None
    why: str = ""


@dataclass(slots=True)
class _Jobs:
    """Replays that wait or run, guarded by the lock; `turn` lets one run at a time."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    turn: threading.Lock = field(default_factory=threading.Lock)
    running: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    child: subprocess.Popen[str] | None = None


class Replays:
    """Runs replays on request.

    Args:
        folder: Where results are kept; a temporary folder if it cannot be written.
        seconds: Time limit of a replay.
    """

    def __init__(self, folder: Path, seconds: float = _SECONDS) -> None:
        self.folder = _writable(folder)
        self._seconds = seconds
        self._jobs = _Jobs()
        atexit.register(self.close)

    def close(self) -> None:
        """End the replay that is running."""
        child = self._jobs.child
        if child is not None and child.poll() is None:
            child.kill()

    def look(self, tournament: Path, world: int, seat: int, recorded: str) -> Asked:
        """Return the state of a replay without starting it.

        Args:
            tournament: The tournament's folder.
            world: The world.
            seat: The seat.
            recorded: Digest of the recorded world.
        """
        key = _key(tournament, world, seat, recorded)
        kept = self._kept(key)
        if kept is not None:
            return Asked("done", kept)
        with self._jobs.lock:
            if key in self._jobs.running:
                return Asked("running")
            why = self._jobs.failed.get(key)
        return Asked("none") if why is None else Asked("failed", why=why)

    def ask(self, tournament: Path, world: int, seat: int, recorded: str) -> Asked:
        """Return the state of a replay, and start it if it was not requested yet. Same arguments as `look`."""
        present = self.look(tournament, world, seat, recorded)
        if present.state != "none":
            return present
        key = _key(tournament, world, seat, recorded)
        with self._jobs.lock:
            if len(self._jobs.running) >= _MOST_WAITING:
                return Asked("failed", why=f"{_MOST_WAITING} replays are waiting already; try again later")
            if key not in self._jobs.running:
                self._jobs.running.add(key)
                arguments = [str(tournament), str(world), str(seat)]
                threading.Thread(target=self._run, args=(key, arguments), daemon=True).start()
        return Asked("running")

    def wait(self, tournament: Path, world: int, seat: int, recorded: str) -> Asked:
        """Run a replay in this thread, if it is not kept yet, and return it. Same arguments as `look`."""
        present = self.look(tournament, world, seat, recorded)
        if present.state == "none":
            key = _key(tournament, world, seat, recorded)
            self._run(key, [str(tournament), str(world), str(seat)])
            present = self.look(tournament, world, seat, recorded)
        return present

    def _kept(self, key: str) -> SeatDecisions | None:
        try:
            return decisions_from((self.folder / f"{key}.json").read_bytes())
        except (OSError, ValueError):  # missing or incomplete: the replay runs again
            return None

    def _run(self, key: str, arguments: list[str]) -> None:
        with self._jobs.turn:
            why = self._play([*arguments, str(self.folder / f"{key}.json")])
        with self._jobs.lock:
            self._jobs.running.discard(key)
            if why is not None:
                self._jobs.failed[key] = why
        _forget_old(self.folder)

    def _play(self, arguments: list[str]) -> str | None:
        """Run the replay; return why it failed, or None."""
        # -P: modules in the working directory are not imported.
        command = [sys.executable, "-P", "-m", "litaagent_std.dashboard.seat_replay", *arguments]
        environment = os.environ | {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
        child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self._jobs.child = child
        try:
            _, output = child.communicate(timeout=self._seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            return f"the replay was given up after {self._seconds:.0f} seconds"
        if child.returncode == 0:
            return None
        lines = output.strip().splitlines()
        return lines[-1][:500] if lines else f"the replay ended with status {child.returncode}"


def _key(tournament: Path, world: int, seat: int, recorded: str) -> str:
    parts = (str(tournament.resolve()), str(world), str(seat), recorded, code_digest())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _writable(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="lita-replays-"))
    return folder if os.access(folder, os.W_OK) else Path(tempfile.mkdtemp(prefix="lita-replays-"))


def _forget_old(folder: Path) -> None:
    files = sorted(folder.glob("*.json"), key=lambda path: -path.stat().st_mtime)
    for path in files[_MOST_KEPT:]:
        path.unlink(missing_ok=True)


@cache
def shared_replays() -> Replays:
    """Return the replays of this process."""
    return Replays(cache_folder())
