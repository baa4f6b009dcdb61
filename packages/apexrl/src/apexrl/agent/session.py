"""One call of ``learn``: its goal, its end, its metrics and progress, and its result."""

import logging
import math
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from apexrl.runs.metrics.console import ConsoleSink
from apexrl.runs.metrics.jsonl import JsonlSink
from apexrl.runs.metrics.logger import MetricLogger, MetricSink
from apexrl.runs.metrics.tensorboard import TensorBoardSink
from apexrl.runs.signals import StopRequest, stop_on_signals

logger = logging.getLogger(__name__)

SHOWN = ("episode/mean_reward", "episode/mean_length", "eval/mean_reward", "train/loss", "time/steps_per_second")
"""What the progress line shows, where it exists."""


@dataclass(frozen=True)
class Goal:
    """How far one call of ``learn`` goes.

    Attributes:
        asked: The total of steps that was asked for.
        start: Steps done before the call.
        per_iteration: Steps per iteration.
    """

    asked: int
    start: int
    per_iteration: int

    @property
    def reached_at(self) -> int:
        """The total after the last full iteration that is needed: ``asked``, or up to one rollout more."""
        missing = max(0, self.asked - self.start)
        return self.start + math.ceil(missing / self.per_iteration) * self.per_iteration

    def progress(self, total: int) -> float:
        """Return the share of the whole run that is done."""
        return min(1.0, total / self.reached_at) if self.reached_at else 1.0


def make_goal(start: int, per_iteration: int, total_timesteps: int | None, num_iterations: int | None) -> Goal:
    """Return the goal from exactly one of the two ways to ask.

    Args:
        start: Steps done before.
        per_iteration: Steps per iteration.
        total_timesteps: The run's total, steps done before included, so that the same call resumes a run.
        num_iterations: Further iterations.
    """
    if (total_timesteps is None) == (num_iterations is None):
        raise ValueError(
            f"learn() got total_timesteps={total_timesteps} and num_iterations={num_iterations}; give exactly one"
        )
    if total_timesteps is not None:
        if total_timesteps < 1:
            raise ValueError(f"total_timesteps={total_timesteps} must be at least 1")
        return Goal(total_timesteps, start, per_iteration)
    assert num_iterations is not None  # checked above
    if num_iterations < 1:
        raise ValueError(f"num_iterations={num_iterations} must be at least 1")
    return Goal(start + num_iterations * per_iteration, start, per_iteration)


@dataclass(frozen=True)
class LearnResult:
    """Result of a call of ``learn``.

    Attributes:
        total_timesteps: Steps of the whole run.
        asked_timesteps: What was asked for.
        iterations: Iterations of the whole run.
        stopped_by: ``goal``, ``callback``, ``signal`` or ``time``.
        reason: One sentence.
    """

    total_timesteps: int
    asked_timesteps: int
    iterations: int
    stopped_by: str
    reason: str

    @property
    def is_exact(self) -> bool:
        """Whether exactly the asked number of steps was made."""
        return self.total_timesteps == self.asked_timesteps


class Session:
    """Everything around the loop: signals, the clock, metric sinks, and callbacks that ask to stop.

    Args:
        goal: How far to go.
        emit: Calls the callbacks of an event and returns why to stop, if so.
        log_dir: Where metrics go; None for nowhere.
        max_seconds: Wall-clock budget; None for none.
        show_progress: Whether to draw the bar or print lines.
    """

    def __init__(
        self,
        goal: Goal,
        emit: Callable[[str, Mapping[str, float] | None], str | None],
        log_dir: Path | None,
        max_seconds: float | None,
        show_progress: bool,
    ) -> None:
        self.goal = goal
        self._emit = emit
        self._log_dir = log_dir
        self._deadline = math.inf if max_seconds is None else time.monotonic() + max_seconds
        self._show = show_progress
        self._callback_reason: str | None = None
        self._stack = ExitStack()
        self._lap_wall = time.monotonic()
        self._lap_cpu = time.process_time()

    def __enter__(self) -> Self:
        after = self.goal.start or None
        self._stop: StopRequest = self._stack.enter_context(stop_on_signals())
        sinks: list[MetricSink] = []
        if self._log_dir is not None:
            sinks = [TensorBoardSink(self._log_dir, after), JsonlSink(self._log_dir / "metrics.jsonl", after)]
        self._metrics = self._stack.enter_context(MetricLogger(sinks, after))
        self._console = ConsoleSink(self.goal.reached_at, shown=SHOWN, title="steps") if self._show else None
        if self._console is not None:
            self._stack.callback(self._console.close)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def emit(self, event: str, stats: Mapping[str, float] | None = None) -> None:
        """Call the callbacks of an event and remember if one asks to stop."""
        self._callback_reason = self._emit(event, stats) or self._callback_reason

    def is_over(self, total: int) -> bool:
        """Return whether the loop should end before another iteration."""
        return (
            total >= self.goal.asked
            or self._callback_reason is not None
            or self._stop.requested
            or time.monotonic() >= self._deadline
        )

    @property
    def interrupted(self) -> bool:
        """Whether a signal asked to stop."""
        return self._stop.requested

    def throughput(self, steps: int) -> dict[str, float]:
        """Compute steps per second of wall clock and of CPU time since the last call."""
        wall, cpu = time.monotonic(), time.process_time()
        stats = {
            "time/steps_per_second": steps / max(wall - self._lap_wall, 1e-9),
            "time/steps_per_cpu_second": steps / max(cpu - self._lap_cpu, 1e-9),
            "time/iteration_seconds": wall - self._lap_wall,
        }
        self._lap_wall, self._lap_cpu = wall, cpu
        return stats

    def report(self, total: int, stats: Mapping[str, float], log: bool) -> None:
        """Move the progress bar, and log the metrics if it is time to."""
        if self._console is not None:
            self._console.write(total, stats)
        if log:
            self._metrics.log(total, stats)

    def flush(self) -> None:
        """Write logged metrics to disk; called before a checkpoint, so that they are never behind it."""
        self._metrics.flush()

    def result(self, total: int, iterations: int) -> LearnResult:
        """Return the result of the call, and log it."""
        asked = self.goal.asked
        if total >= asked:
            over = total - asked
            stopped_by = "goal"
            reason = f"reached {total} steps, exactly as asked"
            if over:
                rollout = self.goal.per_iteration
                reason = (
                    f"reached {total} steps: {asked} asked, {over} more to the end of the last rollout of {rollout}"
                )
        elif self._callback_reason is not None:
            stopped_by, reason = "callback", self._callback_reason
        elif self._stop.requested:
            stopped_by, reason = "signal", f"stopped by {self._stop.signal.name if self._stop.signal else 'request'}"
        else:
            stopped_by, reason = "time", "the wall-clock budget is used up"
        logger.info("learn ended after %d iterations: %s", iterations, reason)
        return LearnResult(total, asked, iterations, stopped_by, reason)
