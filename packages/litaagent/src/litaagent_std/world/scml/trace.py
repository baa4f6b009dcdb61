"""A world's story as one fingerprint per event, to compare two runs in little memory."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable
from typing import Any

from litaagent_std.world.events import WorldObserver

__all__ = ["Trace", "Window", "first_difference"]


class Trace(WorldObserver):
    """Fingerprints every event.

    Attributes:
        prints: A 64-bit fingerprint per event, in order.
        counts: Events by kind.
    """

    def __init__(self) -> None:
        self.prints = array("Q")
        self.counts: dict[str, int] = {}

    def record(self, kind: str, event: tuple[Any, ...]) -> None:
        """Take one event in."""
        text = f"{kind}{event!r}".encode()
        self.prints.append(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little"))
        self.counts[kind] = self.counts.get(kind, 0) + 1

    @property
    def digest(self) -> str:
        """One fingerprint of the whole story."""
        return hashlib.sha256(self.prints.tobytes()).hexdigest()


class Window(Trace):
    """Also keeps the texts of the events around one position.

    Args:
        centre: The position of interest.
        before: How many events before it to keep.
    """

    def __init__(self, centre: int, before: int = 4) -> None:
        super().__init__()
        self._first, self._last = centre - before, centre
        self.texts: list[str] = []

    def record(self, kind: str, event: tuple[Any, ...]) -> None:
        """Take one event in, and keep its text if it is near the centre."""
        if self._first <= len(self.prints) <= self._last:
            shown = ", ".join(str(part) for part in event)
            self.texts.append(f"{kind.removeprefix('on_')}: {shown}")
        super().record(kind, event)


def _recorder(kind: str) -> Callable[..., None]:
    def hear(self: Trace, *event: Any) -> None:  # noqa: ANN401  # events of every kind
        self.record(kind, event)

    hear.__name__ = kind
    hear.__doc__ = f"Records ``{kind}``."
    return hear


for _kind in [name for name in vars(WorldObserver) if name.startswith("on_")]:
    setattr(Trace, _kind, _recorder(_kind))


def first_difference(one: Trace, other: Trace) -> int | None:
    """Return the position of the first event that differs, or None if the stories are the same."""
    if one.prints == other.prints:
        return None
    pairs = enumerate(zip(one.prints, other.prints, strict=False))
    shorter = min(len(one.prints), len(other.prints))
    return next((position for position, (a, b) in pairs if a != b), shorter)
