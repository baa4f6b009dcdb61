"""Pictures: evaluation curves, skill usage, discriminator confusion and animated episodes, as SVG files."""

from hmasd.pictures.render import render_checkpoint, render_metrics

__all__ = ["render_checkpoint", "render_metrics"]
