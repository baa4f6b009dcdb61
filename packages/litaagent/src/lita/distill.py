"""``lita distill``: a trained policy into a compact model that decides faster, and how well it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from litaagent_std.hrl_xf.online.distillation.config import DistillConfig as Config

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Config", "run"]


def run(config: Config) -> int:
    """Distil what is not distilled yet, write the student's weights, and show what was measured."""
    from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing

    if config.executor == "inline":
        restart_with_fixed_hashing()  # worlds run in this very process
    from rich.console import Console

    from litaagent_std.hrl_xf.online.distillation.run import run_distillation

    found = run_distillation(config)
    if found.report is None:
        print(f"{config.output_dir}: unfinished, {found.played} worlds played now; run the same command again to go on")
        return found.exit_code
    console = Console()
    for table in (_errors(found.report), _agreement(found.report), _costs(found.report)):
        console.print(table)
    score = found.report["score"]
    low, high = score["low"], score["high"]
    interval = "" if low is None else f", 95 % interval {low:+.3f} … {high:+.3f}"
    print(f"score: student less teacher {score['difference']:+.4f} in {score['worlds']} worlds{interval}")
    print(f"""play it: lita arena 'litaagent_std.agents.online.agent.LitaOnline:{{"weights": "{found.path}"}}'""")
    return found.exit_code


def _errors(report: dict[str, Any]) -> Table:
    from rich.table import Table

    table = Table("layer", "held-out samples", "student", "always the mean", "zeros", "explained")
    table.title, table.title_justify = "Root mean squared error of the numbers", "left"
    for layer, one in report["error"].items():
        explained = "–" if one["explained"] is None else f"{one['explained']:.1%}"
        values = [f"{one[name]:.4f}" for name in ("student", "mean", "zero")]
        table.add_row(layer, str(one["rows"]), *values, explained)
    return table


def _agreement(report: dict[str, Any]) -> Table:
    from rich.table import Table

    table = Table("who", "decisions", "same kind", "same decision", "same goal quantity", "goal price off by")
    table.title, table.title_justify = "Agreement with the teacher, in its own situations", "left"
    names = {"student": "student", "mean": "always the mean", "zero": "zeros"}
    for name, one in report["agreement"].items():
        shares = [
            f"{one[share]:.1%}" for share in ("same_kind", "same_decision", "same_goal_quantity", "goal_price_gap")
        ]
        table.add_row(names[name], str(one["decisions"]), *shares)
    return table


def _costs(report: dict[str, Any]) -> Table:
    from rich.table import Table

    table = Table("CPU time per decision", "teacher", "student", "student / teacher")
    names = {"networks_us": "networks alone", "decision_us": "the whole decision"}
    for name, one in report["cpu"].items():
        table.add_row(names[name], f"{one['teacher']:.1f} µs", f"{one['student']:.1f} µs", f"{one['ratio']:.2f}")
    return table
