"""Pin what the project computes, to the last bit: worlds that are played, and weights that are trained.

``worlds --out FILE`` plays 72 official worlds on the fast engine; ``trainers --out FILE`` makes a tiny run of every
trainer. Both write a JSON array with one line per case, so that two files can be compared line by line. What is
written names no module and no class of the project: cases, agents and trainers have labels of their own, factories
are numbered by seat, and tensors go by their names inside a network. ``--check FILE`` compares with an earlier file
and ends with status 1 where a case differs; with ``--before COMMIT`` worlds that differ are played again by both
versions, and the first decision that differs is named (`benchmarks.golden.flipped`). ``--baseline-cpu`` plays with
numpy's baseline instructions alone: no decision may depend on the vector instructions of the machine.

Runs repeat under ``PYTHONHASHSEED=0`` alone (the script restarts itself with it) and were made with one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.golden.fingerprints import Row, report
from benchmarks.golden.flipped import flipped
from benchmarks.golden.trainers import TRAINERS, run_trainers
from benchmarks.golden.worlds import run_worlds
from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write a JSON array with one line per row."""
    path.write_text("[\n" + ",\n".join(json.dumps(row, sort_keys=True) for row in rows) + "\n]\n")


def differences(rows: Sequence[Row], path: Path) -> list[str]:
    """Tell where rows differ from those of an earlier file; rows that only the file has are not missed."""
    key = "case" if "case" in rows[0] else "trainer"
    known = {row[key]: row for row in json.loads(path.read_text())}
    lines = []
    for row in rows:
        now = json.loads(json.dumps(row))
        before = known.get(row[key], {})
        different = [name for name in sorted(now.keys() | before.keys()) if now.get(name) != before.get(name)]
        if different:
            lines.append(f"{key} {row[key]} differs in {', '.join(different)}")
    return lines


def restart_with_baseline_cpu() -> None:
    """Start this command again with all of numpy's optional vector instructions off, unless they are."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    optional = [name for name in __cpu_dispatch__ if __cpu_features__[name]]
    if optional and "NPY_DISABLE_CPU_FEATURES" not in os.environ:
        os.environ["NPY_DISABLE_CPU_FEATURES"] = " ".join(optional)
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.golden", *sys.argv[1:]])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a sub-command; the return value is the exit status."""
    parser = argparse.ArgumentParser(description="Pin what the project computes, to the last bit.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, summary in (("worlds", "play worlds"), ("trainers", "make tiny runs of all trainers")):
        command = commands.add_parser(name, help=summary)
        command.add_argument("--out", type=Path, help="file to write")
        command.add_argument("--check", type=Path, help="earlier file to compare with; status 1 where it differs")
        command.add_argument("--quiet", action="store_true", help="show no progress")
        if name == "worlds":
            command.add_argument(
                "--before", metavar="COMMIT", help="name the first decision that differs from a commit's"
            )
            command.add_argument("--baseline-cpu", action="store_true", help="numpy's baseline instructions alone")
            command.add_argument("--only", type=int, default=1, metavar="N", help="every Nth world")
            command.add_argument("--first", type=int, default=None, metavar="K", help="K worlds at most")
        else:
            command.add_argument("--part", action="append", choices=list(TRAINERS), help="these alone; may be repeated")
    options = parser.parse_args(arguments)
    if options.command == "worlds" and options.baseline_cpu:
        restart_with_baseline_cpu()
    rows = run_worlds(options) if options.command == "worlds" else run_trainers(options)
    if options.out is not None:
        write_rows(rows, options.out)
    different = [] if options.check is None else differences(rows, options.check)
    for line in different:
        print(line)
    if different and options.command == "worlds" and options.before is not None:
        cases = [int(line.split()[1]) for line in different]
        for case, text in flipped(cases, options.before).items():
            print(f"case {case} differs {text}")
    report(options, f"{len(rows)} cases, {len(different)} differ, {time.process_time():.1f} CPU s in all")
    return 1 if different else 0


if __name__ == "__main__":
    restart_with_fixed_hashing()
    sys.exit(main())
