"""The first decision at which a golden world parts from the one that an earlier commit plays.

The digests of a world tell that something differs. Both versions play the world again here, and their turns are
compared one by one: the first that differs is, as a rule, a tie between two offers that fell the other way.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Final

from benchmarks.earlier import ROOT, checkout, environment

_TURNS: Final = """
import json, sys, tempfile
from pathlib import Path
from benchmarks.golden import worlds
from benchmarks.golden.fingerprints import text_of
from litaagent_std.world.reproducible.silence import silence

case, lines, story = worlds.cases()[int(sys.argv[1])], [], worlds.Story()
story.turns.add = lambda *values: lines.append("|".join(map(text_of, values)))
story.days.add = lambda kind, *values: lines.append(f"day {values[0]}") if kind == "start" else None
with tempfile.TemporaryDirectory() as folder, silence():
    setup, _ = worlds.make_setup(case, Path(folder))
    worlds.run_world(setup, observers=[story], inventory=case.inventory, defaults=case.defaults)
print(json.dumps(lines))
"""


def turns(case: int, root: Path) -> list[str]:
    """Play a case with the code of a folder, and return its turns with a line before each day's."""
    command = [sys.executable, "-c", _TURNS, str(case)]
    own = environment(root, root)
    done = subprocess.run(command, cwd=root, env=own, stdout=subprocess.PIPE, text=True, check=True)
    lines: list[str] = json.loads(done.stdout.splitlines()[-1])
    return lines


def first_difference(here: Sequence[str], there: Sequence[str]) -> str:
    """Describe the first turn that differs.

    Args:
        here: Turns of the present code, a line ``day N`` before those of a day.
        there: Turns of the earlier one.
    """
    day = "?"
    for mine, theirs in zip_longest(here, there):
        if mine == theirs:
            day = mine.removeprefix("day ") if mine.startswith("day ") else day
            continue
        return f"first on day {day}: {_described(mine)}; before: {_described(theirs)}"
    return "in no turn: the decisions are the same"


def _described(line: str | None) -> str:
    if line is None or line.startswith("day "):
        return "no further turn on that day"
    negotiation, round_, seat, response, quantity, time, price = line.split(",")
    offer = "no offer" if quantity == "-1" else f"offer of {quantity} units for day {time} at {price}"
    return f"negotiation {negotiation}, round {round_}, seat {seat}: response {response}, {offer}"


def flipped(cases: Sequence[int], commit: str) -> dict[int, str]:
    """Return for each case the first decision at which it parts from an earlier commit."""
    with checkout(commit, "packages", "benchmarks") as folder:
        return {case: first_difference(turns(case, ROOT), turns(case, folder)) for case in cases}
