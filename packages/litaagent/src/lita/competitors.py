"""``lita competitors``: who can play, and whether they do."""

from typing import Annotated

from tyro.conf import Positional

from apexrl.configuration import configuration


@configuration
class Config:
    """List the competitors that names stand for; --check lets each play short worlds and shows its cost per day.

    The exit status is 1 when a checked competitor makes no offer or raises an exception.
    """

    names: Annotated[tuple[str, ...], Positional] = ("lita-2025", "top-2025", "top-2024", "finalists-2026", "built-in")
    """Groups, built-ins or class paths."""

    integer_offers: bool = True
    """Let agents of scml-agents offer whole numbers only, as tournaments do."""

    check: bool = False
    """Let each play a short world."""


def run(config: Config) -> int:
    """Show a line per competitor."""
    from rich.console import Console
    from rich.table import Table

    from litaagent_std.tournament.competitors.integer_offers import original_path
    from litaagent_std.tournament.competitors.registry import resolve
    from litaagent_std.tournament.competitors.smoke import check_competitor

    found = resolve(config.names, integer_offers=config.integer_offers)
    if not config.check:
        table = Table("name", "class")
        for one in found:
            table.add_row(one.name, original_path(one.path))
        Console().print(table)
        return 0
    table = Table("name", "verdict", "score", "offers", "contracts", "errors", "ms per day")
    results = [check_competitor(one) for one in found]
    for r in results:
        numbers = (f"{r.score:.3f}", str(r.offers), str(r.contracts), str(r.errors), f"{r.ms_per_day:.1f}")
        verdict = "plays" if r.ok else "RAISES" if r.errors else "SILENT"
        table.add_row(r.competitor, verdict, *numbers)
    Console().print(table)
    return 0 if all(r.ok for r in results) else 1
