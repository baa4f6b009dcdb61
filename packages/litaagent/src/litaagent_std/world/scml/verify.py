"""Run both engines on official configurations and compare their traces event by event.

``python -m litaagent_std.world.scml.verify`` seats every Standard agent of 2024–2026 in turn, in the official mix and
among competitors only, under both rules of inventory. Every offer, response, contract, settlement, balance, trading
price and score must be the same to the last bit. Finished configurations are kept in a file together with a digest of
the code: a killed run resumes, and after a change of the code everything runs again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from apexrl.configuration import configuration, from_command_line
from apexrl.execution import RunOptions, Task, make_executor
from apexrl.runs.digest import digest_code, digest_config
from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing
from litaagent_std.world.reproducible.silence import silence
from litaagent_std.world.scml.trace import Trace, Window, first_difference

if TYPE_CHECKING:
    from litaagent_std.world.events import WorldEnd
    from litaagent_std.world.native.registry import Defaults
    from litaagent_std.world.rules.settlement import Inventory
    from litaagent_std.world.setup import Fill, WorldSetup

__all__ = ["Comparison", "Plan", "VerifyConfig", "compare", "main", "plan"]

_MIN_SEATS: Final = 5
_SECONDS_PER_CONFIGURATION: Final = 7200.0

Engine = Literal["scml", "fast"]
_ENGINES: Final[tuple[Engine, ...]] = ("scml", "fast")


@configuration
class VerifyConfig:
    """Compare the fast world with scml's own, event by event."""

    configs: int = 200
    """Configurations to run, at about half a minute of CPU time each."""

    seed: int = 0
    """Seed of the first configuration; the others follow."""

    workers: int = 2
    """Processes; 1 runs everything in this one."""

    quick: bool = False
    """Run 12 short worlds of 12 days only."""

    days: int | None = None
    """Days of every world; if not given, drawn from the official range (50 to 200)."""

    results: Path = Path("runs/verify_world.jsonl")
    """File of finished configurations."""

    native: bool = False
    """Let native agents play the default agents in the fast world; worlds of default agents only replace worlds of
    competitors only."""

    agents: tuple[str, ...] = ()
    """Parts of class paths: seat only agents whose path contains one of them (default: all 35)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One configuration to verify, small enough to send to a process.

    Attributes:
        seed: Seed of the configuration and of the world.
        competitors: Class paths to seat.
        fill: Who gets the other seats.
        inventory: The rule of inventory.
        days: Days, or None for the official draw.
        defaults: Who plays the default agents in the fast world.
    """

    seed: int
    competitors: tuple[str, ...]
    fill: Fill
    inventory: Inventory
    days: int | None
    defaults: Defaults = "hosted"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of one configuration.

    Attributes:
        key: Names the configuration and the code that ran it.
        equal: Whether both traces are the same.
        seated: Class paths of all agents.
        days: Days of the world.
        events: Events of the reference.
        difference: The first diverging event in both traces; empty if they are equal.
        limit_fired: Whether a wall-clock limit fired; such a world does not count.
        errors: Exceptions of agents in the reference.
        seconds_scml: CPU seconds of the reference.
        seconds_fast: CPU seconds of the fast engine.
    """

    key: str
    equal: bool
    seated: tuple[str, ...]
    days: int
    events: int
    difference: str
    limit_fired: bool
    errors: int
    seconds_scml: float
    seconds_fast: float


def plan(config: VerifyConfig) -> list[Plan]:
    """Plan the configurations: agents are seated in turn, and every fourth world is of competitors only."""
    from litaagent_std.world.scml.published import all_paths

    chosen = [path for path in all_paths() if not config.agents or any(part in path for part in config.agents)]
    if not chosen:
        raise ValueError(f"no agent's class path contains any of {config.agents}; `lita competitors` lists them")
    plans, turn = [], 0
    for index in range(12 if config.quick else config.configs):
        only = index % 4 == 3
        n_seats = (0 if config.native else 12) if only else 2 + index % 3
        seated = tuple(chosen[(turn + k) % len(chosen)] for k in range(min(n_seats, len(chosen))))
        turn += len(seated)
        fill: Fill = "competitors" if only and not config.native else "defaults"
        defaults: Defaults = "native" if config.native else "hosted"
        inventory: Inventory = "depleting" if index % 5 == 4 else "as_shipped"
        days = 12 if config.quick else config.days
        plans.append(Plan(config.seed + index, seated, fill, inventory, days, defaults))
    return plans


def compare(case: Plan) -> Comparison:
    """Run one configuration on both engines; if they differ, run it again to show the first difference."""
    from litaagent_std.world.setup import OFFICIAL_DAYS, official_setup

    setup = official_setup(
        case.seed,
        case.competitors,
        fill=case.fill,
        n_days=OFFICIAL_DAYS if case.days is None else case.days,
        n_competitors=min(4, len(case.competitors)),
    )
    traces, seconds = {}, {}
    for engine in _ENGINES:
        traces[engine] = Trace()
        started = time.process_time()
        with silence():
            end = _run_world(case, setup, engine, traces[engine])
        seconds[engine] = time.process_time() - started
    position = first_difference(traces["scml"], traces["fast"])
    difference = ""
    if position is not None:
        windows = {engine: Window(position) for engine in _ENGINES}
        for engine, window in windows.items():
            with silence():
                _run_world(case, setup, engine, window)
        shown = [f"{engine}:\n    " + "\n    ".join(window.texts) for engine, window in windows.items()]
        difference = f"event {position} of {len(traces['scml'].fingerprints)}\n  " + "\n  ".join(shown)
    return Comparison(
        key=_key(case),
        equal=position is None,
        seated=tuple(agent.path for agent in setup.agents),
        days=setup.n_days,
        events=len(traces["scml"].fingerprints),
        difference=difference,
        limit_fired=end.limit_fired,
        errors=sum(end.n_errors.values()),
        seconds_scml=seconds["scml"],
        seconds_fast=seconds["fast"],
    )


def _run_world(case: Plan, setup: WorldSetup, engine: Engine, trace: Trace) -> WorldEnd:
    if engine == "scml":
        from litaagent_std.world.scml.engine import make_scml_world

        return make_scml_world(setup, [trace], inventory=case.inventory).run_to_end()
    from litaagent_std.world.fast.engine import FastWorld

    return FastWorld(setup, [trace], inventory=case.inventory, defaults=case.defaults).run()


@cache
def _code_digest() -> str:
    """Return the digest of the world's code and of the libraries that it is compared with."""
    code = digest_code(Path(__file__).parents[1].rglob("*.py"))
    versions = {name: metadata.version(name) for name in ("scml", "negmas", "scml-agents", "numpy")}
    return digest_config({"code": code, "versions": versions})


def _key(case: Plan) -> str:
    text = json.dumps(asdict(case), sort_keys=True)
    return hashlib.sha256(f"{_code_digest()}/{text}".encode()).hexdigest()


def _read(path: Path) -> dict[str, Comparison]:
    if not path.exists():
        return {}
    comparisons = {}
    for line in path.read_text().splitlines():
        try:
            data = json.loads(line)
        except json.JSONDecodeError:
            continue  # a line that a killed run did not finish
        comparisons[data["key"]] = Comparison(**{**data, "seated": tuple(data["seated"])})
    return comparisons


def _run(plans: Sequence[Plan], config: VerifyConfig) -> list[Comparison]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    known = _read(config.results)
    results = [known[_key(case)] for case in plans if _key(case) in known]
    todo = [Task(compare, (case,), label=f"seed {case.seed}") for case in plans if _key(case) not in known]
    config.results.parent.mkdir(parents=True, exist_ok=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    options = RunOptions(ordered=False, retries=1, time_limit=_SECONDS_PER_CONFIGURATION, on_failure="raise")
    with (
        Progress(*columns, TimeRemainingColumn()) as progress,
        make_executor("processes" if config.workers > 1 else "inline", workers=config.workers) as executor,
        config.results.open("a") as file,
    ):
        bar = progress.add_task("worlds in both engines", total=len(plans), completed=len(results))
        for done in executor.run(todo, options):
            result = done.unwrap()
            results.append(result)
            file.write(f"\n{json.dumps(asdict(result))}")  # ends a line that a killed run left unfinished
            file.flush()
            progress.advance(bar)
            if not result.equal and not result.limit_fired:
                progress.console.print(f"different: {result.difference}", markup=False, highlight=False)
    return results


def _report(results: Sequence[Comparison], config: VerifyConfig) -> int:
    counted = [result for result in results if not result.limit_fired]
    different = [result for result in counted if not result.equal]
    seats = Counter(path for result in counted for path in result.seated)
    few = [path for path in _must_sit(config) if seats[path] < _MIN_SEATS]
    scml, fast = sum(result.seconds_scml for result in counted), sum(result.seconds_fast for result in counted)
    print(
        f"{len(counted)} configurations, {sum(result.days for result in counted)} days, "
        f"{sum(result.events for result in counted)} events compared, "
        f"{sum(result.errors for result in counted)} exceptions of agents, "
        f"{len(results) - len(counted)} left out because a wall-clock limit fired"
    )
    print(f"identical: {len(counted) - len(different)}, different: {len(different)}")
    print(f"CPU seconds, every event observed: scml {scml:.0f}, fast {fast:.0f}")
    if few and not config.quick:
        print(f"seated fewer than {_MIN_SEATS} times: {', '.join(path.rpartition('.')[2] for path in few)}")
    for result in different[:10]:
        print(f"\n{result.difference}")
    return 1 if different or not counted or (few and not config.quick) else 0


def _must_sit(config: VerifyConfig) -> tuple[str, ...]:
    from litaagent_std.world.scml.published import all_paths

    return () if config.agents else all_paths()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison and return the exit status: 0 if everything was identical."""
    config = from_command_line(
        VerifyConfig, list(sys.argv[1:] if arguments is None else arguments), program="make verify-world"
    )
    os.environ["PYTHONHASHSEED"] = "0"
    return _report(_run(plan(config), config), config)


if __name__ == "__main__":
    restart_with_fixed_hashing()
    sys.exit(main())
