"""Pictures: learning curves, skill usage, discriminator confusion and animated episodes, as SVG files."""

from hmasd.pictures.curves import Curve, curve_over_seeds, learning_curves
from hmasd.pictures.render import render_checkpoint, render_metrics

__all__ = ["Curve", "curve_over_seeds", "learning_curves", "render_checkpoint", "render_metrics"]
