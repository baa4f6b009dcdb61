"""``lita hmasd train``, ``eval``, ``render`` and ``settings``: skill discovery; needs the extra `hmasd`."""

from hmasd.command import evaluate, render, settings, train

__all__ = ["evaluate", "render", "settings", "train"]
