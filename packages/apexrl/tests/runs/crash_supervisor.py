"""Kills forked checkpoint writers and looks at what they leave. Prints its counts as JSON.

    crash_supervisor.py kill <folder> <number> <seed>     SIGKILL at random moments of a writing loop
    crash_supervisor.py lines <folder>                    death before every line of ours that a save runs

One process that has imported torch forks all writers, because an interpreter start per kill would take minutes.
"""

import json
import logging
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from types import FrameType

import torch

from apexrl.runs.checkpoints.checkpoint import Checkpoint, CheckpointStore, Retention, Schema

SCHEMA = Schema(name="tests.crash", version=1)
_WRITERS = ("atomic", "checkpoints.checkpoint", "checkpoints.seal")
TRACED = tuple(sys.modules[f"apexrl.runs.{name}"].__file__ or "" for name in _WRITERS)


class Complaints(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def open_store(folder: Path) -> CheckpointStore:
    return CheckpointStore(folder, SCHEMA, retention=Retention(keep_last=2), config={"lr": 0.1})


def state_of(step: int) -> dict[str, torch.Tensor]:
    return {"w": torch.arange(2000, dtype=torch.float64) * step}


def check(checkpoint: Checkpoint | None, lowest: int, highest: int) -> int:
    step = -1 if checkpoint is None else checkpoint.step
    assert lowest <= step <= highest, f"opened at {step}, expected {lowest} to {highest}"
    if checkpoint is not None:
        assert torch.equal(checkpoint.state["w"], state_of(step)["w"])
        assert checkpoint.config == {"lr": 0.1}
        assert checkpoint.rng is not None
    return step


def partial_files(folder: Path) -> int:
    return sum(name.endswith(".partial") for name in os.listdir(folder)) if folder.exists() else 0


def write_forever(folder: Path, report: int) -> None:
    store = open_store(folder)
    newest = store.resume()
    step = 0 if newest is None else newest.step + 1
    while True:
        os.write(report, f"{step} begun\n".encode())
        store.save(step, state_of(step))
        os.write(report, f"{step} done\n".encode())
        step += 1


def kill_once(folder: Path, moments: random.Random, typical: float, done_before: int) -> tuple[int, int]:
    """Let a writer finish a few saves, kill it somewhere in the next, return the last step begun and done.

    Moments are measured in saves and not in seconds, so that a slow machine sees the same kinds of moments.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        write_forever(folder, writer)
    os.close(writer)
    with os.fdopen(reader) as reports:
        lines = [reports.readline() for _ in range(1 + 2 * moments.randrange(3))]
        time.sleep(moments.uniform(0, 1.5 * typical))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        lines += reports.readlines()
    words = [line.split() for line in lines]
    begun = [int(step) for step, what in words if what == "begun"]
    done = [int(step) for step, what in words if what == "done"]
    return max(begun), max(done, default=done_before)


def seconds_per_save(folder: Path) -> float:
    store, start = open_store(folder), time.perf_counter()
    for step in range(5):
        store.save(step, state_of(step))
    return (time.perf_counter() - start) / 5


def kill_at_random(folder: Path, kills: int, seed: int) -> dict[str, int]:
    moments = random.Random(seed)
    newest, counts = -1, {"kills": 0, "during_a_save": 0, "left_a_partial_file": 0, "saved": 0}
    for number in range(kills):
        if number % 20 == 0:  # again and again: other work on the machine comes and goes
            typical = seconds_per_save(folder / "timing")
        begun, done = kill_once(folder, moments, typical, newest)
        newest = check(open_store(folder).latest(), done, begun)
        counts["kills"] += 1
        counts["during_a_save"] += begun > done
        counts["left_a_partial_file"] += partial_files(folder) > 0
    counts["saved"] = newest + 1
    open_store(folder).save(newest + 1, state_of(newest + 1))
    assert partial_files(folder) == 0, "the next save removes what the dead left"
    return counts


def die_before_line(folder: Path, number: int) -> bool:
    """Save in a child that dies before the given line of our code; whether it got as far as that line."""
    child = os.fork()
    if child == 0:
        store = open_store(folder)
        store.resume()
        seen = 0

        def trace(frame: FrameType, event: str, argument: object) -> object:
            nonlocal seen
            if frame.f_code.co_filename not in TRACED:
                return None
            if event == "line":
                seen += 1
                if seen == number:
                    os._exit(9)
            return trace

        sys.settrace(trace)  # type: ignore[arg-type]
        store.save(2, state_of(2))
        sys.settrace(None)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 9


def die_at_every_line(folder: Path) -> dict[str, int]:
    original = folder / "original"
    for step in (0, 1):
        open_store(original).save(step, state_of(step))
    counts = {"lines": 0, "old": 0, "new": 0, "left_a_partial_file": 0}
    while True:
        scene = folder / "scene"
        shutil.rmtree(scene, ignore_errors=True)
        shutil.copytree(original, scene)
        died = die_before_line(scene, counts["lines"] + 1)
        newest = check(open_store(scene).latest(), 1, 2)
        counts["left_a_partial_file"] += partial_files(scene) > 0
        open_store(scene).save(3, state_of(3))
        check(open_store(scene).latest(), 3, 3)
        assert open_store(scene).steps() == [newest, 3]
        assert partial_files(scene) == 0
        if not died:
            return counts
        counts["lines"] += 1
        counts["old" if newest == 1 else "new"] += 1


def main() -> None:
    torch.set_num_threads(1)
    complaints = Complaints()
    logging.getLogger("apexrl").addHandler(complaints)
    folder = Path(sys.argv[2])
    if sys.argv[1] == "kill":
        counts = kill_at_random(folder, int(sys.argv[3]), int(sys.argv[4]))
    else:
        counts = die_at_every_line(folder)
    assert complaints.messages == [], complaints.messages
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
