"""``lita hmasd train``: hierarchical skill discovery, its baselines and its ablations."""

from hmasd.command import TrainCommand as Config
from hmasd.command import run

__all__ = ["Config", "run"]
