"""One version of the policy under measurement: a process that takes commands as lines of JSON and answers likewise.

`benchmarks.policy` starts one with the code of an earlier commit and one with the present code, and lets them take
turns, so that both are measured under the same load. Only what both versions have is used. Both play the same worlds
to get their rounds, so that nothing is handed from one to the other but numbers.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.policy.brain import Brain
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.reproducible.silence import silence
from litaagent_std.world.setup import AgentSpec, official_setup

AGENT = "litaagent_std.agents.hrl.LitaAgentHRL"
CALLBACKS = (
    *("init", "before_step", "step", "first_proposals", "counter_all", "propose", "respond"),
    *("on_negotiation_success", "on_negotiation_failure"),
)

Day = tuple[Any, list[list[Any]]]
"""An observation, and the threads of each of the day's rounds."""


def make_world(seed: int, days: int) -> tuple[FastWorld, int]:
    """Make a world with our agent at every level, and return it with their number."""
    setup = official_setup(seed, n_days=days, n_levels=2 + seed % 3)
    first = {factory.level: seat for seat, factory in reversed(list(enumerate(setup.factories)))}
    spec = AgentSpec(AGENT, competitor=True)
    return FastWorld(setup.with_agents(dict.fromkeys(first.values(), spec)), [], defaults="native"), len(first)


class Worker:
    """The commands; each returns plain values."""

    def __init__(self) -> None:
        self.seats: list[list[Day]] = []
        self._spent, self._inside = 0.0, False
        self._wrapped: list[str] = []

    def record(self, seats: int, days: int) -> dict[str, Any]:
        """Play worlds, and keep the days of our factories."""
        kept: dict[int, list[Day]] = {}
        methods = {name: getattr(Brain, name) for name in ("start_day", "propose", "respond")}

        def on_day(brain: Any, obs: Any) -> None:  # noqa: ANN401 - a method
            methods["start_day"](brain, obs)
            kept.setdefault(id(brain), []).append((obs, []))

        def on_round(name: str) -> Callable[..., Any]:
            def asked(brain: Any, threads: Any) -> Any:  # noqa: ANN401 - a method
                rounds = kept[id(brain)][-1][1]
                if threads and (not rounds or rounds[-1] != list(threads)):  # a proposal may be made by `respond`
                    rounds.append(list(threads))
                return methods[name](brain, threads)

            return asked

        for name in methods:
            setattr(Brain, name, on_day if name == "start_day" else on_round(name))
        worlds = []  # kept, so that no brain's id is used twice
        try:
            while len(kept) < seats:
                world, _ = make_world(len(worlds) + 1, days)
                with silence():
                    world.run()
                worlds.append(world)
        finally:
            for name, method in methods.items():
                setattr(Brain, name, method)
        self.seats = list(kept.values())[:seats]
        threads = [thread for days_ in self.seats for _, rounds in days_ for own in rounds for thread in own]
        return {"decisions": len(threads), "check": sum(thread.round for thread in threads)}

    def alone(self, first: int, last: int) -> dict[str, float]:
        """Decide the rounds of some seats, factory by factory."""
        decisions, began = 0, time.process_time()
        for days in self.seats[first:last]:
            brain = Brain()
            for obs, rounds in days:
                brain.start_day(obs)
                for threads in rounds:
                    opens = threads[0].offer is None
                    decisions += len(brain.propose(threads) if opens else brain.respond(threads))
                brain.end_day(obs.calendar)
        return {"seconds": time.process_time() - began, "decisions": decisions}

    def together(self) -> dict[str, float]:
        """Decide the rounds of all seats at once, each seat in its own, as in training; until one has no more.

        Building the columns from live observations is timed apart.
        """
        import numpy as np

        from litaagent_std.policy import BatchBrain
        from litaagent_std.policy.columns import CalendarBatch, ObservationBatch, ThreadBatch, live_threads
        from litaagent_std.policy.layers import Layers
        from litaagent_std.policy.parameters import Parameters
        from litaagent_std.policy.partners.types import shipped_types

        plans = [
            [(day, step) for day, (_, rounds) in enumerate(days) for step in range(len(rounds))] for days in self.seats
        ]
        everybody = np.arange(len(self.seats))
        steps = []
        began = time.process_time()
        for number in range(min(map(len, plans))):
            at = [plan[number] for plan in plans]
            new = np.array([seat for seat, (_, step) in enumerate(at) if step == 0], np.int64)
            obs = [self.seats[seat][day][0] for seat, (day, _) in enumerate(at)]
            rounds = [self.seats[seat][day][1][step] for seat, (day, step) in enumerate(at)]
            rows = [thread for threads in rounds for thread in threads]
            seat_of = [seat for seat, threads in enumerate(rounds) for _ in threads]
            threads: ThreadBatch = live_threads(rows, obs, seat_of)
            calendar = CalendarBatch.of([own[0].calendar for own in rounds])
            batch = ObservationBatch.of(obs)
            steps.append((new, batch if number == 0 else batch.take(new), threads, calendar))
        built = time.process_time() - began
        decisions, began = 0, time.process_time()
        brain = BatchBrain(steps[0][1], [Parameters()] * len(plans), Layers(), types=shipped_types())
        for new, batch, threads, calendar in steps:
            if len(new):
                brain.memory.note_due(brain.obs.calendar.bought[new, 0], brain.obs.calendar.sold[new, 0], new)
                brain.start_day(batch, new)
            brain.decide(threads, calendar, everybody)
            decisions += len(threads)
        return {"seconds": time.process_time() - began, "built": built, "decisions": decisions}

    def live(self, seed: int, days: int) -> dict[str, float]:
        """Play a world, and measure the time inside our agents' callbacks."""
        if not self._wrapped:
            self._wrapped = [self._wrap(name) for name in CALLBACKS if hasattr(LitaAgentHRL, name)]
        world, seats = make_world(seed, days)
        self._spent = 0.0
        with silence():
            world.run()
        return {"seconds": self._spent, "seat_days": seats * days}

    def _wrap(self, name: str) -> str:
        method: Callable[..., Any] = getattr(LitaAgentHRL, name)

        def timed(agent: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - any callback
            if self._inside:
                return method(agent, *args, **options)
            self._inside, began = True, time.process_time()
            try:
                return method(agent, *args, **options)
            finally:
                self._spent += time.process_time() - began
                self._inside = False

        setattr(LitaAgentHRL, name, timed)
        return name

    def play(self, folder: str, worlds: int, days: int) -> dict[str, Any]:
        """Write the records of a small tournament."""
        from litaagent_std.tournament.config import TournamentConfig
        from litaagent_std.tournament.run import run_tournament

        names = ("RandomStd", "GreedyStd")
        settings: dict[str, Any] = {"competitors": names, "configs": worlds, "runs": 1, "steps": days, "levels": 2}
        run_tournament(TournamentConfig(**settings, executor="inline", quiet=True, output_dir=folder))
        return {}

    def features(self, folder: str) -> dict[str, float]:
        """Make the arrays of every decision in a folder of records.

        Folding the heuristic over the records, which makes the base of residuals, is timed apart; earlier versions
        have none.
        """
        from litaagent_std.hrl_xf.data_pipeline.extraction import world_samples as module
        from litaagent_std.hrl_xf.data_pipeline.extraction.world_samples import pad_histories, world_samples
        from litaagent_std.hrl_xf.data_pipeline.options import DatasetOptions
        from litaagent_std.hrl_xf.data_pipeline.selection import select_worlds
        from litaagent_std.hrl_xf.data_pipeline.shards import read_worlds
        from litaagent_std.records.reader import open_records

        worlds = select_worlds(open_records(Path(folder)), DatasetOptions(agent_name=""))
        records = read_worlds(folder, worlds)
        folded, fold = 0.0, getattr(module, "fold_heuristic", None)

        def timed(*args: Any) -> Any:  # noqa: ANN401 - as the function's
            nonlocal folded
            assert fold is not None  # only then it is replaced
            started = time.process_time()
            try:
                return fold(*args)
            finally:
                folded += time.process_time() - started

        if fold is not None:
            vars(module)["fold_heuristic"] = timed
        many = getattr(module, "samples_of_worlds", None)  # of the present version
        decisions, began = 0, time.process_time()
        pairs = [(record, world.seats) for world, record in zip(worlds, records, strict=True)]
        made = [world_samples(*pair) for pair in pairs] if many is None else many(pairs)
        for world, samples in zip(worlds, made, strict=True):
            decisions += len(pad_histories(samples.micro, samples.offers, world.n_rounds)["history"])
        seconds = time.process_time() - began
        if fold is not None:
            vars(module)["fold_heuristic"] = fold
        return {"seconds": seconds - folded, "folded": folded, "decisions": decisions}


def main() -> None:
    """Answer commands until there are no more."""
    worker = Worker()
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(getattr(worker, request.pop("command"))(**request)), flush=True)


if __name__ == "__main__":
    main()
