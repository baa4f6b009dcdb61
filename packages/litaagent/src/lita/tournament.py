"""``lita tournament``: the default tournament of the Standard league; ``runners/run_default_std.py`` calls it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from litaagent_std.tournament.config import TournamentConfig as Config
from litaagent_std.tournament.config import executor_name

if TYPE_CHECKING:
    from litaagent_std.tournament.run import Outcome
    from litaagent_std.tournament.standings import Results

__all__ = ["Config", "play", "run"]

_PAIRS_SHOWN = 20
_WIDTH = 120


def run(config: Config) -> int:
    """Run the tournament or go on with it, and show the standings."""
    return play(config, prefix="std_default")


def play(config: Config, prefix: str) -> int:
    """Run a tournament or go on with it, and show what came of it.

    Args:
        config: The options.
        prefix: Beginning of the name of a new folder.
    """
    from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing

    if executor_name(config) == "inline":
        restart_with_fixed_hashing()  # worlds run in this very process
    from litaagent_std.tournament.run import run_tournament

    outcome = run_tournament(config, prefix=prefix)
    if outcome.results is not None and outcome.finished:
        _show(outcome.results)
    if not config.quiet:
        print(_summary(outcome))
    return outcome.exit_code


def _summary(outcome: Outcome) -> str:
    from litaagent_std.records.reader import RECORDS_FOLDER
    from litaagent_std.tournament.progress import duration

    sizes = [path.stat().st_size for path in (outcome.folder / RECORDS_FOLDER).rglob("*") if path.is_file()]
    size = f"records: {sum(sizes) / 1e6:.2f} MB in {len(sizes)} files"
    state = "finished" if outcome.finished else "unfinished: run the same command again to go on"
    return f"{outcome.folder}: {state}; {outcome.worlds} worlds played in {duration(outcome.seconds)}; {size}"


def _show(results: Results) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    table = Table("competitor", title="standings (truncated mean, the official metric)", title_justify="left")
    for column in ("score", "95 % interval", "mean", "first", "middle", "last", "worlds"):
        table.add_column(column, justify="right")
    for s in results.standings:
        levels = [f"{s.levels[level]:.3f}" if level in s.levels else "–" for level in ("first", "middle", "last")]
        table.add_row(s.competitor, f"{s.score:.3f}", _interval(s.low, s.high), f"{s.mean:.3f}", *levels, str(s.worlds))
    console.print(table)
    best = [pair for pair in results.paired if pair.first == results.standings[0].competitor][:_PAIRS_SHOWN]
    if best:
        pairs = Table("", "minus", title="the first, in the same seats as the others", title_justify="left")
        for column in ("difference", "95 % interval", "pairs"):
            pairs.add_column(column, justify="right")
        for p in best:
            pairs.add_row(p.first, p.second, f"{p.difference:+.3f}", _interval(p.low, p.high, "+"), str(p.pairs))
        console.print(pairs)
    for world, reason in results.failed.items():
        console.print(f"failed: {world}: {reason}", markup=False)


def _interval(low: float | None, high: float | None, sign: str = "") -> str:
    return "one configuration" if low is None or high is None else f"{low:{sign}.3f} … {high:{sign}.3f}"
