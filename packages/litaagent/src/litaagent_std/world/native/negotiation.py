"""A negotiation between two native agents: the protocol of the fast engine without what only hosted agents need."""

from __future__ import annotations

from litaagent_std.world.events import (
    ACCEPT,
    ENDED,
    NOTHING,
    REJECT,
    STATUSES,
    WAIT,
    ContractSigned,
    EventHub,
    NegotiationEnd,
    NegotiationRef,
    Outcome,
)
from litaagent_std.world.native.agent import Bounds, Link, NativeAgent


class NativeNegotiation:
    """A negotiation in which both sides are native agents.

    Args:
        ref: Who negotiates what.
        bounds: The ranges of the issues.
        n_rounds: Rounds of the negotiation.
        caller: The agent that proposes first, and its link to the partner.
        partner: The other agent, and its link to the caller.
        max_waits: Passes in a row that may end in waiting.
        hub: The observers.

    Attributes:
        round: Completed rounds.
        status: How the negotiation ended; empty while it runs.
    """

    __slots__ = (
        "_bounds",
        "_current_offer",
        "_hub",
        "_max_waits",
        "_n_rounds",
        "_n_waits",
        "_next_side",
        "_sides",
        "ref",
        "round",
        "status",
    )

    def __init__(
        self,
        ref: NegotiationRef,
        bounds: Bounds,
        n_rounds: int,
        caller: tuple[NativeAgent, Link],
        partner: tuple[NativeAgent, Link],
        max_waits: int,
        hub: EventHub,
    ) -> None:
        self.ref = ref
        self._sides = (caller, partner)
        self.round = 0
        self.status = ""
        self._bounds = bounds
        self._n_rounds = n_rounds
        self._current_offer: Outcome | None = None
        self._next_side = 0
        self._n_waits = 0
        self._max_waits = max_waits
        self._hub = hub

    def step(self) -> bool:
        """Run one pass and return whether the negotiation is still running."""
        round_ = self.round
        if round_ >= self._n_rounds:
            self.status = "timedout"
            return False
        current_offer = self._current_offer
        index = self._next_side
        hub, number = self._hub, self.ref.index
        emit_response, emit_offer, emit_turn = hub.response, hub.offer, hub.turn
        q_low, q_high, d_low, d_high, p_low, p_high = self._bounds
        while index < 2:
            agent, link = self._sides[index]
            response = NOTHING
            if current_offer is not None:
                response = agent.respond(link, round_, current_offer)
                if response == WAIT:
                    self._current_offer = current_offer
                    return self._wait(index)
                if emit_response is not None:
                    emit_response(self.ref, round_, agent.id, response)
                if response != REJECT:
                    self._current_offer = current_offer
                    self._emit_response_only(agent, response)
                    return self._end("agreement" if response == ACCEPT else "broken")
            current_offer = offer = agent.propose(link, round_)
            if offer is None:
                self._emit_response_only(agent, response)
                return self._end("broken")
            quantity, day, price = offer
            if not (q_low <= quantity <= q_high and d_low <= day <= d_high and p_low <= price <= p_high):
                self._emit_response_only(agent, response)
                return self._end("broken")
            if emit_offer is not None:
                emit_offer(self.ref, round_, agent.id, offer)
            if emit_turn is not None:
                emit_turn((number, round_, agent.seat.index, response, quantity, day, price))
            self._n_waits = 0
            index += 1
        self._current_offer = current_offer
        self._next_side = 0
        self.round = round_ + 1
        return True

    def _emit_response_only(self, agent: NativeAgent, response: int) -> None:
        """Emit a turn without an offer."""
        if self._hub.turn is not None and response != NOTHING:
            self._hub.turn((self.ref.index, self.round, agent.seat.index, response, NOTHING, NOTHING, NOTHING))

    def _wait(self, index: int) -> bool:
        self._next_side = index
        self._n_waits += 1
        return self._n_waits <= self._max_waits or self._end("timedout")

    def _end(self, status: str) -> bool:
        self.status = status
        self.round += 1
        return False

    def close(self) -> Outcome | None:
        """Notify observers and both agents of the end, and return the agreement, if there is one."""
        hub, ref = self._hub, self.ref
        (caller, to_partner), (partner, to_caller) = self._sides
        agreement = self._current_offer if self.status == "agreement" else None
        if hub.negotiation_end is not None:
            hub.negotiation_end(NegotiationEnd(ref, self.round, self.status, agreement))
        if hub.end is not None:
            first, other = caller.seat.index, partner.seat.index
            buyer, seller = (other, first) if to_partner.selling else (first, other)
            code = ENDED + STATUSES.index(self.status)
            hub.end((ref.index, self.round, first, code, buyer, seller, ref.product))
        caller.leave(to_partner.pid)
        partner.leave(to_caller.pid)
        if agreement is None:
            return None
        quantity, day, unit_price = agreement
        if hub.contract is not None:
            hub.contract(ContractSigned(ref, quantity, day, unit_price))
        caller.conclude(to_partner, quantity, day, unit_price)
        partner.conclude(to_caller, quantity, day, unit_price)
        return agreement
