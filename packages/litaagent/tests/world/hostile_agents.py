"""Agents that break the rules of good behaviour, each in one way and not every time."""

import random
import time

import numpy as np
from negmas import ResponseType, SAOResponse
from scml.std.agents.greedy import GreedyStdAgent
from scml.std.agents.rand import RandomStdAgent, SyncRandomStdAgent


class BrokenError(RuntimeError):
    """Not an error that anybody expects."""


class RaisesInPropose(RandomStdAgent):
    def propose(self, negotiator_id, state):
        if state.step in (3, 8):  # again when it is asked again
            raise BrokenError("propose")
        return super().propose(negotiator_id, state)


class RaisesTypeErrorInRespond(RandomStdAgent):
    def respond(self, negotiator_id, state, source=None):
        if state.step in (3, 8):
            raise TypeError("respond")
        return super().respond(negotiator_id, state, source)


class RaisesInCounterAll(SyncRandomStdAgent):
    def counter_all(self, offers, states):
        if random.random() < 0.2 or any(state.step == 5 for state in states.values()):
            raise BrokenError("counter_all")
        return super().counter_all(offers, states)


class RaisesInFirstProposals(SyncRandomStdAgent):
    def first_proposals(self):
        if self.awi.current_step % 2:
            raise BrokenError("first_proposals")
        return super().first_proposals()


class RaisesInInit(GreedyStdAgent):
    def init(self):
        raise BrokenError("init")


class RaisesInStep(GreedyStdAgent):
    def step(self):
        if random.random() < 0.3:
            raise BrokenError("step")
        super().step()


class RaisesInBeforeStep(GreedyStdAgent):
    def before_step(self):
        if random.random() < 0.3:
            raise BrokenError("before_step")
        super().before_step()


class RaisesInReset(GreedyStdAgent):
    def reset(self):
        if random.random() < 0.2:
            raise BrokenError("reset")
        super().reset()


class RaisesInSuccess(GreedyStdAgent):
    def on_negotiation_success(self, contract, mechanism):
        raise BrokenError("success")


class RaisesInFailure(GreedyStdAgent):
    def on_negotiation_failure(self, partners, annotation, mechanism, state):
        raise BrokenError("failure")


class _Offers(RandomStdAgent):
    """Proposes what ``spoil`` makes of an honest offer."""

    def spoil(self, offer):
        raise NotImplementedError

    def propose(self, negotiator_id, state):
        offer = super().propose(negotiator_id, state)
        return offer if offer is None or random.random() < 0.7 else self.spoil(offer)


class OffersFloatPrice(_Offers):
    def spoil(self, offer):
        return offer[0], offer[1], offer[2] + 0.5


class OffersIntegralFloats(_Offers):
    def spoil(self, offer):
        return float(offer[0]), float(offer[1]), float(offer[2])


class OffersNumpyIntegers(_Offers):
    def spoil(self, offer):
        return tuple(np.int64(value) for value in offer)


class OffersBooleans(_Offers):
    def spoil(self, offer):
        return True, offer[1], offer[2]


class OffersLists(_Offers):
    def spoil(self, offer):
        return list(offer)


class OffersNone(_Offers):
    def spoil(self, offer):
        return None


class OffersOutOfRange(_Offers):
    def spoil(self, offer):
        return offer[0], offer[1] + 100, offer[2] * 3


class OffersNegative(_Offers):
    def spoil(self, offer):
        return -offer[0], offer[1], offer[2]


class OffersBillions(_Offers):
    def spoil(self, offer):
        return 10**9, offer[1], offer[2]


class OffersPairs(_Offers):
    def spoil(self, offer):
        return offer[:2]


class OffersText(_Offers):
    def spoil(self, offer):
        return "many", "soon", "cheap"


class OffersNan(_Offers):
    def spoil(self, offer):
        return offer[0], offer[1], float("nan")


class _Responds(RandomStdAgent):
    """Responds with ``answer``, now and then."""

    answer = None

    def respond(self, negotiator_id, state, source=None):
        return self.answer if random.random() < 0.3 else super().respond(negotiator_id, state, source)


class RespondsNone(_Responds):
    pass


class RespondsTrue(_Responds):
    answer = True


class RespondsText(_Responds):
    answer = "yes"


class RespondsWait(_Responds):
    answer = ResponseType.WAIT


class RespondsNoResponse(_Responds):
    answer = ResponseType.NO_RESPONSE


class RespondsLeave(_Responds):
    answer = ResponseType.LEAVE


class RespondsNumber(_Responds):
    answer = 0


class AcceptsEverything(RandomStdAgent):
    def respond(self, negotiator_id, state, source=None):
        return ResponseType.ACCEPT_OFFER


class EndsEverything(RandomStdAgent):
    def respond(self, negotiator_id, state, source=None):
        return ResponseType.END_NEGOTIATION


class AcceptsNothingOffered(RandomStdAgent):
    """Answers before there is an offer."""

    def propose(self, negotiator_id, state):
        return None


class _Counters(SyncRandomStdAgent):
    """Returns what ``spoil`` makes of honest responses, now and then."""

    def spoil(self, responses):
        raise NotImplementedError

    def counter_all(self, offers, states):
        responses = super().counter_all(offers, states)
        return self.spoil(responses) if random.random() < 0.3 else responses


class CountersNone(_Counters):
    def spoil(self, responses):
        return None


class CountersNothing(_Counters):
    def spoil(self, responses):
        return {}


class CountersHalf(_Counters):
    def spoil(self, responses):
        return {key: responses[key] for key in list(responses)[::2]}


class CountersStrangers(_Counters):
    def spoil(self, responses):
        return {**responses, "nobody": SAOResponse(ResponseType.ACCEPT_OFFER, None)}


class CountersPairs(_Counters):
    def spoil(self, responses):
        return {key: (response.response, response.outcome) for key, response in responses.items()}


class CountersWait(_Counters):
    def spoil(self, responses):
        return {key: SAOResponse(ResponseType.WAIT, None) for key in responses}


class CountersWithoutOffers(_Counters):
    def spoil(self, responses):
        return {key: SAOResponse(ResponseType.REJECT_OFFER, None) for key in responses}


class AcceptsAndOffers(_Counters):
    def spoil(self, responses):
        return {key: SAOResponse(ResponseType.ACCEPT_OFFER, r.outcome) for key, r in responses.items()}


class EndsAndOffers(_Counters):
    def spoil(self, responses):
        return {key: SAOResponse(ResponseType.END_NEGOTIATION, r.outcome) for key, r in responses.items()}


class ProposesToStrangers(SyncRandomStdAgent):
    def first_proposals(self):
        return {**super().first_proposals(), "nobody": (1, 1, 1)}


class ProposesNothing(SyncRandomStdAgent):
    def first_proposals(self):
        return {}


class SeedsEverything(RandomStdAgent):
    """Resets the global generators before every move."""

    def propose(self, negotiator_id, state):
        random.seed(len(state.new_offers))
        np.random.seed(1)
        return super().propose(negotiator_id, state)


class DrawsWithoutSeeds(RandomStdAgent):
    """Makes generators of its own, without seeds."""

    def propose(self, negotiator_id, state):
        if random.Random().random() < 0.05 or np.random.default_rng().random() < 0.05:
            return None
        return super().propose(negotiator_id, state)


class Hangs(RandomStdAgent):
    """Sleeps far beyond any limit, in its fifth call of every day."""

    calls = 0

    def before_step(self):
        super().before_step()
        self.calls = 0

    def propose(self, negotiator_id, state):
        self.calls += 1
        if self.calls == 5:
            time.sleep(1.5)
        return super().propose(negotiator_id, state)


class Mutates(SyncRandomStdAgent):
    """Plays as SyncRandom does, and damages everything it is handed afterwards."""

    def counter_all(self, offers, states):
        responses = super().counter_all(offers, states)
        for state in states.values():
            state.current_offer = (30, 0, 10**6)
            state.step = 19
            state.agreement = (30, 0, 1)
        offers.clear()
        states.clear()
        self._damage_interface()
        return responses

    def _damage_interface(self):
        awi = self.awi
        for damage in (
            lambda: awi.my_suppliers.clear(),
            lambda: awi.my_consumers.clear(),
            lambda: awi.trading_prices.__setitem__(slice(None), 10**6),
            lambda: awi.catalog_prices.__setitem__(slice(None), 10**6),
            lambda: awi.exogenous_contract_summary.clear(),
            lambda: awi.current_negotiation_details.clear(),
            lambda: awi.all_suppliers.clear(),
            lambda: awi.all_consumers.clear(),
            lambda: awi.profile.__setattr__("cost", -1000),
            lambda: awi.profile.__setattr__("n_lines", 1000),
        ):
            try:
                damage()
            except (AttributeError, TypeError, ValueError):
                continue

    def on_negotiation_success(self, contract, mechanism):
        super().on_negotiation_success(contract, mechanism)
        for damage in (
            lambda: contract.agreement.update(quantity=1000, unit_price=10**6),
            lambda: contract.annotation.clear(),
            lambda: contract.partners.clear(),
        ):
            try:
                damage()
            except (AttributeError, TypeError):
                continue


class UnwritableError(RuntimeError):
    def __str__(self):
        raise ValueError("an exception without a text")


class RaisesSurrogates(GreedyStdAgent):
    def step(self):
        raise type("\ud801Error", (RuntimeError,), {})("\ud800")


class RaisesUnwritable(GreedyStdAgent):
    def step(self):
        raise UnwritableError
