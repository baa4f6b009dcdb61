"""``lita hmasd train``, ``eval``, ``render`` and ``settings``: skill discovery; needs the extra `hmasd`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field
from rich.console import Console
from rich.table import Table
from tyro.conf import Positional

from apexrl.configuration import configuration
from apexrl.runs.errors import ConfigurationError
from hmasd.command import TrainCommand


def train(config: TrainCommand) -> int:
    """Train, resume or evaluate."""
    from hmasd import command

    return command.run(config)


@configuration
class EvalConfig:
    """Play whole episodes with a checkpoint's policy and print the means as JSON."""

    model_path: Annotated[Path, Positional]
    """The checkpoint, for instance models/hmasd_sync_enhanced_final.pth."""
    task: str | None = None
    """The checkpoint's task; needed for `pettingzoo:MODULE` only, because that module is imported."""
    episodes: Annotated[int, Field(ge=1)] | None = None
    """Number of episodes; as many as in training if not given, which then gives the same result as training did."""
    deterministic: bool | None = None
    """Take the most probable skills and actions (True) or draw them (False); as training did if not given."""


def evaluate(config: EvalConfig) -> int:
    """Evaluate and print."""
    from hmasd import command

    changes = [] if config.task is None else [f"task={config.task}"]
    if config.episodes is not None:
        changes.append(f"eval_episodes={config.episodes}")
    if config.deterministic is not None:
        changes.append(f"eval_deterministic={str(config.deterministic).lower()}")
    return command.run(command.TrainCommand(model_path=config.model_path, eval_only=True, set=tuple(changes)))


@configuration
class RenderConfig:
    """Draw an animated episode, skill usage, discriminator confusion and the evaluation curve, as SVG files."""

    model_path: Annotated[Path, Positional]
    """The checkpoint, for instance models/hmasd_sync_enhanced_final.pth."""
    out: Path = Path("pictures")
    """Folder of the pictures."""
    metrics: Path | None = None
    """Metrics of the run, for instance logs/metrics.jsonl, for the evaluation curve."""
    task: str | None = None
    """The checkpoint's task; needed for `pettingzoo:MODULE` only, because that module is imported."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Seed of the episodes that are drawn."""


def render(config: RenderConfig) -> int:
    """Write the pictures and name them."""
    from hmasd.pictures.render import render_checkpoint, render_metrics

    if config.metrics is not None and not config.metrics.is_file():
        raise ConfigurationError(
            f"--metrics {config.metrics}: there is no such file; `lita hmasd train` writes logs/metrics.jsonl"
        )
    written = render_checkpoint(config.model_path, config.out, config.seed, config.task)
    if config.metrics is not None:
        written += render_metrics(config.metrics, config.out, config.model_path.stem)
    for path in written:
        print(path)
    return 0


@configuration
class SettingsConfig:
    """List every setting of `lita hmasd train` with its default and its meaning."""

    preset: str | None = None
    """Show the values of this preset instead of the defaults: paper, uav_coverage or uav_relay."""


def settings(config: SettingsConfig) -> int:
    """Print the table."""
    from hmasd.config.presets import preset
    from hmasd.config.settings import settings

    table = Table("setting", "value", "meaning")
    for setting in settings(preset(config.preset) if config.preset else None):
        also = f" (also {setting.symbol})" if setting.symbol else ""
        table.add_row(setting.name, repr(setting.value), setting.meaning + also)
    Console().print(table)
    return 0
