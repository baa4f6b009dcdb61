"""The log file of a run."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from apexrl.runs.atomic import StrPath, write_failure

logger = logging.getLogger(__name__)

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _LogFile(logging.FileHandler):
    """A log file that ends with one warning when nothing more can be written to it.

    Args:
        path: The log file.
    """

    def __init__(self, path: StrPath) -> None:
        super().__init__(path, encoding="utf-8")
        self._name = os.fspath(path)
        self._has_failed = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, unless writing has failed before."""
        if not self._has_failed:
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Warn that the file cannot be written; other errors are mistakes in a logging call."""
        error = sys.exception()
        if isinstance(error, OSError):
            self._fail(error)
        else:
            super().handleError(record)

    def close(self) -> None:
        """Close the file; what could not be written is lost."""
        try:
            super().close()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        if not self._has_failed:
            self._has_failed = True  # first, because the warning comes here too
            logger.warning(
                "cannot write the log file %r: %s. Nothing more is logged there. Free some space before the next run.",
                self._name,
                error.strerror or error,
            )


@contextmanager
def log_to_file(path: StrPath, level: int = logging.INFO) -> Iterator[None]:
    """Append everything that is logged in this process to ``path`` while the block runs.

    Warnings still reach standard error if nobody else has arranged for it. When nothing more can be written to the
    file, because the disk is full for instance, one warning says so and the block continues without it.

    Args:
        path: The log file.
        level: The least level that is written.

    Raises:
        WriteFailedError: If the file cannot be opened.
    """
    root = logging.getLogger()
    try:
        handlers: list[logging.Handler] = [_LogFile(path)]
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
        root.setLevel(before)
        handlers[0].close()
