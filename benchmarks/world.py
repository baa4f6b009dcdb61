"""CPU seconds per simulated day of the fast world, beside scml's own, on the same configurations.

All variants of a configuration run in the same process, one after the other, and an observer receives every event of
the fast world, as a recorder would. The variants of scml are its own, unmodified class: with negotiation logs, which
is the usual way to collect data from it; as a tournament constructs it; and with every option that makes it faster.
"""

import gc
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from statistics import median
from types import FrameType
from typing import Any

import numpy as np
import psutil

from benchmarks.harness import Benchmark, Figure
from litaagent_std.tournament.competitors.registry import YEARS, finalists
from litaagent_std.world.events import DayEnd, WorldObserver
from litaagent_std.world.native.registry import Defaults
from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing
from litaagent_std.world.run import run_world
from litaagent_std.world.scml.engine import plain_scml_world
from litaagent_std.world.setup import WorldSetup, official_setup

LOGGED, DEFAULT, FASTEST = "scml, negotiation logs", "scml, default", "scml, fastest options"
GOALS: dict[str, dict[str, float | None]] = {
    "official mix": {LOGGED: 30.0, DEFAULT: 12.0, FASTEST: 5.0},
    "finalists only": {LOGGED: 15.0, DEFAULT: 4.0, FASTEST: 2.0},
    "default agents": {DEFAULT: 100.0, FASTEST: None},  # native agents; the second figure has no goal
}
SHARE_GOAL = 25.0
REPEATS = 5
"""Runs of the fast world, whose median counts: a single one is too short to be measured well."""


class Listener(WorldObserver):
    """Counts every event once and keeps the latest, as cheap as an observer can be."""

    def __init__(self) -> None:
        self.n_events = 0
        self.clock: list[tuple[int, float]] = []  # number of events and CPU seconds at the end of each day

    def count(self, *event: object) -> None:
        """Count an event of any kind."""
        self.n_events += 1
        self.latest = event

    on_world_start = on_day_start = on_negotiation_start = on_turn = on_decision = count  # type: ignore[assignment]
    on_negotiation_end = on_contract = on_settlement = on_bankruptcy = on_error = on_world_end = count  # type: ignore[assignment]

    def on_day_end(self, event: DayEnd) -> None:
        """Record the CPU time at the end of the day."""
        self.count(event)
        self.clock.append((self.n_events, time.process_time()))


def make_setup(scenario: str, seed: int, days: int) -> WorldSetup:
    """Return the world of a scenario; 13 to 15 factories are typical of the league."""
    if scenario == "default agents":
        return official_setup(seed, n_days=days)
    fill = "competitors" if scenario == "finalists only" else "defaults"
    competitors = [path for year in YEARS for path in finalists(year)]
    return official_setup(seed, competitors, n_days=days, fill=fill)


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of the work; what agents print is dropped."""
    gc.collect()
    started = time.process_time()
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        work()
    return time.process_time() - started


def run_scml(setup: WorldSetup, variant: str) -> None:
    """Run scml's own world."""
    random.seed(setup.seed)
    np.random.seed(setup.seed % 2**32)
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {}
        if variant == LOGGED:
            options = {
                "fast": False,
                "compact": False,
                "no_logs": False,
                "log_negotiations": True,
                "log_folder": folder,
            }
        elif variant == FASTEST:
            options = {"sync_calls": True, "saved_details_level": 0}
        world = plain_scml_world(setup, **options)
        if variant == FASTEST:
            world.save_negotiations = False
        world.run()


def compare(scenario: str, seed: int, days: int) -> dict[str, Any]:
    """Measure the milliseconds per day of every variant on one configuration."""
    setup = make_setup(scenario, seed, days)
    defaults: Defaults = "native" if scenario == "default agents" else "hosted"
    cpu_seconds(lambda: run_world(make_setup(scenario, seed, 6), defaults=defaults))  # imports and caches
    run = partial(run_world, setup, defaults=defaults)
    seconds = {"fast": median(cpu_seconds(lambda: run(observers=[Listener()])) for _ in range(REPEATS))}
    for variant in reversed(GOALS[scenario]):
        seconds[variant] = cpu_seconds(lambda variant=variant: run_scml(setup, variant))
    return {"seats": setup.n_seats, **{name: 1000 * value / days for name, value in seconds.items()}}


def profile(seed: int, days: int) -> dict[str, Any]:
    """Sample the stack of a finalists' world and count whose code was running."""
    setup = make_setup("finalists only", seed, days)
    cpu_seconds(lambda: run_world(make_setup("finalists only", seed, 6)))
    samples: Counter[str] = Counter()

    def sample(_: int, frame: FrameType | None) -> None:
        samples[_owner(frame)] += 1

    previous = signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, 0.002, 0.002)
    try:
        cpu_seconds(lambda: run_world(setup, observers=[Listener()]))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, previous)
    return dict(samples)


def _owner(frame: FrameType | None) -> str:
    """Return whose code runs, by the innermost frame of the agents, of ours or of the framework."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith(("scml_agents.", "scml.std.agents", "scml.oneshot.agents")):
            return "agents"
        if name.startswith("litaagent_std."):
            part = name.rpartition(".")[2]
            return f"world: {'interface' if part in {'agenda', 'awi', 'contracts', 'proxies', 'ufun'} else 'engine'}"
        if name.startswith(("negmas", "scml.")):
            return "world: negmas and scml classes under agents"
        if name == __name__ and frame.f_code.co_name in {"count", "on_day_end"}:
            return "world: observation"
        frame = frame.f_back
    return "world: engine"


def flatness(seed: int, days: int) -> dict[str, Any]:
    """Measure the CPU time per event early and late in a long world of default agents."""
    listener = Listener()
    cpu_seconds(lambda: run_world(make_setup("default agents", seed, 6)))
    cpu_seconds(lambda: run_world(make_setup("default agents", seed, days), observers=[listener]))
    quarter = len(listener.clock) // 4

    def per_event(first: int, last: int) -> float:
        (events, seconds), (more_events, more_seconds) = listener.clock[first], listener.clock[last]
        return (more_seconds - seconds) / (more_events - events)

    return {"early": per_event(0, quarter), "late": per_event(-1 - quarter, -1)}


def memory(seed: int, days: int, worlds: int) -> dict[str, Any]:
    """Measure the resident megabytes after three worlds and after many more in one process."""
    process = psutil.Process()
    sizes = []
    for _ in range(3 + worlds):
        cpu_seconds(lambda: run_world(make_setup("official mix", seed, days), observers=[Listener()]))
        gc.collect()
        sizes.append(process.memory_info().rss / 2**20)
    return {"before": sizes[2], "after": sizes[-1]}


def measure(kind: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401  # plain JSON values
    """Measure one unit of the benchmark."""
    measurements: dict[str, Callable[..., dict[str, Any]]] = {
        "compare": compare,
        "profile": profile,
        "flatness": flatness,
        "memory": memory,
    }
    return measurements[kind](**arguments)


def plan(quick: bool, seeds: list[int]) -> dict[str, dict[str, Any]]:
    """Return the units: their keys and arguments."""
    days = 8 if quick else 30
    units: dict[str, dict[str, Any]] = {}
    for scenario in GOALS:
        for seed in seeds:
            key = f"{scenario.replace(' ', '-')}-{seed}"
            long = scenario == "default agents"  # the first days are the most expensive ones
            units[key] = {"kind": "compare", "scenario": scenario, "seed": seed, "days": 30 if long else days}
    for seed in seeds:
        units[f"profile-{seed}"] = {"kind": "profile", "seed": seed, "days": 12 if quick else 60}
    units["flatness"] = {"kind": "flatness", "seed": seeds[0], "days": 40 if quick else 200}
    units["memory"] = {"kind": "memory", "seed": seeds[0], "days": 8 if quick else 50, "worlds": 4 if quick else 20}
    return units


def report(units: dict[str, dict[str, Any]], results: dict[str, Any]) -> list[Figure]:
    """Return the figures beside the goals: medians over the configurations of ratios within each."""
    figures = []
    for scenario, goals in GOALS.items():
        configurations = [results[key] for key, unit in units.items() if unit.get("scenario") == scenario]
        fast = median(times["fast"] for times in configurations)
        for variant, goal in goals.items():
            ratios = [times[variant] / times["fast"] for times in configurations]
            note = (
                f"{fast:.1f} ms/day beside {median(times[variant] for times in configurations):.0f}; {_spread(ratios)}"
            )
            name = f"{scenario}: {variant} / fast"
            figures.append(Figure(name=name, value=median(ratios), unit="x", op=">=", goal=goal, note=note))
    samples: Counter[str] = Counter()
    for key, unit in units.items():
        if unit["kind"] == "profile":
            samples.update(results[key])
    total = samples.total()
    ours = 100 * sum(samples[f"world: {part}"] for part in ("engine", "interface", "observation")) / total
    parts = ", ".join(f"{name.removeprefix('world: ')} {100 * n / total:.0f} %" for name, n in samples.most_common())
    share = "finalists only: CPU time of engine, interface and observation"
    figures.append(Figure(name=share, value=ours, unit="%", op="<", goal=SHARE_GOAL, note=parts))
    flat = results["flatness"]
    late = "default agents: CPU time per event, last quarter of the days / first"
    figures.append(Figure(name=late, value=flat["late"] / flat["early"], unit="x", op="<=", goal=1.15))
    rss = results["memory"]
    note = f"{rss['before']:.0f} MB after 3 worlds, {rss['after']:.0f} MB after {units['memory']['worlds']} more"
    growth = rss["after"] / rss["before"]
    figures.append(
        Figure(name="memory after more worlds in the process", value=growth, unit="x", op="<=", goal=1.05, note=note)
    )
    return figures


def _spread(ratios: list[float]) -> str:
    return f"{min(ratios):.1f}–{max(ratios):.1f} over {len(ratios)} configurations"


def main() -> int:
    """Run the benchmark."""
    bench = Benchmark("world", "The fast world beside scml's own.", seeds=range(1))
    bench.seeds = list(range(1 if bench.quick else 6))
    units = plan(bench.quick, bench.seeds)
    return bench.finish(report(units, bench.units(measure, units)))


if __name__ == "__main__":
    restart_with_fixed_hashing()
    sys.exit(main())
