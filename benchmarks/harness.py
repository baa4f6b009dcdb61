"""The frame of every benchmark: options, resumable units of work, the table, the result file and the exit status.

A benchmark is a module with a ``main`` like this one::

    def main() -> int:
        bench = Benchmark("engine", "Training speed beside Stable-Baselines3.", seeds=range(5))
        for seed in bench.seeds:
            speed = bench.unit(f"cartpole-{seed}", measure, seed=seed)["speed"]
            ...
        return bench.finish([Figure(name="CartPole-v1, ratio to SB3", value=ratio, unit="x", op=">=", goal=2.0)])

A unit is computed once and kept as a line of ``benchmarks/results/units/NAME.jsonl`` together with its arguments and
the commit that made it; the same command resumes a killed one, and finished units can be committed, so that a long
benchmark can be spread over several runs. The result names the commits of its units, with how many came from each
(``unit_commits``); ``commit`` is the one that put them together. ``--quick`` is a small version that answers within
three minutes; it keeps its results apart and never overwrites full ones.
"""

import argparse
import fcntl
import json
import math
import operator
import os
import platform
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from apexrl.execution import RunOptions, Task, make_executor
from apexrl.runs.atomic import write_json

JsonValue = None | bool | int | float | str | list[Any] | dict[str, Any]
"""What a unit takes and returns: plain values that JSON can hold."""

RESULTS = Path(__file__).parent / "results"
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
}


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured number beside its goal; without a goal it is reported and cannot fail."""

    name: str
    value: float
    unit: str = ""
    op: str = ">="
    goal: float | None = None
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether the goal is met; a figure that is not a number never meets one."""
        return self.goal is None or _COMPARE[self.op](self.value, self.goal)


def _plain(figure: Figure) -> dict[str, Any]:
    """Return a figure as JSON holds it, which has no NaN and no infinity."""
    return {**asdict(figure), "value": figure.value if math.isfinite(figure.value) else None, "ok": figure.ok}


class UnitFile:
    """The finished units of a benchmark in one file: a line with key, arguments, commit and result for each.

    Lines are appended whole, by one process at a time. Of several lines with one key the last counts. A last line that
    a kill has cut off is ignored, and removed before the next one is written.

    Args:
        path: The file; made with the first unit.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._records: dict[str, dict[str, Any]] = {}
        self._size = 0

    def get(self, key: str) -> dict[str, Any] | None:
        """Return what is kept under a key: ``arguments``, ``commit`` and ``result``; or None.

        Raises:
            ValueError: If the file is damaged elsewhere than at its end.
        """
        self._read()
        return self._records.get(key)

    def put(self, key: str, arguments: Mapping[str, JsonValue], result: Mapping[str, Any], commit: str) -> None:
        """Append a unit."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"key": key, "arguments": arguments, "commit": commit, "result": result}, allow_nan=False)
        with self.path.open("ab+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
            file.write(line.encode() + b"\n")
        self._read()

    def _read(self) -> None:
        """Read the lines that were appended since the last time."""
        size = self.path.stat().st_size if self.path.exists() else 0
        if size == self._size:
            return
        if size < self._size:  # somebody has replaced the file
            self._records, self._size = {}, 0
        with self.path.open("rb") as file:
            file.seek(self._size)
            lines = file.read().splitlines(keepends=True)
        for line in lines:
            if not line.endswith(b"\n"):
                break
            try:
                record = json.loads(line)
                self._records[record["key"]] = {name: record[name] for name in ("arguments", "commit", "result")}
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(
                    f"{self.path} is damaged at byte {self._size}: {error}; restore it from git, or remove that line"
                ) from error
            self._size += len(line)


def current_commit() -> str:
    """Return the commit of the working tree, with ``-dirty`` when source files differ from it."""
    root = Path(__file__).parent.parent

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False).stdout.strip()

    commit = git("rev-parse", "--short=12", "HEAD") or "unknown"
    return f"{commit}-dirty" if git("status", "--porcelain", "--", "packages/*/src", "benchmarks/*.py") else commit


def machine() -> dict[str, str]:
    """Return what the figures were measured on."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    return {"cpu": model, "cores": str(os.cpu_count()), "python": platform.python_version()}


@dataclass
class Benchmark:
    """A named benchmark: parses the common options, keeps finished units, writes and shows the result.

    Attributes:
        name: Name of the result file and of the make target.
        description: Shown by ``--help``.
        seeds: Seeds used, written into the result.
        argv: Command line without the program; ``None`` takes it from the process.
        add_options: Adds the options of this benchmark.
        apart: Options that ask another question: where one is given, units and result are kept under its name too.
    """

    name: str
    description: str
    seeds: Iterable[int] = ()
    argv: Sequence[str] | None = None
    add_options: Callable[[argparse.ArgumentParser], None] | None = None
    apart: Sequence[str] = ()
    options: argparse.Namespace = field(init=False)
    _made: set[str] = field(init=False, default_factory=set)
    _commits: dict[str, str] = field(init=False, default_factory=dict)
    _file: UnitFile | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        parser = argparse.ArgumentParser(prog=self.target, description=self.description)
        parser.add_argument("--quick", action="store_true", help="a small version, within three minutes")
        parser.add_argument("--fresh", action="store_true", help="compute every unit again")
        parser.add_argument("--again", metavar="KEY", help="compute the units whose keys start with KEY again")
        parser.add_argument(
            "--workers", type=int, default=2, help="processes for units that can run at once (default 2)"
        )
        if self.add_options:
            self.add_options(parser)
        self.options = parser.parse_args(self.argv)
        self.seeds = list(self.seeds)

    @property
    def target(self) -> str:
        """What to type."""
        return f"make bench-{self.name.replace('_', '-')}"

    @property
    def quick(self) -> bool:
        """Whether the small version was asked for."""
        return bool(self.options.quick)

    @property
    def label(self) -> str:
        """Name of the result file without its ending."""
        name = "_".join([self.name, *(option for option in self.apart if getattr(self.options, option))])
        return f"{name}.quick" if self.quick else name

    def unit(self, key: str, work: Callable[..., dict[str, Any]], **arguments: JsonValue) -> dict[str, Any]:
        """Compute one unit of work, or read it if the same unit with the same arguments was finished before.

        Args:
            key: Name of the unit.
            work: Computes the unit from ``arguments``; returns plain JSON values.
            arguments: Plain JSON values; when they differ from the stored ones the unit is computed again.
        """
        kept = self.finished(key, **arguments)
        if kept is not None:
            return kept
        result = work(**arguments)
        self.keep(key, arguments, result)
        return result

    def units(self, work: Callable[..., dict[str, Any]], keys: Mapping[str, dict[str, JsonValue]]) -> dict[str, Any]:
        """Compute many units in ``--workers`` processes, with progress; the finished ones are read.

        Args:
            work: A module-level function that computes a unit from its arguments.
            keys: The arguments of each unit by its key.

        Returns:
            The results by key.
        """
        missing = [key for key, arguments in keys.items() if self.finished(key, **arguments) is None]
        with (
            Progress(disable=not missing) as progress,
            make_executor("processes", workers=self.options.workers) as pool,
        ):
            bar = progress.add_task(f"bench-{self.label}", total=len(keys), completed=len(keys) - len(missing))
            tasks = [Task(work, kwargs=keys[key], label=key) for key in missing]
            for done in pool.run(tasks, RunOptions(ordered=False, retries=1)):
                key = missing[done.index]
                self.keep(key, keys[key], done.unwrap())
                progress.advance(bar)
        results = {key: self.kept(key) for key in keys}
        return {key: record["result"] for key, record in results.items() if record is not None}

    def finished(self, key: str, **arguments: JsonValue) -> dict[str, Any] | None:
        """Return the stored result of a unit, or ``None`` when it has to be computed."""
        record = self.kept(key)
        if record is None:
            return None
        if record["arguments"] != json.loads(json.dumps(arguments)):
            del self._commits[key]
            return None
        result: dict[str, Any] = record["result"]
        return result

    def kept(self, key: str) -> dict[str, Any] | None:
        """Return what is kept under a key whatever its arguments.

        ``--fresh`` hides the units of earlier runs, ``--again`` some of them.
        """
        again = self.options.fresh or (self.options.again and key.startswith(self.options.again))
        record = None if again and key not in self._made else self._units().get(key)
        if record is not None:
            self._commits[key] = record["commit"]
        return record

    def keep(self, key: str, arguments: Mapping[str, JsonValue], result: Mapping[str, Any], commit: str = "") -> None:
        """Keep a finished unit; ``commit`` is the present one if empty."""
        commit = commit or current_commit()
        self._units().put(key, arguments, result, commit)
        self._made.add(key)
        self._commits[key] = commit

    def _units(self) -> UnitFile:
        path = RESULTS / "units" / f"{self.label}.jsonl"
        if self._file is None or self._file.path != path:
            self._file = UnitFile(path)
        return self._file

    def finish(self, figures: Sequence[Figure], **details: JsonValue) -> int:
        """Write the result file, print the table, and give the exit status: 0 only when every goal is met."""
        self._write(figures, details)
        self._show(figures)
        missed = [figure for figure in figures if not figure.ok]
        if missed:
            names = ", ".join(figure.name for figure in missed)
            print(f"{len(missed)} of {len(figures)} figures miss their goal: {names}", file=sys.stderr)
        return 1 if missed else 0

    def _write(self, figures: Sequence[Figure], details: dict[str, Any]) -> None:
        words = list(sys.argv[1:] if self.argv is None else self.argv)
        record = {
            "commit": current_commit(),
            "unit_commits": dict(Counter(self._commits.values()).most_common()),
            "command": f"{self.target} ARGS={shlex.quote(shlex.join(words))}" if words else self.target,
            "seeds": self.seeds,
            "machine": machine(),
            "figures": [_plain(figure) for figure in figures],
            **details,
        }
        RESULTS.mkdir(parents=True, exist_ok=True)
        write_json(RESULTS / f"{self.label}.json", record)

    def _show(self, figures: Sequence[Figure]) -> None:
        table = Table(title=f"bench-{self.label}")
        for column in ("figure", "value", "goal", "", "note"):
            table.add_column(column, justify="right" if column in {"value", "goal"} else "left")
        for figure in figures:
            goal = "–" if figure.goal is None else f"{figure.op} {figure.goal:g} {figure.unit}"
            verdict = "" if figure.goal is None else ("ok" if figure.ok else "MISSED")
            table.add_row(figure.name, f"{figure.value:.4g} {figure.unit}", goal, verdict, figure.note)
        Console(width=None if sys.stdout.isatty() else 140).print(table)
