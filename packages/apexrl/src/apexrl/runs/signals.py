"""Ctrl-C, SIGTERM and a closed terminal (SIGHUP) as a request to stop.

A loop asks ``stop.requested`` between two units of work, saves, and leaves::

    with stop_on_signals() as stop:
        while step < total and not stop.requested:
            ...
    save()

A second signal does not wait for the loop: it interrupts at once.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_SIGNALS = [number for number in signal.Signals if number.name in ("SIGINT", "SIGTERM", "SIGHUP")]
"""Those of the three that this system has."""


class StopRequest:
    """Whether somebody has asked to stop, and how.

    Attributes:
        signal: The signal that asked, or None.
        requested: Whether to save and leave.
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self.requested = False

    @property
    def exit_code(self) -> int:
        """The exit code that shells expect: 128 + the signal's number, or 0."""
        return 0 if self.signal is None else 128 + self.signal

    def request(self) -> None:
        """Ask to stop, from a callback or a test."""
        self.requested = True

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Take note of a signal; on the second one, interrupt at once.

        Raises:
            KeyboardInterrupt: On a second Ctrl-C.
            SystemExit: On a second SIGTERM or SIGHUP.
        """
        if self.signal is not None:
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            raise SystemExit(128 + number)
        self.signal = signal.Signals(number)
        self.requested = True
        # Not by logging: a handler may interrupt a write to the very same stream.
        with suppress(OSError):  # the terminal may be gone
            os.write(2, f"{self.signal.name}: saving, then leaving; once more to leave at once\n".encode())


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Turn SIGINT, SIGTERM and SIGHUP into a request while the block runs, then restore the old handlers.

    SIGHUP stays ignored where it is, as under ``nohup``.

    Outside the main thread, where Python allows no handlers, the request can only come from
    :meth:`StopRequest.request`.
    """
    stop = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {
        number: signal.signal(number, stop.handle)
        for number in _SIGNALS
        if not (number.name == "SIGHUP" and signal.getsignal(number) is signal.SIG_IGN)
    }
    try:
        yield stop
    finally:
        for number, handler in before.items():
            # None: the old handler was not installed from Python and cannot be put back by it.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
