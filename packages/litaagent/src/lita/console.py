"""Where the commands print their tables."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def plain_console(width: int | None = None, *, highlight: bool = True) -> Console:
    """Return a console that prints texts as they are: ``[dashboard]`` is no markup, and ``:x:`` no picture.

    Args:
        width: Width of the tables where the output is no terminal; default: rich's.
        highlight: Whether numbers and paths are coloured.
    """
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else width, markup=False, emoji=False, highlight=highlight)
