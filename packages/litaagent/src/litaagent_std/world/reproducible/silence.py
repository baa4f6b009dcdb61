"""Keeping agents quiet: many print and warn in every call."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

__all__ = ["silence"]


@contextmanager
def silence() -> Iterator[None]:
    """Swallows what agents print and what they warn of."""
    with (
        Path(os.devnull).open("w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield
