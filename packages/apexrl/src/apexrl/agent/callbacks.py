"""Callbacks: code of yours that runs at six points of every iteration, and may end training.

A callback takes the runner, or the runner and the iteration's statistics so far (``post_`` events only)::

    def on_iteration_end(runner, stats):
        return stats["rollout/mean_reward"] < 200  # False ends training after this iteration

Returning ``False`` or raising :class:`StopTraining` ends training at the end of the iteration; from ``pre_iteration``,
before it begins. Any other exception is an error and is raised as it is.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

EVENTS = ("pre_iteration", "post_iteration", "pre_rollout", "post_rollout", "pre_update", "post_update")

Callback = Callable[..., bool | None]


class StopTraining(Exception):  # noqa: N818 - a request, not an error
    """Raised by a callback to end training; its message says why."""


class Callbacks:
    """Callbacks by event, called in the order in which they were added."""

    def __init__(self) -> None:
        self._by_event: dict[str, list[tuple[Callback, bool]]] = {event: [] for event in EVENTS}

    def add(self, event: str, callback: Callback) -> None:
        """Register a callback.

        Raises:
            ValueError: The event does not exist.
            TypeError: The callback needs other arguments than the event gives.
        """
        if event not in self._by_event:
            raise ValueError(f"unknown event {event!r}: choose one of {', '.join(EVENTS)}")
        self._by_event[event].append((callback, _wants_stats(event, callback)))

    def emit(self, event: str, runner: object, stats: Mapping[str, float] | None = None) -> str | None:
        """Call the callbacks of an event.

        Returns:
            Why training should end, or None.
        """
        reason: str | None = None
        for callback, wants_stats in self._by_event[event]:
            name = getattr(callback, "__name__", type(callback).__name__)
            try:
                returned = callback(runner, dict(stats or {})) if wants_stats else callback(runner)
            except StopTraining as request:
                reason = reason or str(request) or f"{name} raised StopTraining at {event}"
            else:
                if returned is False:
                    reason = reason or f"{name} returned False at {event}"
        return reason


def _wants_stats(event: str, callback: Callback) -> bool:
    """Return whether a callback takes (runner, stats) instead of (runner)."""
    signature = inspect.signature(callback)
    given: list[tuple[Any, ...]] = [(None, None), (None,)] if event.startswith("post_") else [(None,)]
    for arguments in given:
        try:
            signature.bind(*arguments)
        except TypeError:
            continue
        return len(arguments) == 2
    offered = (
        "(runner) or (runner, stats)" if event.startswith("post_") else "(runner), because no statistics exist yet"
    )
    raise TypeError(
        f"a callback for {event!r} takes {offered}; got {getattr(callback, '__name__', callback)}{signature}"
    )
