"""``lita arena``: is this agent better than that one?"""

from __future__ import annotations

import sys

from litaagent_std.arena.config import ArenaConfig as Config

__all__ = ["Config", "run"]

_WIDTH = 140


def run(config: Config) -> int:
    """Play what is not played yet, write report and picture, and show the tables."""
    from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing

    if config.executor == "inline":
        restart_with_fixed_hashing()  # worlds run in this very process
    from rich.console import Console

    from litaagent_std.arena.contest import run_contest
    from litaagent_std.arena.report import tables_of

    outcome = run_contest(config)
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    if outcome.report["agents"]:
        console.print(tables_of(outcome.report))
    for failure in outcome.report["failed"]:
        where = f"{failure['agent']} in world {failure['world']}"
        print(f"failed, and tried again by the same command: {where}: {failure['reason']}")
    state = "unfinished: run the same command again to go on" if outcome.interrupted else "finished"
    print(f"{outcome.folder}: {state}; {outcome.played} worlds played now, {outcome.known} were known")
    return outcome.exit_code
