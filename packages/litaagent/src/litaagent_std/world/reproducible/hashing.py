"""String hashing that does not change from process to process.

Many agents, scml's SyncRandom and Penguin among them, iterate over sets of partners' names. The order of such a set
follows Python's string hashing, which is salted at random in every process unless ``PYTHONHASHSEED`` is set before
Python starts. So reproducible worlds need ``PYTHONHASHSEED=0``: programs call :func:`restart_with_fixed_hashing`
first, processes that they start inherit it, and a world in a process without it warns.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["UnstableHashingWarning", "fixed_for_workers", "is_fixed", "restart_with_fixed_hashing", "warn_unless_fixed"]

_VARIABLE = "PYTHONHASHSEED"


class UnstableHashingWarning(UserWarning):
    """The world may come out differently in another process."""


def is_fixed() -> bool:
    """Return whether strings hash in this process as in any other with ``PYTHONHASHSEED=0``."""
    return not sys.flags.hash_randomization


def restart_with_fixed_hashing() -> None:
    """Restart the running program with fixed hashing, unless it has it; call it before any work."""
    if is_fixed():
        return
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, _VARIABLE: "0"})


@contextmanager
def fixed_for_workers() -> Iterator[None]:
    """Give processes that are started inside the block fixed hashing; this process stays as it is."""
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before


def warn_unless_fixed() -> None:
    """Warn if this process salts its hashes."""
    if not is_fixed():
        warnings.warn(
            f"Python salts the hashes of strings in this process ({_VARIABLE}={os.environ.get(_VARIABLE)!r}), "
            "so agents that iterate over sets of names play differently in every process; "
            f"start Python with {_VARIABLE}=0 to make worlds repeat",
            UnstableHashingWarning,
            stacklevel=2,
        )
