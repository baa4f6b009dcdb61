"""Agents that note what they see, to compare it with what a record says they saw."""

from negmas.sao import SAOResponse
from scml.std.agents.greedy import GreedyStdAgent
from scml.std.agents.rand import RandomStdAgent, SyncRandomStdAgent

from litaagent_std.policy.observation import Offer, observe_calendar, observe_day

DAYS: dict[str, list[object]] = {}
CALENDARS: dict[str, list[object]] = {}
TOGETHER: dict[str, dict[object, object]] = {}


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


class WatchingSync(SyncRandomStdAgent):
    """Answers all partners together and notes what it knew when it did."""

    def first_proposals(self):
        self._note((partner, 0, None) for partner in self.negotiators)
        return super().first_proposals()

    def counter_all(self, offers, states):
        self._note((partner, states[partner].step, Offer(*offer)) for partner, offer in offers.items())
        return super().counter_all(offers, states)

    def _note(self, threads):
        day, calendar = self.awi.current_step, observe_calendar(self.awi)
        notes = TOGETHER.setdefault(self.id, {})
        notes.update({(day, *thread): calendar for thread in threads})


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


class OffersFractions(RandomStdAgent):
    """Offers prices with fractions, which negmas 0.16 drops together with the offer."""

    def propose(self, negotiator_id, state):
        offer = super().propose(negotiator_id, state)
        return None if offer is None else (*offer[:2], min(offer[2] + 0.25, self.top_price(negotiator_id)))

    def top_price(self, negotiator_id):
        """The highest price that is still inside the issue, with a fraction."""
        return self.get_nmi(negotiator_id).issues[2].max_value - 0.75


class SyncFractions(SyncRandomStdAgent):
    """The same, for an agent that answers all partners together."""

    def first_proposals(self):
        return {partner: _fractional(offer) for partner, offer in super().first_proposals().items()}

    def counter_all(self, offers, states):
        answers = super().counter_all(offers, states)
        return {name: SAOResponse(one.response, _fractional(one.outcome)) for name, one in answers.items()}


def _fractional(offer):
    return None if offer is None else (offer[0], offer[1], offer[2] + 0.25)
