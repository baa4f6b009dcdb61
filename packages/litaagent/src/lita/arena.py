"""``lita arena`` and ``lita tune``: compare agents in the same worlds, and optimise the agent's parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lita.console import plain_console
from litaagent_std.arena.config import ArenaConfig
from litaagent_std.arena.tuning.config import TuneConfig

if TYPE_CHECKING:
    from rich.table import Table

_WIDTH = 140


def arena(config: ArenaConfig) -> int:
    """Play the worlds that are not finished, write the report and the picture, and print the tables."""
    from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing

    if config.executor == "inline":
        restart_with_fixed_hashing()  # worlds run in this process

    from litaagent_std.arena.contest import run_contest
    from litaagent_std.arena.report import tables_of

    outcome = run_contest(config)
    console = plain_console(_WIDTH)
    if outcome.report["agents"]:
        console.print(tables_of(outcome.report))
    for failure in outcome.report["failed"]:
        where = f"{failure['agent']} in world {failure['world']}"
        print(f"failed; the same command tries it again: {where}: {failure['reason']}")
    state = "unfinished: run the same command again to resume" if outcome.interrupted else "finished"
    print(f"{outcome.folder}: {state}; {outcome.played} worlds played now, {outcome.known} were known")
    return outcome.exit_code


def tune(config: TuneConfig) -> int:
    """Tune the levels that are not finished, write the file of parameters, and print its measured difference."""
    from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing

    if config.executor == "inline":
        restart_with_fixed_hashing()  # worlds run in this process

    from litaagent_std.arena.tuning.run import run_tuning

    tuned = run_tuning(config)
    if tuned.content is None:
        print(f"{config.output_dir}: unfinished, {tuned.played} worlds played; run the same command again to resume")
        return tuned.exit_code
    plain_console().print(_table(tuned.content))
    print(f"{tuned.path}: finished; {tuned.played} worlds played now")
    print(f"""play it: lita arena 'lita:{{"parameters": "{tuned.path}"}}'""")
    return tuned.exit_code


def _table(content: dict[str, Any]) -> Table:
    """Return the differences by level on the validation block, and of all levels together on the gate."""
    from rich.table import Table

    table = Table("tuned minus start", "worlds", "difference", "95 % interval", "", title_justify="left")
    for level, result in content["levels"].items():
        kept = "kept" if result["kept"] else "not kept"
        _row(table, f"validation, level {level}", result["validation"], kept)
    for row in (content["gate"] or {"comparisons": []})["comparisons"]:
        for part, difference in row["difference"].items():
            verdict = row["verdict"]["answer"] if part == "all" else ""
            _row(table, f"gate, against {row['against'][:40]}, {part}", difference, verdict)
    return table


def _row(table: Table, name: str, difference: dict[str, Any], note: str) -> None:
    low, high = difference["low"], difference["high"]
    interval = "too few worlds" if low is None else f"{low:+.3f} … {high:+.3f}"
    table.add_row(name, str(difference["worlds"]), f"{difference['mean']:+.4f}", interval, note)
