"""The trace of a world: one fingerprint per event, to compare two runs in little memory."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable
from typing import Any

from litaagent_std.world.events import WorldObserver

__all__ = ["Trace", "Window", "first_difference"]


class Trace(WorldObserver):
    """An observer that fingerprints every event.

    Attributes:
        fingerprints: One 64-bit fingerprint per event, in order.
        counts: Number of events by kind.
    """

    def __init__(self) -> None:
        self.fingerprints = array("Q")
        self.counts: dict[str, int] = {}

    def record(self, kind: str, event: tuple[Any, ...]) -> None:
        """Record an event."""
        text = f"{kind}{event!r}".encode()
        self.fingerprints.append(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little"))
        self.counts[kind] = self.counts.get(kind, 0) + 1

    @property
    def digest(self) -> str:
        """Fingerprint of the whole trace."""
        return hashlib.sha256(self.fingerprints.tobytes()).hexdigest()


class Window(Trace):
    """A trace that also keeps the texts of the events around one position.

    Args:
        centre: The position.
        before: How many events before it to keep.
    """

    def __init__(self, centre: int, before: int = 4) -> None:
        super().__init__()
        self._first, self._last = centre - before, centre
        self.texts: list[str] = []

    def record(self, kind: str, event: tuple[Any, ...]) -> None:
        """Record an event, and keep its text if it is near the centre."""
        if self._first <= len(self.fingerprints) <= self._last:
            shown = ", ".join(str(part) for part in event)
            self.texts.append(f"{kind.removeprefix('on_')}: {shown}")
        super().record(kind, event)


def _recorder(kind: str) -> Callable[..., None]:
    def record(self: Trace, *event: Any) -> None:  # noqa: ANN401  # events of every kind
        self.record(kind, event)

    record.__name__ = kind
    record.__doc__ = f"Record ``{kind}``."
    return record


for _kind in [name for name in vars(WorldObserver) if name.startswith("on_")]:
    setattr(Trace, _kind, _recorder(_kind))


def first_difference(trace: Trace, other: Trace) -> int | None:
    """Return the position of the first event that differs, or None if the traces are the same."""
    if trace.fingerprints == other.fingerprints:
        return None
    pairs = enumerate(zip(trace.fingerprints, other.fingerprints, strict=False))
    shorter = min(len(trace.fingerprints), len(other.fingerprints))
    return next((position for position, (a, b) in pairs if a != b), shorter)
