"""Which seats get a native mind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Literal

from scml.std.agents import GreedyStdAgent, RandomStdAgent, SyncRandomStdAgent

from litaagent_std.world.native.agent import NativeAgent
from litaagent_std.world.native.greedy import NativeGreedy
from litaagent_std.world.native.negotiation import native_turn
from litaagent_std.world.native.random import NativeRandom
from litaagent_std.world.native.sync_random import NativeSyncRandom

if TYPE_CHECKING:
    from litaagent_std.world.fast.seats import Seat

Defaults = Literal["hosted", "native"]
"""Who plays the league's default agents: agent objects, or the engine itself."""

_MINDS: Final[dict[type, type[NativeAgent]]] = {
    GreedyStdAgent: NativeGreedy,
    RandomStdAgent: NativeRandom,
    SyncRandomStdAgent: NativeSyncRandom,
}


def assign_native_agents(
    seats: Iterable[Seat],
    n_days: int,
    n_levels: int,
    relative_times: Sequence[float],
    tell_decision: Callable[[int], None] | None,
) -> None:
    """Give native minds to the seats of default agents; classes derived from them stay hosted.

    Args:
        seats: All seats, with their agents.
        n_days: Days of the world.
        n_levels: Levels of the world.
        relative_times: Relative time of a negotiation by completed rounds.
        tell_decision: Who hears when a mind decides for all its partners, if anybody does.
    """
    n_rounds = len(relative_times) - 2
    for seat in seats:
        kind = _MINDS.get(type(seat.agent))
        if kind is None or (kind is NativeGreedy and not NativeGreedy.can_play(seat, n_days, n_rounds)):
            continue
        seat.mind = kind(seat, n_days, n_levels, relative_times)
        seat.turn = native_turn
        seat.is_sync = False
        seat.tell_decision = tell_decision
