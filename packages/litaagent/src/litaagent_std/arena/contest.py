"""An evaluation from its options to its report on the disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from apexrl.runs.digest import digest_config
from apexrl.runs.errors import ConfigurationError
from apexrl.runs.reading import write_sealed
from apexrl.runs.signals import stop_on_signals
from litaagent_std.arena.config import ArenaConfig
from litaagent_std.arena.evaluation import Evaluation, Plan, evaluate
from litaagent_std.arena.picture import draw_picture
from litaagent_std.arena.report import report_of
from litaagent_std.arena.seeds import seed_block
from litaagent_std.arena.sequential import ALPHA
from litaagent_std.arena.units import UnitStore
from litaagent_std.arena.worlds import Rules
from litaagent_std.policy.parameters import LEVELS
from litaagent_std.tournament.competitors.names import opponents, read_agent, require_classes, resolve
from litaagent_std.world.isolated import warn_unless_whole
from litaagent_std.world.reproducible.hashing import fixed_for_workers

__all__ = ["TASKS_PER_WORKER", "Outcome", "plan_of", "progress_of", "run_contest"]

TASKS_PER_WORKER: Final = 200
"""Worlds after which a worker is replaced, against what agents leave behind in a process."""
_MOST_LEVELS: Final = 4


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a start of an evaluation ended.

    Attributes:
        folder: Where report and picture are.
        report: See `report_of`.
        interrupted: Whether it was stopped before its end.
        exit_code: 0, or what the shell expects after a signal.
        played: Units that were played by this start.
        known: Units that were known before.
    """

    folder: Path
    report: dict[str, Any]
    interrupted: bool
    exit_code: int
    played: int
    known: int


def plan_of(config: ArenaConfig) -> Plan:
    """Make the plan of an evaluation from its options.

    Raises:
        ConfigurationError: If an option makes no sense.
    """
    most = config.levels or _MOST_LEVELS
    if not config.days or min(config.days) <= most:
        raise ConfigurationError(
            f"--days {' '.join(map(str, config.days))} will not do",
            f"a product needs more days than the levels it passes through, and worlds have up to {most}",
            f"use lengths of {most + 1} or more, or fewer --levels",
        )
    if config.levels == 2 and set(config.places) == {"middle"}:
        raise ConfigurationError(
            "--levels 2 --places middle will not do",
            "worlds of two levels have seats at the first and the last place alone",
            "use more --levels, or other --places",
        )
    block = seed_block(config.block, open_verdict=config.open_verdict)
    integer = not config.as_shipped
    isolate = config.isolate
    focal, *against = resolve([config.agent, *config.against], integer_offers=integer, distinct=True, isolate=isolate)
    others = opponents(config.opponents, integer_offers=integer, isolate=isolate)
    require_classes([*(who.spec for who in (focal, *against)), *map(read_agent, others)])
    rules = Rules(
        others,
        config.mix,
        config.days,
        config.levels,
        config.inventory,
        config.engine,
    )
    # Each comparison has its share of the error (Bonferroni), so all intervals hold together, at any time.
    alpha = ALPHA / max(1, len(against))
    return Plan(
        focal, tuple(against), rules, block, config.worlds, config.lead, config.stop_early, alpha, places=config.places
    )


def run_contest(config: ArenaConfig) -> Outcome:
    """Play what is not played yet, and write ``report.json`` and ``picture.svg``.

    Raises:
        UserFacingError: If the options make no sense, or the folder cannot be written.
    """
    plan = plan_of(config)
    agents = [plan.focal.path, *(other.path for other in plan.against)]
    warn_unless_whole([*agents, *(read_agent(text).path for text in plan.rules.opponents)])
    store = UnitStore(config.output_dir / "units")
    with (
        fixed_for_workers(),
        stop_on_signals() as stop,
        config.make_executor(tasks_per_worker=TASKS_PER_WORKER) as executor,
        progress_of(plan, quiet=config.quiet) as show,
    ):

        def on_unit(evaluation: Evaluation) -> bool:
            show(evaluation)
            return not stop.requested

        evaluation = evaluate(plan, store, executor, time_limit=config.time_limit, on_unit=on_unit)
    report = report_of(evaluation)
    folder = config.output_dir / _folder_name(plan)
    write_sealed(folder / "report.json", report)
    if report["comparisons"]:
        draw_picture(evaluation, report, folder / "picture.svg")
    known = sum(map(len, evaluation.units.values())) - evaluation.played
    return Outcome(folder, report, stop.requested, stop.exit_code, evaluation.played, known)


def _folder_name(plan: Plan) -> str:
    """Return a name for people, and a digest that tells evaluations apart; more worlds are the same evaluation."""
    who = [(competitor.name, competitor.spec.path) for competitor in (plan.focal, *plan.against)]
    asked = {"who": who, "rules": plan.rules, "block": plan.block.name, "lead": plan.lead, "stop": plan.stop_early}
    if set(plan.places) != set(LEVELS):
        asked["places"] = sorted(plan.places)
    name = re.sub(r"[^A-Za-z0-9]+", "-", f"{plan.focal.name}-{plan.rules.mix}-{plan.block.name}").strip("-")
    return f"{name[:60]}-{digest_config(asked)[:8]}"


@contextmanager
def progress_of(plan: Plan, *, quiet: bool) -> Iterator[Callable[[Evaluation], None]]:
    """Show a bar of the worlds that the focal agent has played, and the answers so far."""
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("worlds"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), disable=quiet) as bar:
        task = bar.add_task("", total=plan.worlds)

        def show(evaluation: Evaluation) -> None:
            verdicts = [(other.name, evaluation.verdict(other.name)) for other in plan.against]
            answers = [f"{name} {verdict.mean:+.3f} {verdict.answer}" for name, verdict in verdicts if verdict.worlds]
            done = len(evaluation.units.get(plan.focal.name, {}))
            bar.update(task, completed=done, description="; ".join(answers[:3]))

        yield show
