"""Suppression of agents' output: many print and warn in every call."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

__all__ = ["silence"]


@contextmanager
def silence() -> Iterator[None]:
    """Suppress output and warnings inside the block."""
    with (
        Path(os.devnull).open("w") as devnull,
        redirect_stdout(devnull),
        redirect_stderr(devnull),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield
