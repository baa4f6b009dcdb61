"""How fast the policy decides, as ratios to the last commits before it worked by columns.

Both versions take turns in one run (`benchmarks.policy_worker`), so that the load of the machine divides out: 64 seats
decided at once, from columns to actions, beside the earlier code, which decides one factory after the other; a day of
the agent in play, everything between the world's call and its answer; the arrays of recorded decisions, of as many
worlds as a task of a build has; and training in lockstep (`benchmarks.lockstep`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.earlier import ROOT, checkout, environment
from benchmarks.harness import Benchmark, Figure
from benchmarks.lockstep import training
from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing

BEFORE: Final = "1ea1644"
"""The last commit whose policy decided for one factory at a time; it plays the same worlds to the last decision."""
BEFORE_ARRAYS: Final = "2babaac"
"""The last commit whose data pipeline had observations and arrays of its own."""


class Version:
    """A worker with the code of one version."""

    def __init__(self, root: Path) -> None:
        command = [sys.executable, str(Path(__file__).with_name("policy_worker.py"))]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(root)
        )

    def __call__(self, command: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - plain JSON values
        """Send a command and return the answer."""
        assert self._process.stdin is not None  # both are pipes
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker ended at {command!r} with status {self._process.wait()}; see above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@contextmanager
def versions(commit: str) -> Iterator[tuple[Version, Version]]:
    """Start both versions."""
    with ExitStack() as stack:
        before = Version(stack.enter_context(checkout(commit, "packages")))
        stack.callback(before.close)
        now = Version(ROOT)
        stack.callback(now.close)
        yield before, now


def per(answer: dict[str, Any], unit: str) -> float:
    """Return microseconds per decision or seat's day."""
    return float(1e6 * answer["seconds"] / answer[unit])


def batches(commit: str, seats: int, days: int, rounds: int) -> dict[str, Any]:
    """Decide the same rounds: one by one before, one by one now, and all seats at once."""
    with versions(commit) as (before, now):
        recorded = [version("record", seats=seats, days=days) for version in (before, now)]
        if recorded[0] != recorded[1]:
            raise RuntimeError(f"the versions do not play the same worlds: {recorded[0]} before, {recorded[1]} now")
        now("together")
        rows = []
        for number in range(rounds):
            first = 8 * number % seats
            one, single = (version("alone", first=first, last=first + 8) for version in (before, now))
            many = now("together")
            built = 1e6 * many["built"] / many["decisions"]
            rows.append((per(one, "decisions"), per(single, "decisions"), per(many, "decisions"), built))
    names = ("before", "alone", "together", "built")
    times = {name: statistics.median(row[index] for row in rows) for index, name in enumerate(names)}
    return times | {
        "ratio": statistics.median(row[0] / row[2] for row in rows),
        "ratio_alone": statistics.median(row[0] / row[1] for row in rows),
    }


def live(commit: str, seeds: list[int], days: int) -> dict[str, Any]:
    """Play the same worlds with both versions."""
    with versions(commit) as (before, now):
        for version in (before, now):
            version("live", seed=1, days=6)
        rows = [
            [per(version("live", seed=seed, days=days), "seat_days") for version in (before, now)] for seed in seeds
        ]
    return {
        "before": statistics.median(row[0] for row in rows),
        "now": statistics.median(row[1] for row in rows),
        "ratio": statistics.median(row[0] / row[1] for row in rows),
    }


def features(commit: str, worlds: int, days: int, rounds: int) -> dict[str, Any]:
    """Make the arrays of the same records, which the earlier version wrote, with both versions."""
    with versions(commit) as (before, now), tempfile.TemporaryDirectory() as name:
        folder = str(Path(name) / "history")
        before("play", folder=folder, worlds=worlds, days=days)
        rows = []
        for _ in range(rounds):
            earlier, present = (version("features", folder=folder) for version in (before, now))
            if earlier["decisions"] != present["decisions"]:
                raise RuntimeError(f"{earlier['decisions']} decisions before, {present['decisions']} now")
            base = 1e6 * present["folded"] / present["decisions"]
            rows.append((per(earlier, "decisions"), per(present, "decisions"), base))
    return {
        "before": 1e6 / min(row[0] for row in rows),
        "now": 1e6 / min(row[1] for row in rows),
        "base": min(row[2] for row in rows),
        "ratio": statistics.median(row[0] / row[1] for row in rows),
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the commits to compare with."""
    parser.add_argument("--before", default=BEFORE, help="commit whose policy to compare with (default: %(default)s)")
    parser.add_argument(
        "--before-arrays", default=BEFORE_ARRAYS, help="commit whose arrays to compare with (default: %(default)s)"
    )


def main() -> int:
    """Measure, and compare with the goals."""
    restart_with_fixed_hashing()
    seeds = range(2, 5) if "--quick" in sys.argv else range(2, 8)
    bench = Benchmark("policy", __doc__ or "", seeds=seeds, add_options=add_options)
    quick, commit = bench.quick, bench.options.before
    size = {"seats": 16, "days": 5, "rounds": 2} if quick else {"seats": 64, "days": 10, "rounds": 5}
    made = bench.unit("batches", batches, commit=commit, **size)
    played = bench.unit("live", live, commit=commit, seeds=list(bench.seeds), days=6 if quick else 10)
    arrays = bench.options.before_arrays
    read = bench.unit("arrays", features, commit=arrays, worlds=1 if quick else 4, days=8 if quick else 25, rounds=3)
    worlds, days, repeats = (8, 4, 1) if quick else (32, 6, 3)
    lockstep = {"commit": commit, "worlds": worlds, "seats": 4, "days": days, "rounds": repeats}
    trained = bench.unit("training", training, **lockstep, networks=False)
    explored = bench.unit("training-networks", training, **(lockstep | {"rounds": 1}), networks=True)
    many = f"{size['seats']} seats at once"
    return bench.finish(
        [
            Figure(name="decision before, one factory", value=made["before"], unit="µs CPU"),
            Figure(name="decision now, one factory", value=made["alone"], unit="µs CPU"),
            Figure(name=f"decision, {many}", value=made["together"], unit="µs CPU", note="from columns to actions"),
            Figure(name="columns from live observations", value=made["built"], unit="µs CPU", note="per decision"),
            Figure(name=f"decision, {many}, times faster", value=made["ratio"], unit="x", goal=None if quick else 10.0),
            Figure(
                name="training before, world by world",
                value=trained["before"],
                unit="decisions/s CPU",
                note="the heuristics in both",
            ),
            Figure(name="training now, in lockstep", value=trained["now"], unit="decisions/s CPU"),
            Figure(name="training, times faster", value=trained["ratio"], unit="x", goal=None if quick else 3.0),
            Figure(
                name="share of our policy in training",
                value=100.0 * trained["share"],
                unit="%",
                op="<=",
                goal=None if quick else 40.0,
            ),
            Figure(
                name="training with networks, times faster",
                value=explored["ratio"],
                unit="x",
                note="today's networks are many times larger",
            ),
            Figure(name="share of our policy with networks", value=100.0 * explored["share"], unit="%"),
            Figure(name="live day of the agent before", value=played["before"] / 1e3, unit="ms CPU"),
            Figure(name="live day of the agent now", value=played["now"] / 1e3, unit="ms CPU"),
            Figure(name="live day, times faster", value=played["ratio"], unit="x", goal=1.5),
            Figure(name="recorded decisions to arrays before", value=read["before"], unit="1/s CPU"),
            Figure(name="recorded decisions to arrays now", value=read["now"], unit="1/s CPU"),
            Figure(name="recorded decisions to arrays, times faster", value=read["ratio"], unit="x", goal=1.0),
            Figure(
                name="base of a recorded decision", value=read["base"], unit="µs CPU", note="not in the arrays before"
            ),
        ],
        before=commit,
        before_arrays=arrays,
    )


if __name__ == "__main__":
    sys.exit(main())
