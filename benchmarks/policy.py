"""How fast the policy decides: one factory in play and 64 factories at once, beside an earlier version of the code.

Rounds are recorded in worlds with our agent at every level, then decided again: by `Brain` factory by factory, as in
play, and by `BatchBrain` for all of them at once, from columns; building the columns is timed apart. ``--before PATH``
names a checkout of an earlier version, which decides the same rounds in the same run, factory by factory.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from litaagent_std.world.reproducible.silence import silence

RESULTS: Final = Path(__file__).parent / "results" / "policy.json"
_AGENT: Final = "litaagent_std.agents.hrl.LitaAgentHRL"
_ROOT: Final = Path(__file__).parents[1]
_SOURCES: Final = ("packages/litaagent/src", "packages/apexrl/src", "packages/hmasd/src")

Day = tuple[Any, list[list[Any]]]
"""An observation, and the threads of each of the day's rounds."""


def record(n_seats: int, n_days: int) -> list[list[Day]]:
    """Play worlds, and return the days of our factories."""
    from litaagent_std.policy.brain import Brain
    from litaagent_std.world.fast.engine import FastWorld
    from litaagent_std.world.setup import AgentSpec, official_setup

    seats: dict[int, list[Day]] = {}
    start_day, respond = Brain.start_day, Brain.respond

    def on_day(brain: Any, obs: Any) -> None:  # noqa: ANN401 - a method
        start_day(brain, obs)
        seats.setdefault(id(brain), []).append((obs, []))

    def on_round(brain: Any, threads: Any) -> Any:  # noqa: ANN401 - a method
        if threads:
            seats[id(brain)][-1][1].append(list(threads))
        return respond(brain, threads)

    Brain.start_day, Brain.respond = on_day, on_round  # type: ignore[method-assign]
    kept: list[list[Day]] = []
    worlds = []  # kept, so that no brain's id is used twice
    try:
        seed = 1
        while len(seats) < n_seats:
            setup = official_setup(seed, n_days=n_days, n_levels=2 + seed % 3)
            first = {factory.level: seat for seat, factory in reversed(list(enumerate(setup.factories)))}
            spec = AgentSpec(_AGENT, competitor=True)
            world = FastWorld(setup.with_agents(dict.fromkeys(first.values(), spec)), [], defaults="native")
            with silence():
                world.run()
            worlds.append(world)
            seed += 1
        kept = list(seats.values())[:n_seats]
    finally:
        Brain.start_day, Brain.respond = start_day, respond  # type: ignore[method-assign]
    return kept


def alone(seats: Sequence[Sequence[Day]]) -> dict[str, float]:
    """Decide all rounds factory by factory; CPU seconds and number of decisions."""
    from litaagent_std.policy.brain import Brain

    decisions, began = 0, time.process_time()
    for days in seats:
        brain = Brain()
        for obs, rounds in days:
            brain.start_day(obs)
            for threads in rounds:
                decisions += len(brain.respond(threads))
            brain.end_day(obs.calendar)
    return {"seconds": time.process_time() - began, "decisions": decisions}


def together(seats: Sequence[Sequence[Day]]) -> dict[str, float]:
    """Decide all rounds, those of all factories at once; CPU seconds with and without building the columns."""
    import numpy as np

    from litaagent_std.policy.brain import BatchBrain
    from litaagent_std.policy.columns import CalendarBatch, ObservationBatch, live_threads
    from litaagent_std.policy.layers import Layers
    from litaagent_std.policy.parameters import Parameters
    from litaagent_std.policy.partners.types import shipped_types

    decisions, seconds, built = 0, 0.0, 0.0
    brain = None
    for day in range(min(map(len, seats))):
        began = time.process_time()
        observations = [days[day][0] for days in seats]
        obs = ObservationBatch.of(observations)
        steps = []
        for step in range(max(len(days[day][1]) for days in seats)):
            asked = [index for index, days in enumerate(seats) if step < len(days[day][1])]
            rounds = [seats[index][day][1][step] for index in asked]
            rows = [thread for threads in rounds for thread in threads]
            row_seats = [place for place, threads in enumerate(rounds) for _ in threads]
            threads = live_threads(rows, [observations[index] for index in asked], row_seats)
            steps.append((threads, CalendarBatch.of([own[0].calendar for own in rounds]), np.array(asked)))
        built += time.process_time() - began
        began = time.process_time()
        if brain is None:
            brain = BatchBrain(obs, [Parameters()] * len(seats), Layers(), types=shipped_types())
        brain.start_day(obs)
        for threads, calendar, asked_seats in steps:
            brain.decide(threads, calendar, asked_seats)
            decisions += len(threads)
        brain.memory.note_due(obs.calendar.bought[:, 0], obs.calendar.sold[:, 0])
        seconds += time.process_time() - began
    return {"seconds": seconds, "built": built, "decisions": decisions}


def _measure(way: str, file: Path, root: Path) -> dict[str, float]:
    """Measure one way of deciding in a process of its own, with the code of a checkout; the best of three."""
    paths = [str(root / source) for source in _SOURCES] + [str(_ROOT)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    script = (
        f"import json, pickle; from benchmarks import policy; seats = pickle.load(open({str(file)!r}, 'rb')); "
        f"print(json.dumps(min((policy.{way}(seats) for _ in range(3)), key=lambda made: made['seconds'])))"
    )
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    made: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the return value is the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="checkout of an earlier version to compare with")
    parser.add_argument("--seats", type=int, default=64)
    parser.add_argument("--days", type=int, default=8)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rounds.pickle"
        file.write_bytes(pickle.dumps(record(options.seats, options.days)))
        results = {name: _measure(name, file, _ROOT) for name in ("alone", "together")}
        if options.before is not None:
            results["before"] = _measure("alone", file, options.before)
    for made in results.values():
        made["microseconds"] = round(1e6 * made["seconds"] / made["decisions"], 1)
    if "before" in results:
        before = results["before"]["microseconds"]
        results["ratios"] = {name: round(before / results[name]["microseconds"], 2) for name in ("alone", "together")}
    options.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
