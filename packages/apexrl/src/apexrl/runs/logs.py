"""The log file of a run."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from apexrl.runs.atomic import StrPath, write_failure

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@contextmanager
def log_to_file(path: StrPath, level: int = logging.INFO) -> Iterator[None]:
    """Append everything that is logged in this process to ``path`` while the block runs.

    Warnings still reach standard error if nobody else has arranged for it.

    Args:
        path: The log file.
        level: The least level that is written.

    Raises:
        WriteFailedError: If the file cannot be opened.
    """
    root = logging.getLogger()
    try:
        handlers: list[logging.Handler] = [logging.FileHandler(path, encoding="utf-8")]
    except OSError as error:
        raise write_failure(error, path) from error
    handlers[0].setFormatter(logging.Formatter(_FORMAT))
    handlers[0].setLevel(level)
    if not root.handlers and logging.lastResort is not None:
        handlers.append(logging.lastResort)  # silenced by Python as soon as the root has another handler
    before = root.level
    root.setLevel(min(before, level) if before else level)
    for handler in handlers:
        root.addHandler(handler)
    try:
        yield
    finally:
        for handler in handlers:
            root.removeHandler(handler)
        handlers[0].close()
        root.setLevel(before)
