"""Virtual time inside negotiations: a function of the round, never of the machine's speed.

negmas measures a negotiation's time with the wall clock, which affects play in four ways: ``state.time`` in seconds,
``state.relative_time`` (through the league's limit of 60 seconds), that limit itself, and a random number that every
mechanism draws whenever its time crosses a whole second. In both engines of this package a round takes one virtual
millisecond instead. A negotiation of the league then lasts 20 ms, as on a very fast machine: no limit fires, no second
is crossed, and relative time counts rounds.
"""

from __future__ import annotations

from typing import Final

from litaagent_std.world.reproducible.streams import install

install()  # negmas binds functions of random and numpy.random when it is imported

from negmas.sao import SAOMechanism  # noqa: E402

__all__ = ["MAX_ROUNDS", "SECONDS_PER_ROUND", "VirtualTimeMechanism", "elapsed_seconds", "relative_time"]

SECONDS_PER_ROUND: Final = 0.001
MAX_ROUNDS: Final = 500
"""More rounds than this could cross a whole virtual second, or reach EmSel's threshold of 0.7 seconds."""


def elapsed_seconds(round_: int) -> float:
    """Return the virtual seconds of ``round_`` completed rounds."""
    return round_ * SECONDS_PER_ROUND


def relative_time(round_: int, n_rounds: int) -> float:
    """Return the fraction of a negotiation that has passed: (round + 1) / (rounds + 1), at most 1."""
    return min(1.0, (round_ + 1) / (n_rounds + 1))


class VirtualTimeMechanism(SAOMechanism):  # type: ignore[misc]  # negmas has no type information
    """negmas's alternating offers with the virtual clock instead of the wall clock."""

    @property
    def time(self) -> float:
        """Virtual seconds since the start."""
        return elapsed_seconds(self._current_state.step)

    @property
    def remaining_time(self) -> float | None:
        """Virtual seconds left, or None if there is no limit."""
        limit: float = self._internal_nmi.time_limit
        return None if limit == float("inf") else max(0.0, limit - self.time)
