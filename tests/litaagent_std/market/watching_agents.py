"""Agents that note what they see, to compare it with what a record says they saw."""

from scml.std.agents.greedy import GreedyStdAgent
from scml.std.agents.rand import RandomStdAgent

from litaagent_std.policy.observation import Offer, observe_calendar, observe_day

DAYS: dict[str, list[object]] = {}
CALENDARS: dict[str, list[object]] = {}


class _Watches:
    def before_step(self):
        super().before_step()
        seen = DAYS.setdefault(self.id, [])
        seen.append(observe_day(self.awi, seen[-1] if seen else None))

    def respond(self, negotiator_id, state, source=None):
        note = (self.awi.current_step, negotiator_id, state.step, state.relative_time, Offer(*state.current_offer))
        CALENDARS.setdefault(self.id, []).append((*note, observe_calendar(self.awi)))
        return super().respond(negotiator_id, state, source)


class WatchingRandom(_Watches, RandomStdAgent):
    """Plays at random and watches."""


class WatchingGreedy(_Watches, GreedyStdAgent):
    """Plays greedily and watches."""


class Spends(WatchingRandom):
    """Agrees to everything, and so goes bankrupt early."""

    def respond(self, negotiator_id, state, source=None):
        from negmas import ResponseType

        super().respond(negotiator_id, state, source)
        return ResponseType.ACCEPT_OFFER


class Raises(RandomStdAgent):
    """Raises on its first day."""

    def step(self):
        if self.awi.current_step == 0:
            raise ValueError("nothing works")


class OffersFloats(RandomStdAgent):
    """Offers what negmas 0.16 drops: whole numbers as floats."""

    def propose(self, negotiator_id, state):
        offer = super().propose(negotiator_id, state)
        return None if offer is None else tuple(float(value) for value in offer)
