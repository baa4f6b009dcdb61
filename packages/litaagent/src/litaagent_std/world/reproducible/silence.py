"""Suppression of agents' output: many print and warn in every call."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

__all__ = ["silence"]


@contextmanager
def _redirected(descriptor: int, target: int) -> Iterator[None]:
    """Let a descriptor of the process lead elsewhere inside the block."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, or None
            stream.flush()
    try:
        kept = os.dup(descriptor)
    except OSError:  # it is closed
        yield
        return
    os.dup2(target, descriptor)
    try:
        yield
    finally:
        os.dup2(kept, descriptor)
        os.close(kept)


@contextmanager
def silence() -> Iterator[None]:
    """Suppress output and warnings inside the block, also what is written to the descriptors themselves."""
    with (
        Path(os.devnull).open("w") as devnull,
        _redirected(1, devnull.fileno()),
        _redirected(2, devnull.fileno()),
        redirect_stdout(devnull),
        redirect_stderr(devnull),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield
