"""A tuning run from its options to its file of parameters."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from apexrl.execution import Executor
from apexrl.runs.atomic import write_json
from apexrl.runs.digest import digest_config, to_plain
from apexrl.runs.metrics.jsonl import JsonlFile, read_jsonl
from apexrl.runs.provenance import git_commit
from apexrl.runs.session import Session
from apexrl.statistics import paired_difference
from litaagent_std.arena.contest import TASKS_PER_WORKER
from litaagent_std.arena.evaluation import Plan, evaluate
from litaagent_std.arena.report import report_of, statistics_values
from litaagent_std.arena.seeds import SeedBlock
from litaagent_std.arena.tuning.config import FREE, TuneConfig
from litaagent_std.arena.tuning.playing import VALIDATION_START, Interrupted, Player
from litaagent_std.arena.tuning.race import race
from litaagent_std.arena.tuning.search import Search
from litaagent_std.arena.tuning.space import Space, with_values
from litaagent_std.arena.units import UnitLog, code_version
from litaagent_std.arena.worlds import Rules
from litaagent_std.policy.parameters import Level, Parameters
from litaagent_std.tournament.competitors.names import Competitor, opponents, resolve, resolve_one
from litaagent_std.tournament.competitors.parameter_files import FORMAT
from litaagent_std.world.reproducible.hashing import fixed_for_workers
from litaagent_std.world.setup import AgentSpec

__all__ = ["RESULT", "Tuned", "run_tuning"]

RESULT: Final = "parameters.json"
"""The file of the result in the folder of the run."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """How a start of a tuning run ended.

    Attributes:
        path: The file of the result, written when the run is finished.
        content: What it holds; None when the run was stopped before.
        exit_code: 0, or what the shell expects after a signal.
        played: Worlds that were played by this start.
    """

    path: Path
    content: dict[str, Any] | None
    exit_code: int
    played: int


@dataclass(slots=True)
class _Tuning:
    """A run at work."""

    config: TuneConfig
    start: Competitor
    rules: Rules
    session: Session
    executor: Executor
    units: UnitLog
    code: str
    player: Player = field(init=False)
    generations: int = 0
    """Generations so far, of all levels."""

    def __post_init__(self) -> None:
        self.player = Player(self.rules, self.units, self.executor, self.config.time_limit, self._after_unit, self.code)

    def _after_unit(self) -> bool:
        """Show how far it is; return whether to stop."""
        self.session.show(self.generations, {"worlds": self.player.played})
        return self.session.should_stop

    def _at(self, level: Level, generation: int) -> None:
        self.generations = self.config.levels.index(level) * self.config.generations + generation
        self._after_unit()

    @property
    def parameters(self) -> Parameters:
        return Parameters.from_mapping(dict(self.start.spec.params.get("parameters", {})))

    def agent(self, parameters: Parameters) -> AgentSpec:
        """Return the start with other parameters; at equal ones it is the start itself."""
        if parameters == self.parameters:
            return self.start.spec
        return replace(self.start.spec, params={**self.start.spec.params, "parameters": plain(parameters)})

    def search(self, level: Level) -> dict[str, float]:
        """Search one level; return the values found."""
        config = self.config
        space = Space.of(level, self.parameters, config.names)
        search = Search(space.origin, config.step, config.population, config.covariance, config.seed)
        path = self.session.path / f"{level}.jsonl"
        for entry in (read_jsonl(path) if path.is_file() else [])[: config.generations]:
            search.replay(entry)
            self._at(level, search.generation)
        log = JsonlFile(path, after_step=search.generation - 1)
        try:
            while search.generation < config.generations:
                log.append(self._generation(search, space))
                self._at(level, search.generation)
        finally:
            log.close()
        return space.values(search.center)

    def _generation(self, search: Search, space: Space) -> dict[str, Any]:
        """Play a generation and report its ranks to the search; return the entry of the log."""
        config, number = self.config, search.generation
        points = search.ask()
        worlds = self.player.worlds(space.level, number * config.worlds, config.worlds)
        agents = [self.agent(space.parameters(point)) for point in points]
        ranks, scores = race(
            len(points),
            config.worlds,
            config.rungs,
            lambda pairs: self.player.scores([(agents[candidate], worlds[world]) for candidate, world in pairs]),
        )
        search.tell(ranks)
        center = space.values(search.center)
        return {
            "step": number,
            "points": points,
            "ranks": ranks,
            "worlds": worlds,
            "scores": scores,
            "center": center,
            "spread": search.spread,
        }

    def validate(self, level: Level, values: dict[str, float]) -> dict[str, Any]:
        """Compare the values of a search with the start in worlds of the level that the search has not seen."""
        worlds = self.player.worlds(level, 0, self.config.validation_worlds, VALIDATION_START)
        tuned = self.agent(with_values(self.parameters, level, values))
        scores = [self.player.scores([(agent, index) for index in worlds]) for agent in (tuned, self.start.spec)]
        return statistics_values(paired_difference(*scores))

    def judge(self, parameters: Parameters) -> dict[str, Any] | None:
        """Compare the result with the start, and with others, on the gate; None if there is nothing to judge."""
        config = self.config
        if parameters == self.parameters or not config.gate_worlds:
            return None
        names = resolve([config.agent, *config.against], distinct=True)
        plan = Plan(
            Competitor("tuned", self.agent(parameters)),
            names,
            self.rules,
            SeedBlock(f"gate:{config.gate}"),
            config.gate_worlds,
        )

        def on_unit(evaluation: object) -> bool:
            return not self.session.should_stop

        evaluation = evaluate(plan, self.units, self.executor, time_limit=config.time_limit, on_unit=on_unit)
        self.player.played += evaluation.played
        if self.session.should_stop:
            raise Interrupted
        report = report_of(evaluation)
        return {"block": plan.block.name, "comparisons": report["comparisons"], "failed": report["failed"]}


def run_tuning(config: TuneConfig) -> Tuned:
    """Tune what is not tuned yet, and write the file of parameters.

    Raises:
        UserFacingError: If the options make no sense, the folder holds another run, or a world failed.
    """
    start = resolve_one(config.agent)
    rules = Rules(opponents(config.opponents), config.mix, config.days, config.n_levels, config.inventory)
    for level in config.levels:
        Space.of(level, Parameters(), config.names)  # refuses unknown names before any work
    code = code_version(start.spec)
    identity = {"options": to_plain(config), "code": code, "cma": version("cma")}
    path = config.output_dir / RESULT
    with (
        fixed_for_workers(),
        Session(
            config.output_dir,
            config=identity,
            seed=config.seed,
            free=[f"options.{name}" for name in FREE],
            sinks=(),
            unit="generations",
            show_progress=not config.quiet,
        ) as session,
        UnitLog(config.output_dir / "units.jsonl") as units,
        config.make_executor(tasks_per_worker=TASKS_PER_WORKER) as executor,
    ):
        session.begin(config.generations * len(config.levels))
        work = _Tuning(config, start, rules, session, executor, units, code)
        try:
            content = _tune(work) | {"code": code}
        except Interrupted:
            return Tuned(path, None, session.exit_code, work.player.played)
        write_json(path, content)
        return Tuned(path, content, 0, work.player.played)


def _tune(work: _Tuning) -> dict[str, Any]:
    """Search and validate every level, judge the result, and describe how it was made."""
    config, parameters = work.config, work.parameters
    levels: dict[str, Any] = {}
    for level in config.levels:
        values = work.search(level)
        validation = work.validate(level, values)
        kept = validation["mean"] > 0.0
        if kept:
            parameters = with_values(parameters, level, values)
        levels[level] = {"values": values, "kept": kept, "validation": validation, "generations": config.generations}
    gate = work.judge(parameters)
    return {
        "format": FORMAT,
        "parameters": plain(parameters),
        "digest": digest_config(plain(parameters)),
        "command": shlex.join(["lita", *sys.argv[1:]]),
        "start": plain(work.parameters),
        "seeds": {"search": config.seed, "worlds": "tuning", "validation": "tuning, second half"},
        "levels": levels,
        "gate": gate,
        "versions": {name: version(name) for name in ("cma", "negmas", "numpy", "scml")},
        "commit": git_commit(),
    }


def plain(parameters: Parameters) -> dict[str, Any]:
    """Parameters as JSON holds them; overrides that change nothing are left out."""
    values: dict[str, Any] = {entry.name: getattr(parameters, entry.name) for entry in fields(Parameters)}
    overrides: Mapping[Level, Mapping[str, float]] = values["overrides"]
    changed = {
        level: {name: value for name, value in changes.items() if value != values[name]}
        for level, changes in overrides.items()
    }
    return {**values, "overrides": {level: changes for level, changes in changed.items() if changes}}
