"""How far a tournament has come: a status line, or a line per world, with the time that is left."""

from __future__ import annotations

import logging
import sys
import time
from typing import Final, TextIO

from apexrl.execution import TaskReport

__all__ = ["Progress", "duration"]

logger = logging.getLogger(__name__)

_STATUS_EVERY: Final = 60.0
"""Seconds between two status lines where they cannot be overwritten, such as in a file."""


def duration(seconds: float) -> str:
    """Seconds in words: ``45 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


class Progress:
    """Reports finished worlds.

    Args:
        total: Worlds of the plan.
        done: Worlds that had an outcome at the start.
        foreground: Whether every world is shown.
        quiet: Whether nothing is shown.
        stream: Where to; standard output when None.
    """

    def __init__(self, total: int, done: int, *, foreground: bool, quiet: bool, stream: TextIO | None = None) -> None:
        self._total, self._done, self._failed = total, done, 0
        self._at_start = done
        self._started = time.monotonic()
        self._foreground, self._quiet = foreground, quiet
        self._stream = stream or sys.stdout
        self._live = self._stream.isatty() and not foreground
        self._last_shown = -_STATUS_EVERY

    def finished(self, report: TaskReport, cpu_seconds: float | None) -> None:
        """Report one more world with an outcome."""
        self._done += 1
        outcome = f"{cpu_seconds:.1f} CPU s" if cpu_seconds is not None else f"FAILED: {report.attempts[-1].failure}"
        self._failed += cpu_seconds is None
        again = f", {len(report.attempts)} attempts" if report.retried else ""
        line = f"{report.label}: {outcome}{again}; {self.status()}"
        (logger.info if cpu_seconds is not None else logger.warning)("%s", line)
        if self._quiet:
            return
        if self._foreground:
            print(line, file=self._stream, flush=True)
        else:
            self._show_status()

    def status(self) -> str:
        """How far it has come, and when it will be over."""
        new, left = self._done - self._at_start, self._total - self._done
        spent = time.monotonic() - self._started
        eta = f", about {duration(spent / new * left)} left" if new and left else ""
        failed = f", {self._failed} failed" if self._failed else ""
        return f"{self._done} of {self._total} worlds{failed}{eta}"

    def close(self) -> None:
        """End the status line."""
        if self._live and not self._quiet:
            print(file=self._stream, flush=True)

    def _show_status(self) -> None:
        if self._live:
            print(f"\r\x1b[K{self.status()}", end="", file=self._stream, flush=True)
            return
        now = time.monotonic()
        if now - self._last_shown >= _STATUS_EVERY or self._done == self._total:
            self._last_shown = now
            print(self.status(), file=self._stream, flush=True)
