"""``lita hmasd render``: pictures of a checkpoint of ``lita hmasd train``."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from apexrl.configuration import configuration


@configuration
class Config:
    """Draw an animated episode, skill usage, discriminator confusion and the evaluation curve, as SVG files."""

    model_path: Annotated[Path, Positional]
    """The checkpoint, for instance models/hmasd_sync_enhanced_final.pth."""
    out: Path = Path("pictures")
    """Folder of the pictures."""
    metrics: Path | None = None
    """Metrics of the run, for instance logs/metrics.jsonl, for the evaluation curve."""
    seed: int = 0
    """Seed of the episodes that are drawn."""


def run(config: Config) -> int:
    """Write the pictures and name them."""
    from hmasd.pictures.album import render_checkpoint, render_metrics

    written = render_checkpoint(config.model_path, config.out, config.seed)
    if config.metrics is not None:
        written += render_metrics(config.metrics, config.out, config.model_path.stem)
    for path in written:
        print(path)
    return 0
