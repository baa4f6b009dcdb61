"""The one logger of metrics, and the sinks it feeds.

Steps never decrease. A run logs everything that belongs to a step *before* it saves the checkpoint of that
step: a resumed run keeps the metrics up to the checkpoint's step and logs the later ones again, so it ends
with the same file as an uninterrupted one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Protocol, Self, SupportsFloat

from apexrl.runs.errors import MetricError

_RESERVED = frozenset({"", "step", "time"})


class MetricSink(Protocol):
    """A destination of metrics."""

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write the metrics of a step; there may be several calls per step."""

    def flush(self) -> None:
        """Make what was written so far survive the end of the process."""

    def close(self) -> None:
        """Flush and close files. The logger calls it once."""


class MetricLogger:
    """Checks metrics and hands them to every sink. A context manager that closes the sinks.

    Args:
        sinks: Where metrics go, in this order.
        after_step: The step a resumed run continues from; smaller ones are refused.
    """

    def __init__(self, sinks: Sequence[MetricSink], after_step: int | None = None) -> None:
        self._sinks = tuple(sinks)
        self._step = 0 if after_step is None else after_step
        self._is_closed = False

    def log(self, step: int, metrics: Mapping[str, SupportsFloat]) -> None:
        """Log metrics of a step. NaN and infinities are allowed and shown as such.

        Args:
            step: Not smaller than in any call before.
            metrics: Names such as ``loss/value``; names that start with ``time/`` are what the clock decides
                and stay out of comparisons.

        Raises:
            MetricError: If the step goes back, or a name or a value is not valid.
            ValueError: If the logger is closed.
        """
        if self._is_closed:
            raise ValueError(f"metrics of step {step} come after the logger was closed")
        if step < self._step:
            raise MetricError(
                f"metrics of step {step} after step {self._step}",
                "steps must not decrease",
                "log in the order of steps, or resume from an earlier checkpoint",
            )
        values = {_checked_name(name): _checked_value(name, value) for name, value in metrics.items()}
        self._step = step
        for sink in self._sinks:
            sink.write(step, values)

    def flush(self) -> None:
        """Make what was logged so far survive; call it before saving a checkpoint. Does nothing when closed."""
        if not self._is_closed:
            for sink in self._sinks:
                sink.flush()

    def close(self) -> None:
        """Flush and close every sink, even if closing one of them fails; a second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            with ExitStack() as closing:
                for sink in self._sinks:
                    closing.callback(sink.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _checked_name(name: str) -> str:
    if name in _RESERVED or not name.isprintable():
        raise MetricError(
            f"a metric is named {name!r}",
            f"a name is printable and none of {sorted(_RESERVED)}",
            "rename it, for instance to 'train/step'",
        )
    return name


def _checked_value(name: str, value: SupportsFloat) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise MetricError(
            f"metric {name!r} is {value!r}", "a metric is one number", "reduce it first, for instance by .mean()"
        ) from error
    return math.nan if math.isnan(number) else number
