"""``lita hmasd render``: pictures of a checkpoint of ``lita hmasd train``."""

from pathlib import Path
from typing import Annotated

from pydantic import Field
from tyro.conf import Positional

from apexrl.configuration import configuration
from apexrl.runs.errors import ConfigurationError


@configuration
class Config:
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


def run(config: Config) -> int:
    """Write the pictures and name them."""
    from hmasd.pictures.album import render_checkpoint, render_metrics

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
