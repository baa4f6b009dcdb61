"""Metrics on the console: a progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


class ConsoleSink:
    """Shows the step and the latest values.

    Args:
        total: The step at which the run ends; None if unknown.
        shown: The metrics to show, in this order; None shows all.
        title: Text before the bar or the line.
        seconds: The least time between two plain lines. The first one and the last one always appear.
        console: Where to write; if None, standard error.
        clock: Seconds that only grow, for tests.
    """

    def __init__(
        self,
        total: int | None = None,
        *,
        shown: Sequence[str] | None = None,
        title: str = "step",
        seconds: float = 5.0,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from rich.console import Console  # here, so that a command's --help does not wait for it

        self._console = console or Console(stderr=True)
        self._total = total
        self._shown = shown
        self._title = title
        self._seconds = seconds
        self._clock = clock
        self._latest: dict[str, float] = {}
        self._printed_at: float | None = None
        self._pending: str | None = None
        self._progress = self._start_bar() if self._console.is_terminal else None

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Show the latest value of every metric seen so far."""
        chosen = metrics if self._shown is None else {name: metrics[name] for name in self._shown if name in metrics}
        self._latest.update(chosen)
        values = "  ".join(f"{name} {value:.4g}" for name, value in self._latest.items())
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], completed=step, values=values)
            return
        of_total = "" if self._total is None else f"/{self._total}"
        self._pending = f"{self._title} {step}{of_total}  {values}".rstrip()
        now = self._clock()
        if self._printed_at is None or now - self._printed_at >= self._seconds:
            self._printed_at = now
            self._print_pending()

    def flush(self) -> None:
        """Do nothing: only the rate limit holds lines back, on purpose."""

    def close(self) -> None:
        """Show the last values and end the bar."""
        self._print_pending()
        if self._progress is not None:
            self._progress.stop()

    def _start_bar(self) -> Progress:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        progress = Progress(
            TextColumn(self._title),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[values]}"),
            console=self._console,
        )
        progress.add_task(self._title, total=self._total, values="")
        progress.start()
        return progress

    def _print_pending(self) -> None:
        if self._pending is not None:
            # No wrapping, no markup, no colours: the line may end in a log file.
            self._console.print(self._pending, soft_wrap=True, markup=False, highlight=False)
            self._pending = None
