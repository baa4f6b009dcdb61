"""Kill ``lita train-online`` at random moments, resume it, and compare it with an uninterrupted run.

    kill_supervisor.py <folder> <seed>

Prints as JSON the number of kills, the checkpoint from which each start resumed, and the differences at the end. All
runs are forked from one process that has imported everything, because an interpreter start per kill would take minutes.
Each run has the same name in a folder of its own: the gate's seeds come from the name.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch

import litaagent_std.hrl_xf.online.command  # noqa: F401 - so that a fork need not import it
from apexrl.runs.checkpoints.checkpoint import load_checkpoint
from lita.main import main as lita

UPDATES = 6
KILLS = 3
"""Kills at most; then the run is left to finish."""
WORDS = (
    *("--layers", "l2", "l3", "l4", *(f"--{layer}.dim=8" for layer in ("l2", "l3", "l4"))),
    *("--updates", str(UPDATES), "--worlds", "1", "--days", "4", "--levels", "2", "--checkpoint-every", "2"),
    *("--pool.competitors", "RandomStd", "GreedyStd", "--pool.held-out", "SyncRandomStd", "--pool.nobody", "0.3"),
    *("--self-every", "1", "--gate.every", "3", "--gate.worlds", "2", "--gate.days", "4", "--monitor.window", "2"),
    *("--monitor.errors", "0.01", "--executor", "inline", "--quiet", "--output-dir", "run", "--seed", "3"),
)
COMPARED = ("metrics.jsonl", "gates.jsonl", "best/*.npz", "weights/*/*.npz")


def start(folder: Path) -> int:
    """Start a run in a process of its own and return its process id."""
    folder.mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        with open("said.txt", "a") as said:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
        os._exit(lita(["train-online", *WORDS]))
    return child


def status_of(child: int, patience: float = 0.0) -> int | None:
    """Return the exit status; None if the run has not ended after ``patience`` seconds."""
    end = time.monotonic() + patience
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= end:
            return None
        time.sleep(0.002)


def logged(folder: Path) -> int:
    """Return the last update with written metrics."""
    path = folder / "run" / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def newest(folder: Path) -> Path | None:
    files = (folder / "run" / "checkpoints").glob("checkpoint_*.pt")
    return max(files, key=lambda path: int(path.stem.rpartition("_")[2]), default=None)


def kill_at_random(folder: Path, moments: random.Random, update: float) -> tuple[int, list[int]]:
    """Start and kill a run, then let it finish; return the number of kills, and the update at which each start began.

    A kill comes after a random number of updates and a random part of one, so that it does not depend on the machine's
    speed.
    """
    begun: list[int] = []
    while True:
        path = newest(folder)
        begun.append(0 if path is None else int(path.stem.rpartition("_")[2]))
        child = start(folder)
        due = begun[-1] + moments.randrange(4) if len(begun) <= KILLS else UPDATES
        status = None
        while status is None and logged(folder) < due:
            status = status_of(child, 0.002)
        if status is None:
            status = status_of(child, moments.uniform(0.0, update) if due < UPDATES else 200.0)
        if status is not None:
            assert status == 0, (folder / "said.txt").read_text()[-3000:]
            return len(begun) - 1, begun
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def differences(one: Any, other: Any, where: str) -> list[str]:
    """Return the paths at which two states differ, CPU seconds excluded."""
    if isinstance(one, dict):
        if one.keys() != other.keys():
            return [where]
        return [d for key in one if key != "seconds" for d in differences(one[key], other[key], f"{where}.{key}")]
    if isinstance(one, list | tuple):
        if len(one) != len(other):
            return [where]
        return [d for i, (a, b) in enumerate(zip(one, other, strict=True)) for d in differences(a, b, f"{where}[{i}]")]
    same = torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other or (one != one and other != other)
    return [] if same else [where]


def compare(whole: Path, parts: Path) -> list[str]:
    ends = [newest(folder) for folder in (whole, parts)]
    assert None not in ends
    states = [load_checkpoint(path).state for path in ends if path is not None]
    different = differences(*states, "state")
    for pattern in COMPARED:
        files = [
            {str(path.relative_to(folder)): path.read_bytes() for path in (folder / "run").glob(pattern)}
            for folder in (whole, parts)
        ]
        different += [name for name in files[0].keys() | files[1].keys() if files[0].get(name) != files[1].get(name)]
    return different


def main() -> None:
    torch.set_num_threads(1)
    folder, seed = Path(sys.argv[1]), int(sys.argv[2])
    began = time.monotonic()
    assert status_of(start(folder / "whole"), 200.0) == 0, (folder / "whole" / "said.txt").read_text()[-3000:]
    update = (time.monotonic() - began) / UPDATES
    kills, begun = kill_at_random(folder / "parts", random.Random(seed), update)
    last = newest(folder / "whole")
    assert last is not None
    result = {
        "kills": kills,
        "begun": begun,
        "different": compare(folder / "whole", folder / "parts"),
        "pool": load_checkpoint(last).state["pool"],
        "weights": len(list((folder / "whole" / "run" / "weights").glob("*/l2.npz"))),
        "gates": len((folder / "whole" / "run" / "gates.jsonl").read_text().splitlines()),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
