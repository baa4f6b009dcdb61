"""Which agents have a native version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from scml.std.agents import GreedyStdAgent, RandomStdAgent, SyncRandomStdAgent

from litaagent_std.world.native.agent import NativeAgent, NativeSeat
from litaagent_std.world.native.greedy import NativeGreedy
from litaagent_std.world.native.random import NativeRandom
from litaagent_std.world.native.sync_random import NativeSyncRandom

Defaults = Literal["hosted", "native"]
"""Who plays the league's default agents: agent objects, or native agents."""

_NATIVE_TYPES: Final[dict[type, type[NativeAgent]]] = {
    GreedyStdAgent: NativeGreedy,
    RandomStdAgent: NativeRandom,
    SyncRandomStdAgent: NativeSyncRandom,
}


def make_native_agent(
    seat: NativeSeat, n_days: int, n_levels: int, relative_times: Sequence[float]
) -> NativeAgent | None:
    """Make the native version of a seat's agent, or return None if it has to be hosted.

    Only the default agents themselves have one; classes derived from them are hosted.

    Args:
        seat: The seat, with its agent.
        n_days: Days of the world.
        n_levels: Levels of the world.
        relative_times: Relative time of a negotiation by completed rounds.
    """
    native_type = _NATIVE_TYPES.get(type(seat.agent))
    if native_type is None:
        return None
    n_rounds = len(relative_times) - 2
    if native_type is NativeGreedy and not NativeGreedy.can_play(seat, n_days, n_rounds):
        return None
    return native_type(seat, n_days, n_levels, relative_times)
