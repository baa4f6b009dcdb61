"""``lita tournament``, ``lita collect`` and ``lita competitors``: play tournaments, and list the competitors."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional

from apexrl.configuration import configuration
from lita.console import plain_console
from litaagent_std.tournament.config import TournamentConfig, executor_name

if TYPE_CHECKING:
    from litaagent_std.tournament.run import Outcome
    from litaagent_std.tournament.standings import Results

_PAIRS_SHOWN = 20
_WIDTH = 120


def tournament(config: TournamentConfig) -> int:
    """Run the tournament or resume it, and print the standings."""
    return play(config, prefix="std_default")


def play(config: TournamentConfig, prefix: str) -> int:
    """Run a tournament or resume it, and print its results.

    Args:
        config: The options.
        prefix: Beginning of the name of a new folder.
    """
    from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing

    if executor_name(config) == "inline":
        restart_with_fixed_hashing()  # worlds run in this process
    from litaagent_std.tournament.run import run_tournament

    outcome = run_tournament(config, prefix=prefix)
    if outcome.results is not None and outcome.finished:
        _show(outcome.results)
    if not config.quiet:
        print(_summary(outcome))
    if outcome.finished and (outcome.results is None or not outcome.results.scores):
        print(f"no world succeeded; {outcome.folder / 'run.log'} has the reasons", file=sys.stderr)
    return outcome.exit_code


def _summary(outcome: Outcome) -> str:
    from litaagent_std.records.reader import RECORDS_FOLDER
    from litaagent_std.tournament.progress import duration

    sizes = [path.stat().st_size for path in (outcome.folder / RECORDS_FOLDER).rglob("*") if path.is_file()]
    size = f"records: {sum(sizes) / 1e6:.2f} MB in {len(sizes)} files"
    state = "finished" if outcome.finished else "unfinished: run the same command again to resume"
    return f"{outcome.folder}: {state}; {outcome.worlds} worlds played in {duration(outcome.seconds)}; {size}"


def _show(results: Results) -> None:
    from rich.table import Table

    console = plain_console(_WIDTH)
    table = Table("competitor", title="standings (truncated mean, the official metric)", title_justify="left")
    for column in ("score", "95 % interval", "mean", "first", "middle", "last", "worlds", "errors"):
        table.add_column(column, justify="right")
    for standing in results.standings:
        by_level = standing.levels
        levels = [f"{by_level[level]:.3f}" if level in by_level else "–" for level in ("first", "middle", "last")]
        score, interval = f"{standing.score:.3f}", _interval(standing.low, standing.high)
        mean, worlds = f"{standing.mean:.3f}", str(standing.worlds)
        table.add_row(standing.competitor, score, interval, mean, *levels, worlds, str(standing.errors))
    console.print(table)
    for standing in results.standings:
        if standing.errors >= standing.worlds:
            who = f"{standing.competitor} raised {standing.errors} exceptions in {standing.worlds} worlds"
            print(f"{who}; lita competitors NAME --check shows more")
    best = [pair for pair in results.paired if pair.first == results.standings[0].competitor][:_PAIRS_SHOWN]
    if best:
        several = (
            f" corrected for all {len(results.paired)} pairs (Holm)" if len(results.paired) > 1 else " of the only pair"
        )
        title = f"the first, in the same seats as the others; p{several}"
        pairs = Table("", "minus", title=title, title_justify="left")
        for column in ("difference", "95 % interval", "p (Holm)", "pairs"):
            pairs.add_column(column, justify="right")
        for pair in best:
            interval = _interval(pair.low, pair.high, "+")
            p_value = "–" if pair.p_holm is None else f"{pair.p_holm:.3f}{' *' if pair.is_clear else ''}"
            pairs.add_row(pair.first, pair.second, f"{pair.difference:+.3f}", interval, p_value, str(pair.pairs))
        console.print(pairs)
        if any(pair.is_clear for pair in best):
            console.print("* clear at 5 % whatever pair one looks at", highlight=False)
    for world, reason in results.failed.items():
        console.print(f"failed: {world}: {reason}", markup=False)


def _interval(low: float | None, high: float | None, sign: str = "") -> str:
    return "one configuration" if low is None or high is None else f"{low:{sign}.3f} … {high:{sign}.3f}"


def collect(config: TournamentConfig) -> int:
    """Collect records, or resume the collection."""
    return play(config, prefix="hrl_data")


_UNLIMITED = 1000


@configuration
class CompetitorsConfig:
    """List the competitors of names and groups; --check lets each play short worlds and shows its CPU time per day.

    The exit status is 1 when a checked competitor makes no offer or raises an exception.
    """

    names: Annotated[tuple[str, ...], Positional] = ("lita-2025", "top-2025", "top-2024", "finalists-2026", "built-in")
    """Names, groups or class paths, each with parameters as JSON behind a colon if wanted: lita:{"l4": "greedy"}."""

    integer_offers: bool = True
    """Let agents of scml-agents offer whole numbers only, as tournaments do."""

    check: bool = False
    """Let each play a short world."""


def competitors(config: CompetitorsConfig) -> int:
    """Print a line per competitor."""
    from rich.table import Table
    from rich.text import Text

    from litaagent_std.tournament.competitors.integer_offers import original_path
    from litaagent_std.tournament.competitors.names import resolve
    from litaagent_std.tournament.competitors.smoke import check_competitor

    # Output that is not a terminal's is not wrapped: full paths are printed.
    console = plain_console(_UNLIMITED)
    competitors = resolve(config.names, integer_offers=config.integer_offers)
    if not config.check:
        table = Table("name", "class")
        for competitor in competitors:
            table.add_row(Text(competitor.name), original_path(competitor.path))
        console.print(table)
        return 0
    table = Table("name", "verdict", "score", "offers", "contracts", "errors", "ms per day")
    results = [check_competitor(competitor) for competitor in competitors]
    for check in results:
        counts = (str(check.offers), str(check.contracts), str(check.errors))
        verdict = "plays" if check.ok else "RAISES" if check.errors else "SILENT"
        table.add_row(Text(check.competitor), verdict, f"{check.score:.3f}", *counts, f"{check.ms_per_day:.1f}")
    console.print(table)
    return 0 if all(check.ok for check in results) else 1
