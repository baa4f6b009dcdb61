"""A negotiation between two native minds: the rounds of `negotiation.Negotiation` without what only agents need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from negmas.sao import ResponseType

from litaagent_std.world.events import NOTHING, ContractSigned, EventHub, NegotiationEnd, NegotiationRef
from litaagent_std.world.native.agent import ACCEPT, REJECT, WAIT, Link, NativeAgent, Outcome
from litaagent_std.world.rules.contracts import ContractBook, Deal

if TYPE_CHECKING:
    from litaagent_std.world.fast.interface.standins import LeanState
    from litaagent_std.world.fast.negotiation import Side
    from litaagent_std.world.fast.topics import Topic
    from litaagent_std.world.fast.turns import Turn

_RESPONSES = tuple(ResponseType)


class NativeNegotiation:
    """A negotiation in which both sides are minds.

    Args:
        ref: Who negotiates what.
        topic: What is negotiated.
        caller: The mind that proposes first, and its link to the partner.
        partner: The other mind, and its link to the caller.
        max_waits: Passes in a row that may end in waiting.
        hub: Who hears of it.
    """

    __slots__ = ("_at", "_hub", "_max_waits", "_sides", "_table", "_topic", "_waits", "ref", "round", "status")

    def __init__(
        self,
        ref: NegotiationRef,
        topic: Topic,
        caller: tuple[NativeAgent, Link],
        partner: tuple[NativeAgent, Link],
        max_waits: int,
        hub: EventHub,
    ) -> None:
        self.ref = ref
        self.round = 0
        self.status = ""
        self._topic = topic
        self._sides = (caller, partner)
        self._table: Outcome | None = None
        self._at = 0
        self._waits = 0
        self._max_waits = max_waits
        self._hub = hub

    def step(self) -> bool:
        """Run one pass and tells whether the negotiation goes on."""
        round_ = self.round
        if round_ >= self._topic.n_rounds:
            self.status = "timedout"
            return False
        table = self._table
        index = self._at
        hub, number = self._hub, self.ref.index
        tell_response, tell_offer, tell_turn = hub.response, hub.offer, hub.turn
        q_low, q_high, d_low, d_high, p_low, p_high = self._topic.bounds
        while index < 2:
            mind, link = self._sides[index]
            response = NOTHING
            if table is not None:
                response = mind.respond(link, round_, table)
                if response == WAIT:
                    self._table = table
                    return self._wait(index)
                if tell_response is not None:
                    tell_response(self.ref, round_, mind.id, response)
                if response != REJECT:
                    self._table = table
                    self._tell_last(mind, response)
                    return self._end("agreement" if response == ACCEPT else "broken")
            table = offer = mind.propose(link, round_)
            if offer is None:
                self._tell_last(mind, response)
                return self._end("broken")
            quantity, day, price = offer
            if not (q_low <= quantity <= q_high and d_low <= day <= d_high and p_low <= price <= p_high):
                self._tell_last(mind, response)
                return self._end("broken")
            if tell_offer is not None:
                tell_offer(self.ref, round_, mind.id, offer)
            if tell_turn is not None:
                tell_turn((number, round_, mind.seat.index, response, quantity, day, price))
            self._waits = 0
            index += 1
        self._table = table
        self._at = 0
        self.round = round_ + 1
        return True

    def _tell_last(self, mind: NativeAgent, response: int) -> None:
        """Tells of a turn without an offer."""
        if self._hub.turn is not None and response != NOTHING:
            self._hub.turn((self.ref.index, self.round, mind.seat.index, response, NOTHING, NOTHING, NOTHING))

    def _wait(self, index: int) -> bool:
        self._at = index
        self._waits += 1
        return self._waits <= self._max_waits or self._end("timedout")

    def _end(self, status: str) -> bool:
        self.status = status
        self.round += 1
        return False

    def close(self, book: ContractBook) -> None:
        """Tells everybody how the negotiation ended and enters the contract, if there is one."""
        hub, ref = self._hub, self.ref
        (caller, to_partner), (partner, to_caller) = self._sides
        agreement = self._table if self.status == "agreement" else None
        if hub.negotiation_end is not None:
            hub.negotiation_end(NegotiationEnd(ref, self.round, self.status, agreement))
        caller.leave(to_partner.pid)
        partner.leave(to_caller.pid)
        if agreement is None:
            return
        quantity, day, unit_price = agreement
        if hub.contract is not None:
            hub.contract(ContractSigned(ref, quantity, day, unit_price))
        caller.conclude(to_partner, quantity, day, unit_price)
        partner.conclude(to_caller, quantity, day, unit_price)
        seller, buyer = (caller.seat, partner.seat) if to_partner.selling else (partner.seat, caller.seat)
        book.add(Deal(buyer, seller, ref.product, quantity, day, unit_price, ()))


def native_turn(side: Side, state: LeanState) -> Turn:
    """Take the turn of a mind in a negotiation with an agent, in the engine's protocol."""
    mind = side.seat.mind
    if mind is None:
        raise RuntimeError(f"{side.seat.id} has no native mind; its turns are the agent's")
    link = mind.links[side.pid]
    offer = state.current_offer
    if offer is not None:
        response = mind.respond(link, state.step, offer)
        if response != REJECT:
            return _RESPONSES[response], offer
    if side.proposed_at != state.step or side.proposal is None:
        side.proposal = mind.propose(link, state.step)
        side.proposed_at = state.step
    return ResponseType.REJECT_OFFER, side.proposal
