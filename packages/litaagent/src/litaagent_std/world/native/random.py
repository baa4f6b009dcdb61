"""The native `RandomStdAgent`: it proposes random outcomes, and accepts or ends at random."""

from __future__ import annotations

from collections.abc import Sequence

from litaagent_std.world.events import ACCEPT, END, REJECT, Outcome
from litaagent_std.world.native.agent import Limits, Link, NativeAgent, NativeSeat
from litaagent_std.world.native.draws import between


class NativeRandom(NativeAgent):
    """Ends with one probability, accepts with another, and else proposes a random outcome."""

    def __init__(self, seat: NativeSeat, n_days: int, n_levels: int, relative_times: Sequence[float]) -> None:
        super().__init__(seat, n_days, n_levels, relative_times)
        self._p_end: float = seat.agent.p_end
        self._p_accept: float = seat.agent.p_accept

    def respond(self, link: Link, step: int, offer: Outcome) -> int:
        """Return the response to an offer."""
        if self.uniform() < self._p_end:
            return END
        return ACCEPT if self.uniform() < self._p_accept else REJECT

    def limits(self, link: Link, step: int, day: int) -> Limits:
        """Return what it may accept: everything, by chance."""
        _, most, _, _, low, high = self.sold if link.selling else self.bought
        return Limits(most, low if link.selling else high, (1 - self._p_end) * self._p_accept)

    def propose(self, link: Link, step: int) -> Outcome:
        """Return a random outcome."""
        bits = self.bits
        q_low, q_high, d_low, d_high, p_low, p_high = self.sold if link.selling else self.bought
        return between(q_low, q_high, bits), between(d_low, d_high, bits), between(p_low, p_high, bits)
