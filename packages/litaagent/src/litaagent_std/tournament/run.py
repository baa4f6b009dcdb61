"""The run of a tournament: nothing is lost and nothing is repeated.

The parent is the only writer. It sends worlds to an executor, keeps every finished world at once as a whole file, and
gathers files into shards (`records.storage`). Whatever happens, the same command resumes with the worlds that have no
outcome yet. Workers need no access to the folder: records come back as bytes.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from apexrl.execution import Executor, ExecutorName, RunOptions, RunReport, Task, TaskReport, TaskResult
from apexrl.runs.atomic import write_failure
from apexrl.runs.errors import ConfigurationError, safe_text
from apexrl.runs.reading import read_sealed, write_sealed
from apexrl.runs.session import Session
from litaagent_std.records.reader import RECORDS_FOLDER, Records, open_records
from litaagent_std.records.storage.remote import StorageError, publish
from litaagent_std.records.storage.segment import pack_failure
from litaagent_std.records.storage.store import RecordStore
from litaagent_std.tournament.competitors.names import Competitor, require_classes, resolve
from litaagent_std.tournament.competitors.registry import default_roster
from litaagent_std.tournament.config import FREE, TournamentConfig, executor_name
from litaagent_std.tournament.export import LOGS, export_configurations, export_scores, write_world
from litaagent_std.tournament.folder import Choice, choose_folder, is_finished, recorded_form, what_is_played
from litaagent_std.tournament.plan import Plan, make_plan
from litaagent_std.tournament.play import PlayedWorld, WorldTask, play_world, time_days, try_competitor
from litaagent_std.tournament.progress import Progress, duration
from litaagent_std.tournament.standings import Results, results_of
from litaagent_std.world.isolated import warn_unless_whole
from litaagent_std.world.reproducible.hashing import fixed_for_workers, warn_unless_fixed

__all__ = ["Outcome", "run_tournament"]

logger = logging.getLogger(__name__)

TASKS_PER_WORKER: Final = 200
"""Worlds after which a worker is replaced, against what agents leave behind in a process."""

_SAMPLES: Final = 4
_WORTH_AN_ESTIMATE: Final = 8
"""Worlds from which an estimate of the time is worth playing `_SAMPLES` short worlds."""

_BROKEN: Final = "broken.json"
_TRY_SECONDS: Final = 300.0
"""Most seconds for the short world in which a competitor is tried."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a start of a tournament ended.

    Attributes:
        folder: The tournament's folder.
        results: The results so far; None when nothing is finished.
        broken: Competitors that cannot play, with the reason; a default agent plays in their seats.
        finished: Whether every world has its outcome.
        exit_code: 0, or what the shell expects after a signal.
        worlds: Worlds that were played by this start.
        seconds: Wall-clock seconds of this start.
    """

    folder: Path
    results: Results | None
    broken: dict[str, str]
    finished: bool
    exit_code: int
    worlds: int
    seconds: float


def run_tournament(config: TournamentConfig, *, prefix: str = "hrl_data", say: Say = print) -> Outcome:
    """Run a tournament, or resume it.

    Args:
        config: The tournament and how to run it.
        prefix: Beginning of the name of a new folder.
        say: Where messages for the user go.

    Raises:
        UserFacingError: If the options make no sense, the folder belongs to something else, or it cannot be written.
    """
    executor = executor_name(config)
    if executor == "inline":
        warn_unless_fixed()
    competitors = resolve(
        config.competitors or default_roster(config.max_top_2025, config.max_top_2024),
        integer_offers=config.integer_offers,
        isolate=config.isolate,
    )
    if executor != "ray":  # Ray may bring the classes to its workers
        require_classes(competitor.spec for competitor in competitors)
    warn_unless_whole(competitor.path for competitor in competitors)
    _check_days(config)
    plan = make_plan(config, len(competitors))
    played = what_is_played(config, competitors)
    choice = choose_folder(config, played, prefix)
    played = recorded_form(choice.folder, played)
    show: Say = (lambda text: None) if config.quiet else say
    if config.output_dir is None or not is_finished(choice.folder):
        show(f"{len(competitors)} competitors: {', '.join(competitor.name for competitor in competitors)}")
        show(plan.formula)
    started = time.monotonic()
    settings = {"played": played, "how": {name: getattr(config, name) for name in FREE if name != "output_dir"}}
    with (
        fixed_for_workers(),
        Session(
            choice.folder,
            config=settings,
            seed=config.seed,
            free=("how",),
            existing="resume" if config.resumable else "refuse",
        ) as session,
    ):
        runner = _Runner(config, session, plan, competitors, played, show)
        runner.run(executor, choice)
        runner.publish()
    records = _finished_records(choice.folder)
    results = None if records is None else results_of(records)
    finished = is_finished(choice.folder)
    has_scores = results is not None and bool(results.scores)
    if finished and records is not None and results is not None and has_scores:
        export_scores(records, results, choice.folder)
        if config.csv:
            export_configurations(records, choice.folder)
    exit_code = session.exit_code or (1 if finished and not has_scores else 0)
    seconds = time.monotonic() - started
    return Outcome(choice.folder, results, runner.broken, finished, exit_code, runner.n_played, seconds)


def _check_days(config: TournamentConfig) -> None:
    levels = config.levels or 4
    if config.steps is not None and config.steps <= levels:
        raise ConfigurationError(
            f"--steps {config.steps} is too few",
            f"a product needs more days than there are levels to pass through all of them, and worlds have up to "
            f"{levels} levels",
            f"use --steps {levels + 1} or more, or fewer --levels",
        )


def _finished_records(folder: Path) -> Records | None:
    records = open_records(folder / RECORDS_FOLDER)
    return records if records.keys else None


class _Runner:
    """One start of a tournament."""

    def __init__(
        self,
        config: TournamentConfig,
        session: Session,
        plan: Plan,
        competitors: tuple[Competitor, ...],
        played: dict[str, Any],
        say: Say,
    ) -> None:
        self._config, self._session, self._plan, self._say = config, session, plan, say
        self._folder = session.path
        names = tuple(competitor.name for competitor in competitors)
        agents = tuple(competitor.spec for competitor in competitors)
        source = {"names": list(names), "played": played}
        size = config.shard_size
        self._store = RecordStore(
            self._folder / RECORDS_FOLDER, source, len(plan.worlds), shard_size=size, reasons=config.reasons
        )
        kind = (config.steps, config.levels, config.inventory, config.engine, config.csv, config.reasons)
        if config.retry_failed and (again := self._store.forget_failed()):
            say(f"{len(again)} failed worlds are played again")
        outcomes = self._store.outcomes
        self._todo = [WorldTask(spec, names, agents, *kind) for spec in plan.worlds if spec.world not in outcomes]
        self._competitors = dict(zip(names, agents, strict=True))
        self.broken: dict[str, str] = {}
        self.n_played = 0
        self._n_published = 0

    def run(self, executor: ExecutorName, choice: Choice) -> None:
        """Play what is left, until it is done or a signal asks to stop."""
        done = len(self._plan.worlds) - len(self._todo)
        if not self._todo:
            self._say(f"{choice.folder} is finished: all {done} worlds have their outcome; nothing to do")
            return
        self._say(f"folder: {choice.folder} ({choice.reason})" + (f"; resuming after {done} worlds" if done else ""))
        with replace(self._config, executor=executor).make_executor(tasks_per_worker=TASKS_PER_WORKER) as workers:
            self._leave_out_broken(workers)
            self._estimate(workers)
            progress = Progress(
                len(self._plan.worlds), done, foreground=self._config.foreground, quiet=self._config.quiet
            )
            with closing(progress):
                self._play(workers, progress)

    def _leave_out_broken(self, workers: Executor) -> None:
        """Try every competitor before the first start, name those that cannot play, and seat a default agent for them.

        What was found is kept in the folder, so that all starts play the same.

        Raises:
            ConfigurationError: If nobody can play.
        """
        path = self._folder / _BROKEN
        if path.exists():
            self.broken = read_sealed(path)
        elif len(self._todo) == len(self._plan.worlds):
            tasks = [
                Task(try_competitor, (agent, self._config.engine), label=name)
                for name, agent in self._competitors.items()
                if not agent.path.startswith("scml.")
            ]
            limit = min(self._config.time_limit, _TRY_SECONDS)
            for result in workers.run(tasks, RunOptions(time_limit=limit, retries=1, ordered=True)):
                if result.failure is not None:
                    self.broken[result.label] = safe_text(Exception(str(result.failure)), 500)
        for name, reason in self.broken.items():
            logger.warning("%s cannot play: %s", name, reason)
            self._say(f"{name} cannot play ({reason}): a default agent takes its seats, and it is not ranked")
        if len(self.broken) == len(self._competitors):
            raise ConfigurationError(
                "no competitor can play: " + "; ".join(f"{name}: {why}" for name, why in self.broken.items()),
                "a tournament needs one that can be loaded and plays a short world",
                "correct the class, the parameters or the PYTHONPATH, and choose another folder",
            )
        if not path.exists():
            write_sealed(path, self.broken)
        numbers = frozenset(number for number, name in enumerate(self._competitors) if name in self.broken)
        self._todo = [replace(task, broken=numbers) for task in self._todo]

    def _estimate(self, workers: Executor) -> None:
        """Say how long it will take, by the first days of some of the worlds; a small tournament is not measured."""
        n_worlds = len(self._todo)
        if self._config.quiet or n_worlds < _WORTH_AN_ESTIMATE:
            return
        samples = self._todo[:: max(1, n_worlds // _SAMPLES)][:_SAMPLES]
        tasks = [Task(time_days, (task,), label="estimate") for task in samples]
        measured = [result.value for result in workers.run(tasks, self._options(None)) if result.value is not None]
        if not measured:
            return
        per_day = sum(seconds for seconds, _ in measured) / len(measured)
        mean_days = sum(days for _, days in measured) / len(measured)
        at_once = min(workers.workers, n_worlds)
        self._say(
            f"about {duration(per_day * mean_days * n_worlds / at_once)} for {n_worlds} worlds on {at_once} workers "
            f"({per_day * 1000:.0f} ms per day, measured on {len(measured)} short worlds)"
        )

    def _options(self, progress: Callable[[TaskReport, RunReport], None] | None) -> RunOptions:
        return RunOptions(
            time_limit=self._config.time_limit,
            retries=self._config.retries,
            retry_raised=True,
            ordered=False,
            progress=progress,
        )

    def _play(self, workers: Executor, progress: Progress) -> None:
        reports: dict[int, TaskReport] = {}

        def note(report: TaskReport, _: RunReport) -> None:
            reports[report.index] = report

        with (
            (self._folder / "wall_clock.jsonl").open("a", encoding="utf-8") as clock,
            closing(workers.run(self._tasks(), self._options(note))) as run,
        ):
            for result in run:
                played = self._keep(result)
                report = reports.pop(result.index)
                timing = _timing(self._todo[result.index].spec.world, report, played)
                try:
                    clock.write(json.dumps(timing) + "\n")
                    clock.flush()
                except OSError as error:
                    raise write_failure(error, self._folder / "wall_clock.jsonl") from error
                progress.finished(report, None if played is None else played.cpu_seconds)
                if self._session.should_stop:
                    break

    def _tasks(self) -> Iterator[Task[PlayedWorld]]:
        for task in self._todo:
            spec = task.spec
            label = f"world {spec.world} (configuration {spec.config}, run {spec.run}, assignment {spec.rotation})"
            yield Task(play_world, (task,), label=label)

    def _keep(self, result: TaskResult[PlayedWorld]) -> PlayedWorld | None:
        """Keep a world's outcome; the logs come first, so that a world with an outcome has them."""
        self.n_played += 1
        if result.value is None:
            world = self._todo[result.index].spec.world
            logger.warning("%s failed for good: %s\n%s", result.label, result.failure, _traceback(result))
            self._store.add(world, pack_failure(world, str(result.failure)))
            return None
        played = result.value
        if played.files:
            write_world(self._folder / LOGS, played.world, played.files)
        self._store.add(played.world, played.packed)
        self._publish_new_shards()
        return played

    def _publish_new_shards(self) -> None:
        """Upload shards as they are completed; what the storage does not take now it is given with the next one."""
        if self._config.publish_to is not None and len(self._store.manifest.shards) > self._n_published:
            try:
                self.publish()
            except StorageError as error:
                logger.warning("records are not published yet: %s", error)

    def publish(self) -> None:
        """Upload what is complete and not published yet, if that was asked for.

        Raises:
            StorageError: If the storage does not take it; the records are safe in the folder, and the same command, or
                ``lita records --publish``, uploads them.
        """
        if self._config.publish_to is not None:
            publish(self._store.folder, f"{self._config.publish_to.rstrip('/')}/{RECORDS_FOLDER}")
            self._n_published = len(self._store.manifest.shards)


def _traceback(result: TaskResult[PlayedWorld]) -> str:
    return "" if result.failure is None else result.failure.traceback


def _timing(world: int, report: TaskReport, played: PlayedWorld | None) -> dict[str, Any]:
    attempts = [
        {"seconds": round(tried.seconds, 3), "failure": None if tried.failure is None else str(tried.failure)}
        for tried in report.attempts
    ]
    cpu = None if played is None else round(played.cpu_seconds, 3)
    return {"world": world, "time": time.time(), "cpu_seconds": cpu, "attempts": attempts}
