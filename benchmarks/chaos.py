"""``make chaos``: kill, stop and starve every resumable command at random moments, and compare the results.

Each command is run once without interruption. Then it is started again and again in another folder: a random moment
later it is killed (SIGKILL), or stopped and continued (SIGSTOP, SIGCONT), or starved (stopped most of the time), until
a start ends by itself. The results must be those of the undisturbed run; what depends on the clock is left out.

All runs are forked from one process that has imported everything, because an interpreter start per kill would take
minutes. Kills are counted in the folder of ``--output-dir``: the same command goes on until there are as many as asked
for.
"""

# ruff: noqa: ANN401 - results are any plain values

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import torch
from pydantic import Field

from apexrl.configuration import configuration, from_command_line
from apexrl.runs.metrics.jsonl import JsonlFile, read_jsonl
from benchmarks.fuzz import fingerprint

_CLOCK: Final = frozenset(
    {"cpu", "seconds", "cpu_seconds", "time", "starts", "command", "commit", "sha256", "wall_clock"}
)
_PATIENCE: Final = 900.0  # seconds for a start that is left alone
_INLINE: Final = ("--executor", "inline", "--quiet")
_POOL: Final = (
    "--pool.competitors",
    "RandomStd",
    "GreedyStd",
    "--pool.held-out",
    "SyncRandomStd",
    "--pool.nobody",
    "0.3",
)


@configuration
class ChaosConfig:
    """Disturb all resumable commands at random moments, and compare their results with undisturbed ones.

    The exit status is 1 if a result differs or a command does not end.
    """

    output_dir: Path = Path("chaos")
    """Folder of the runs and of the log of kills."""

    kills: Annotated[int, Field(ge=1)] = 500
    """Kills over all commands; those of earlier starts in the folder count."""

    seconds: Annotated[float, Field(gt=0)] = 3600.0
    """Most seconds of this start; the next one goes on."""

    seed: int = 0
    """Seed of the moments."""

    commands: tuple[str, ...] = ()
    """Commands to disturb. Default: all."""


@dataclass(frozen=True, slots=True)
class Command:
    """A resumable command.

    Attributes:
        words: Its command line; the folder of a run is its working directory.
        results: Patterns of the files that must come out the same.
    """

    words: tuple[str, ...]
    results: tuple[str, ...]


def commands(inputs: Path) -> dict[str, Command]:
    """Return all resumable commands, at their smallest; `inputs` holds what `prepare` made."""
    tournament, out = str(inputs / "tournament"), ("--output-dir", "run")
    small = ("--configs", "1", "--runs", "1", "--steps", "5", "--levels", "2", "--shard-size", "2", "--seed", "3")
    days, six = ("--days", "4", "--levels", "2"), ("--days", "6", "--levels", "2")
    online = ("--updates", "3", "--worlds", "1", *days, "--checkpoint-every", "1", *_POOL, "--self-every", "1")
    gate = ("--gate.every", "2", "--gate.worlds", "2", "--gate.days", "4", "--monitor.window", "2", "--seed", "3")
    hmasd = ("task=uav_coverage", "n_agents=3", "num_envs=4", "batch_size=40", "max_episode_steps=9", "hidden_size=16")
    steps = ("ppo_epochs=1", "discriminator_epochs=1", "total_steps=160", "eval_episodes=2", "checkpoint_interval=40")
    tune = ("tune", "--levels", "middle", "--generations", "1", "--worlds", "2", "--rungs", "1", "--population", "4")
    tuned = ("--names", "hold", "--days", "6", "--n-levels", "3", "--opponents", "built-in", "--validation-worlds", "2")
    epochs = (
        "--l2-epochs",
        "2",
        "--l3-epochs",
        "1",
        "--awr-epochs",
        "1",
        "--l4-epochs",
        "1",
        "--acceptance-epochs",
        "1",
    )
    students = ("--layers", "l2", "--dim", "2", "--epochs", "3", "--worlds", "2", "--held-out", "1", *days)
    return {
        "tournament": Command(
            ("tournament", "--competitors", "RandomStd", "SyncRandomStd", "GreedyStd", *small, *_INLINE, *out),
            ("run/records/**/*", "run/results.json", "run/scores.csv", "run/logs/**/*.csv"),
        ),
        "tournament, processes": Command(
            ("tournament", "--competitors", "RandomStd", "GreedyStd", *small, "--workers", "1", "--quiet", *out),
            ("run/records/**/*", "run/results.json"),
        ),
        "arena": Command(
            (
                "arena",
                "RandomStd",
                "--against",
                "GreedyStd",
                "--opponents",
                "built-in",
                "--worlds",
                "3",
                *six,
                *_INLINE,
                *out,
            ),
            ("run/units/*.json", "run/*/report.json"),
        ),
        "tune": Command((*tune, *tuned, "--gate-worlds", "2", *_INLINE, *out), ("run/parameters.json", "run/*.jsonl")),
        "dataset build": Command(
            ("dataset", "build", tournament, *out, "--agent-name", "Greedy", "--num-workers", "1"),
            ("run/**/*.npy", "run/*.json"),
        ),
        "train": Command(
            ("train", "--data-dir", tournament, "--agent-name", "Greedy", *out, *epochs, "--dataset-dir", "data"),
            ("run/*.pt", "run/weights/*.npz", "run/metrics/*/metrics.jsonl"),
        ),
        "train-online": Command(
            ("train-online", "--layers", "l2", "--l2.dim=8", *online, *gate, *_INLINE, *out),
            ("run/metrics.jsonl", "run/gates.jsonl", "run/best/*.npz", "run/weights/*/*.npz", "run/checkpoints/*.pt"),
        ),
        "distill": Command(
            ("distill", str(inputs / "teacher"), *students, "--pool.slots", "0", *_INLINE, *out),
            ("run/student/*.npz", "run/fit.json", "run/samples/*.npz"),
        ),
        "hmasd train": Command(
            ("hmasd", "train", "--folder", "run", "--log-level", "ERROR", "--set", *hmasd, *steps),
            ("run/models/*.pth", "run/logs/metrics.jsonl"),
        ),
        "export-scml": Command(("export-scml", "tournament"), ("tournament/logs/**/*.csv", "tournament/*.csv")),
    }


def prepare(inputs: Path) -> None:
    """Make what some commands read: a small tournament, and weights to distil."""
    if (inputs / "done").exists():
        return
    shutil.rmtree(inputs, ignore_errors=True)
    inputs.mkdir(parents=True)
    small = ("--configs", "3", "--runs", "1", "--steps", "5", "--levels", "2", "--seed", "3", "--no-csv")
    words = ("tournament", "--competitors", "RandomStd", "GreedyStd", *small, *_INLINE, "--output-dir", "tournament")
    assert _status(_start(inputs, words), _PATIENCE) == 0, (inputs / "said.txt").read_text()[-3000:]
    from litaagent_std.hrl_xf.online.methods.networks import untrained

    untrained(("l2",), 0).save(inputs / "teacher")
    (inputs / "done").touch()


# -- one start of a command


def _start(folder: Path, words: tuple[str, ...]) -> int:
    """Start a command in a process group of its own, in its folder; return its process id."""
    folder.mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.setpgid(0, 0)
        os.chdir(folder)
        said = os.open("said.txt", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.dup2(said, 1)
        os.dup2(said, 2)
        logging.disable(logging.NOTSET)
        random.seed(0)  # a fork seeds it anew; runs store its state, whether they draw from it or not
        from lita.main import main as lita

        status = lita(list(words))
    except BaseException:  # the parent shows what a child says
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _status(child: int, patience: float) -> int | None:
    """Return the exit status; None if the command has not ended after so many seconds."""
    end = time.monotonic() + patience
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= end:
            return None
        time.sleep(0.002)


def _signal(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # its group is not there yet, or no more
        os.killpg(child, number)
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)


def disturb(child: int, draw: random.Random, duration: float, did: Counter[str]) -> int | None:
    """Disturb a running command until it is killed or ends; return its exit status, None if it was killed."""
    while (status := _status(child, draw.uniform(0.0, duration))) is None:
        what = draw.choice(("kill", "kill", "kill", "stop", "starve"))
        did[what] += 1
        if what == "kill":
            _signal(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        for _ in range(1 if what == "stop" else 10):
            _signal(child, signal.SIGSTOP)
            time.sleep(draw.uniform(0.0, 0.5 if what == "stop" else 0.1))
            _signal(child, signal.SIGCONT)
            time.sleep(0.01)
    return status


# -- results


def results(folder: Path, command: Command) -> dict[str, str]:
    """Return what a run left behind, by file, without what depends on the clock."""
    files = {path for pattern in command.results for path in folder.glob(pattern) if path.is_file()}
    kept = [path for path in sorted(files) if path.name not in ("timings.jsonl", "wall_clock.jsonl", "said.txt")]
    return {str(path.relative_to(folder)): fingerprint(_content(path)) for path in kept}


def _content(path: Path) -> Any:
    if path.suffix == ".json":
        return _without_clock(json.loads(path.read_bytes()))
    if path.suffix == ".jsonl":
        lines = [_without_clock(json.loads(line)) for line in path.read_bytes().splitlines()]
        return sorted(lines, key=repr) if path.name == "units.jsonl" else lines
    if path.suffix in (".pt", ".pth"):
        return _without_clock(torch.load(path, map_location="cpu", weights_only=True))
    return path.read_bytes()


def _without_clock(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if key not in _CLOCK and not str(key).startswith("time/")}
        return {key: _without_clock(item) for key, item in kept.items()}
    return [_without_clock(item) for item in value] if isinstance(value, list | tuple) else value


# -- the run


class Chaos:
    """One start of the program: it goes on where an earlier one stopped."""

    def __init__(self, config: ChaosConfig) -> None:
        self.folder = config.output_dir.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._seed = config.seed
        self._path = self.folder / "chaos.jsonl"
        self.log = read_jsonl(self._path) if self._path.exists() else []
        self._file = JsonlFile(self._path, after_step=0)
        self.different: list[str] = []

    @property
    def kills(self) -> int:
        """Kills so far, of earlier starts too."""
        return sum(line["kills"] for line in self.log)

    def whole(self, name: str, command: Command) -> tuple[dict[str, str], float]:
        """Return the results of an undisturbed run, and how long it took."""
        folder = self.folder / "whole" / name
        shutil.rmtree(folder, ignore_errors=True)
        self._copy_inputs(name, folder)
        began = time.monotonic()
        status = _status(_start(folder, command.words), _PATIENCE)
        assert status == 0, f"{name}: {status}\n" + (folder / "said.txt").read_text()[-3000:]
        found = results(folder, command)
        assert found, f"{name} left none of {command.results}"
        return found, time.monotonic() - began

    def _copy_inputs(self, name: str, folder: Path) -> None:
        if name == "export-scml":
            shutil.copytree(self.folder / "inputs" / "tournament", folder / "tournament")

    def disturbed(self, name: str, command: Command, expected: dict[str, str], duration: float) -> None:
        """Disturb one run until it ends, compare it, and log it."""
        number = len(self.log)
        draw = random.Random(f"{self._seed} {name} {number}")
        folder = self.folder / "disturbed" / name
        shutil.rmtree(folder, ignore_errors=True)
        self._copy_inputs(name, folder)
        did: Counter[str] = Counter()
        status: int | None = None
        while status is None:
            # early, for several kills of a run; a command that gets no further between kills is left alone in the end
            patience = duration * (0.4 + did["kill"] / 10)
            status = disturb(_start(folder, command.words), draw, patience, did)
        found = results(folder, command)
        wrong = sorted(file for file in expected.keys() | found.keys() if expected.get(file) != found.get(file))
        if status != 0 or wrong:
            said = (folder / "said.txt").read_text()[-1000:]
            self.different.append(f"{name}, run {number} of seed {self._seed}: status {status}, other {wrong}\n{said}")
            for kind, source in (("whole", self.folder / "whole" / name), ("disturbed", folder)):  # to be looked at
                shutil.copytree(source, self.folder / "different" / f"{name} {number}" / kind, dirs_exist_ok=True)
        equal = status == 0 and not wrong
        line = {"step": 0, "command": name, "kills": did["kill"], "did": dict(did), "equal": equal, "other": wrong}
        self._file.append(line)
        self.log.append(line)

    def close(self) -> None:
        """Close the log."""
        self._file.close()


def _rounds(names: list[str]) -> Iterator[str]:
    while True:
        yield from names


def main(config: ChaosConfig) -> int:
    """Disturb the commands in turns until there are enough kills or the time is over; print a table."""
    torch.set_num_threads(1)
    os.environ["PYTHONHASHSEED"] = "0"
    chaos = Chaos(config)
    prepare(chaos.folder / "inputs")
    until = time.monotonic() + config.seconds
    chosen = {
        name: item for name, item in commands(chaos.folder / "inputs").items() if name in (config.commands or {name})
    }
    print(f"seed {config.seed}; {chaos.kills} of {config.kills} kills so far; {len(chosen)} commands", flush=True)
    known: dict[str, tuple[dict[str, str], float]] = {}
    for name in _rounds(list(chosen)):
        if chaos.kills >= config.kills or (known and time.monotonic() > until):
            break
        if name not in known:
            known[name] = chaos.whole(name, chosen[name])
        chaos.disturbed(name, chosen[name], *known[name])
    print(f"{'command':24}{'runs':>8}{'equal':>8}{'kills':>8}{'stops':>8}{'starved':>9}")
    for name in chosen:
        lines = [line for line in chaos.log if line["command"] == name]
        did = Counter[str]()
        for line in lines:
            did.update(line["did"])
        equal = sum(line["equal"] for line in lines)
        print(f"{name:24}{len(lines):>8}{equal:>8}{did['kill']:>8}{did['stop']:>8}{did['starve']:>9}")
    print(f"{chaos.kills} kills; {sum(not line['equal'] for line in chaos.log)} runs with another result")
    for text in chaos.different:
        print(text)
    chaos.close()
    return 1 if any(not line["equal"] for line in chaos.log) else 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(
            sys.executable,
            [sys.executable, "-m", "benchmarks.chaos", *sys.argv[1:]],
            os.environ | {"PYTHONHASHSEED": "0"},
        )
    sys.exit(main(from_command_line(ChaosConfig, sys.argv[1:], "python -m benchmarks.chaos")))
