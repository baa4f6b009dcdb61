"""``lita train``, ``lita train-online``, ``lita distill`` and ``lita runs``: train layers, and show runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional

from apexrl.configuration import configuration
from apexrl.runs.errors import ConfigurationError
from lita.console import plain_console
from litaagent_std.hrl_xf.online.config import OnlineConfig
from litaagent_std.hrl_xf.online.distillation.config import DistillConfig
from litaagent_std.hrl_xf.training.config import TrainRunConfig

if TYPE_CHECKING:
    from rich.table import Table


def train(config: TrainRunConfig) -> int:
    """Train, or resume a run that stopped."""
    from litaagent_std.hrl_xf.training.launch import train

    return train(config)


def train_online(config: OnlineConfig) -> int:
    """Start the run of --output-dir, or resume it."""
    from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing

    if config.executor == "inline":
        restart_with_fixed_hashing()  # worlds run in this process
    from litaagent_std.hrl_xf.online.command import run_training, show_summary

    trainer, status = run_training(config)
    show_summary(trainer)
    return status


def distill(config: DistillConfig) -> int:
    """Distil a training or resume the distillation, write the student's weights, and print what was measured."""
    from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing

    if config.executor == "inline":
        restart_with_fixed_hashing()  # worlds run in this process

    from litaagent_std.hrl_xf.online.distillation.run import run_distillation

    distilled = run_distillation(config)
    if distilled.report is None:
        print(
            f"{config.output_dir}: unfinished, {distilled.played} worlds played; run the same command again to resume"
        )
        return distilled.exit_code
    console = plain_console()
    for table in (_errors(distilled.report), _agreement(distilled.report), _costs(distilled.report)):
        console.print(table)
    score = distilled.report["score"]
    low, high = score["low"], score["high"]
    interval = "" if low is None else f", 95 % interval {low:+.3f} … {high:+.3f}"
    print(f"score: student less teacher {score['difference']:+.4f} in {score['worlds']} worlds{interval}")
    print(f"""play it: lita arena 'lita:{{"weights": "{distilled.path}"}}'""")
    return distilled.exit_code


def _errors(report: dict[str, Any]) -> Table:
    from rich.table import Table

    table = Table("layer", "held-out samples", "student", "always the mean", "the heuristic", "explained")
    table.title, table.title_justify = "Root mean squared error of the outputs", "left"
    for layer, errors in report["error"].items():
        explained = "–" if errors["explained"] is None else f"{errors['explained']:.1%}"
        values = [f"{errors[name]:.4f}" for name in ("student", "mean", "zero")]
        table.add_row(layer, str(errors["rows"]), *values, explained)
    return table


def _agreement(report: dict[str, Any]) -> Table:
    from rich.table import Table

    table = Table("who", "decisions", "same kind", "same decision", "same goal quantity", "goal price off by")
    table.title, table.title_justify = "Agreement with the teacher, in its own situations", "left"
    names = {"student": "student", "zero": "the heuristic agent"}
    for name, agreement in report["agreement"].items():
        shares = [
            f"{agreement[share]:.1%}"
            for share in ("same_kind", "same_decision", "same_goal_quantity", "goal_price_gap")
        ]
        table.add_row(names[name], str(agreement["decisions"]), *shares)
    return table


def _costs(report: dict[str, Any]) -> Table:
    from rich.table import Table

    table = Table("CPU time per decision", "teacher", "student", "student / teacher")
    names = {"networks_us": "networks alone", "decision_us": "the whole decision"}
    for name, cost in report["cpu"].items():
        table.add_row(names[name], f"{cost['teacher']:.1f} µs", f"{cost['student']:.1f} µs", f"{cost['ratio']:.2f}")
    return table


@configuration
class RunsConfig:
    """List, show or compare training runs: parameters, data, stages, losses, evaluation, weights and log."""

    action: Annotated[Literal["list", "show", "compare"], Positional] = "list"
    """What to do."""

    runs: Annotated[tuple[Path, ...], Positional] = ()
    """Folders of runs, or their names inside --folder; for list, folders that hold runs."""

    folder: Path = Path("training_runs")
    """Folder with the runs."""

    output: Path | None = None
    """Write to this file, as HTML with curves if it ends in .html, else as Markdown. Default: print Markdown."""


def runs(config: RunsConfig) -> int:
    """Print or write the list, the record of a run, or the comparison."""
    from apexrl.runs.atomic import write_text
    from litaagent_std.hrl_xf.training.report import as_html, compare_runs, list_runs, show_run

    folders = [path if path.exists() else config.folder / path for path in config.runs]
    if config.action == "list":
        text = "\n\n".join(list_runs(folder) for folder in folders or [config.folder])
    elif config.action == "show":
        if len(folders) != 1:
            raise ConfigurationError(f"{len(folders)} runs are named", "show takes one", "write: lita runs show RUN")
        text = show_run(folders[0])
    else:
        if len(folders) < 2:
            raise ConfigurationError(f"{len(folders)} runs are named", "compare takes two or more", "name them all")
        text = compare_runs(folders)
    if config.output is None:
        print(text)
    else:
        html = config.output.suffix == ".html"
        write_text(config.output, as_html(text, folders) if html else text)
        print(config.output)
    return 0
