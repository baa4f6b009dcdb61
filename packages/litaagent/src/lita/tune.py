"""``lita tune``: better parameters for the agent, and how much better they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from litaagent_std.arena.tuning.config import TuneConfig as Config

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Config", "run"]


def run(config: Config) -> int:
    """Tune what is not tuned yet, write the file of parameters, and show what it is worth."""
    from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing

    if config.executor == "inline":
        restart_with_fixed_hashing()  # worlds run in this very process
    from rich.console import Console

    from litaagent_std.arena.tuning.run import run_tuning

    tuned = run_tuning(config)
    if tuned.content is None:
        print(f"{config.output_dir}: unfinished, {tuned.played} worlds played now; run the same command again to go on")
        return tuned.exit_code
    Console().print(_table(tuned.content))
    print(f"{tuned.path}: finished; {tuned.played} worlds played now")
    print(f"""play it: lita arena 'lita:{{"parameters": "{tuned.path}"}}'""")
    return tuned.exit_code


def _table(content: dict[str, Any]) -> Table:
    """Return what was found: level by level in worlds that the search has not seen, and all together on the gate."""
    from rich.table import Table

    table = Table("tuned minus start", "worlds", "difference", "95 % interval", "", title_justify="left")
    for level, one in content["levels"].items():
        kept = "kept" if one["kept"] else "not kept"
        _row(table, f"validation, level {level}", one["validation"], kept)
    for row in (content["gate"] or {"comparisons": []})["comparisons"]:
        for part, difference in row["difference"].items():
            answer = row["verdict"]["answer"] if part == "all" else ""
            _row(table, f"gate, against {row['against'][:40]}, {part}", difference, answer)
    return table


def _row(table: Table, name: str, difference: dict[str, Any], note: str) -> None:
    low, high = difference["low"], difference["high"]
    interval = "too few worlds" if low is None else f"{low:+.3f} … {high:+.3f}"
    table.add_row(name, str(difference["worlds"]), f"{difference['mean']:+.4f}", interval, note)
