"""One negotiation: the alternating offers protocol of negmas 0.16 as the league uses it.

Two sides, the caller first; 20 rounds; integer issues; a side may wait for its other partners. A round is the
turn of both sides; a pass that ends in waiting is no round. An offer that is not in the outcome space ends the
negotiation. See `turns` for how agents are asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from negmas.outcomes.outcome_ops import cast_value_types, outcome_types_are_ok
from negmas.sao import ResponseType

from litaagent_std.world.events import NOTHING
from litaagent_std.world.fast.external import DecisionNeeded
from litaagent_std.world.fast.interface.mechanism import MechanismView
from litaagent_std.world.fast.interface.standins import (
    LeanNegotiator,
    LeanNMI,
    LeanState,
    fresh_state,
    make_nmi,
    snapshot,
)
from litaagent_std.world.fast.turns import (
    Books,
    LimitExceededError,
    Turn,
    books,
    has_decided,
    plain_offer,
    repeat_turn,
)
from litaagent_std.world.reproducible.clock import SECONDS_PER_ROUND

if TYPE_CHECKING:
    from litaagent_std.world.events import EventHub, NegotiationRef
    from litaagent_std.world.fast.seats import Seat
    from litaagent_std.world.fast.topics import Topic

_ACCEPT = ResponseType.ACCEPT_OFFER
_REJECT = ResponseType.REJECT_OFFER
_END = ResponseType.END_NEGOTIATION
_NO_RESPONSE = ResponseType.NO_RESPONSE
_WAIT = ResponseType.WAIT
_LEAVE = ResponseType.LEAVE

_CODES: Final = tuple(ResponseType)

_BOTH: Final = ((1, 0), (0, 1), (0, 1))
"""Order of a round by the side that acted last: 0, 1, or nobody (-1)."""


class Side:
    """One agent's side of a negotiation.

    Attributes:
        seat: The agent's seat.
        pid: The partner's id, which is also the id of the agent's negotiator.
        negotiator: The agent's negotiator.
        proposal: The agent's latest proposal.
        proposed_at: The round in which it was made.
    """

    __slots__ = ("negotiator", "pid", "proposal", "proposed_at", "seat")

    def __init__(self, seat: Seat, pid: str, negotiator: LeanNegotiator) -> None:
        self.seat = seat
        self.pid = pid
        self.negotiator = negotiator
        self.proposal: Any = None
        self.proposed_at = -1

    def dest(self) -> str:
        """Return the id of the partner's negotiator, which bears this agent's id."""
        return self.seat.id


class Negotiation(MechanismView):
    """A negotiation between a caller and a partner; it stands in the place of negmas' mechanism.

    Args:
        ref: Who negotiates what.
        topic: What all negotiations about the product share today.
        caller: The side that proposes first.
        partner: The other side.
        annotation: What negmas calls the annotation; contracts bear the same.
        max_waits: Passes in a row that may end in waiting.
        hub: Who hears of turns.
        report: Who hears of exceptions.
    """

    __slots__ = (
        "annotation",
        "bounds",
        "chatty",
        "frozen",
        "id",
        "last",
        "max_waits",
        "n_rounds",
        "n_waits",
        "nmi",
        "pending",
        "proposer",
        "ref",
        "report",
        "sides",
        "state",
        "tell_decision",
        "tell_offer",
        "tell_response",
        "tell_turn",
        "topic",
        "trace_",
    )

    def __init__(
        self,
        ref: NegotiationRef,
        topic: Topic,
        caller: Side,
        partner: Side,
        annotation: dict[str, Any],
        max_waits: int,
        hub: EventHub,
        report: Callable[[Seat, str, Exception], None],
    ) -> None:
        self.ref = ref
        self.topic = topic
        self.sides = (caller, partner)
        self.annotation = annotation
        self.max_waits = max_waits
        self.tell_response = hub.response
        self.tell_offer = hub.offer
        self.tell_turn = hub.turn
        self.tell_decision = hub.decision
        self.report = report
        self.bounds = topic.bounds
        self.n_rounds = topic.n_rounds
        self.id = f"{ref.day}:{ref.caller}-{ref.partner}"
        self.state = fresh_state()
        self.last = -1
        self.proposer = -1
        self.frozen: tuple[int, ...] | None = None
        self.pending: tuple[int, ...] | None = None
        self.n_waits = 0
        self.trace_: list[tuple[int, str, Any]] = []
        self.chatty = bool(caller.seat.callbacks or partner.seat.callbacks)
        self.nmi: LeanNMI = make_nmi(self, topic.nmi_values, annotation)
        for side in self.sides:
            values = side.negotiator.__dict__
            values["nmi"] = values["_nmi"] = self.nmi

    def step(self) -> bool:
        """Run one pass and tells whether the negotiation goes on.

        Raises:
            DecisionNeeded: If a side is driven from outside and has not decided; call again when it has.
            Exception: What an agent raised after all repetitions.
        """
        state = self.state
        if self.pending is None and not self._begin(state):
            return False
        try:
            self._pass(state)
        except TypeError:  # negmas runs the pass again, from the next side on
            self._pass(state)
        if state.broken or state.timedout or state.agreement is not None:
            state.running = False
        if not state.waiting:
            if self.chatty:
                self._tell_sides("on_round_end")
            step = state.step = state.step + 1
            state.time = step * SECONDS_PER_ROUND
            state.relative_time = self.topic.relative_times[step]
        return bool(state.running)

    def _begin(self, state: LeanState) -> bool:
        """Begins a pass, unless all rounds are over."""
        if state.step >= self.n_rounds:
            state.running = state.broken = False
            state.timedout = True
            return False
        if not state.running:
            state.running = state.started = True
            state.relative_time = self.topic.relative_times[0]
            if self.chatty:
                self._tell_sides("on_negotiation_start")
        if self.chatty and not state.waiting:
            self._tell_sides("on_round_start")
        state.waiting = False
        return True

    def abort(self) -> None:
        """End the negotiation after an exception that nobody caught."""
        state = self.state
        state.has_error = True
        state.error_details = "Uncaught Exception"
        state.waiting = state.timedout = state.running = False
        state.broken = True
        state.agreement = None
        state.step += 1

    def release(self) -> None:
        """Lets go of the view when all is over, so that both are freed without the garbage collector."""
        del self.nmi

    def _pass(self, state: LeanState) -> None:
        order = self.pending or self.frozen
        self.pending = None
        if order is None:
            state.new_offers = []
            state.new_data = []
            order = _BOTH[self.last]
        sides = self.sides
        q_low, q_high, d_low, d_high, p_low, p_high = self.bounds
        for index in order:
            self.last = index
            side = sides[index]
            if state.left_negotiators and side.pid in state.left_negotiators:
                continue
            if index == self.proposer:
                state.n_acceptances = 0
            seat = side.seat
            known = self._books(seat)
            try:
                response, offer = seat.turn(side, state)
            except DecisionNeeded:
                self.pending = order[order.index(index) :]
                raise
            except LimitExceededError:
                state.timedout = True
                return
            except Exception as error:  # an agent may raise anything
                response, offer = self._repeat(side, state, error)
            self._tell_decision(seat, known)
            if response is _WAIT:
                self._wait(state, index)
                return
            if response is _REJECT and type(offer) is tuple and len(offer) == 3:
                # the common case, a legal counter-offer, without negmas' general check
                quantity, day, price = offer
                if (
                    type(quantity) is int
                    and type(day) is int
                    and type(price) is int
                    and q_low <= quantity <= q_high
                    and d_low <= day <= d_high
                    and p_low <= price <= p_high
                ):
                    self.n_waits = 0
                    self.frozen = None
                    self._put(state, side, index, offer, None)
                    continue
            if self._rare(state, side, index, response, offer):
                return

    def _books(self, seat: Seat) -> Books | None:
        """Return the books of an agent that answers together, if anybody wants to hear of its decisions."""
        return books(seat.agent) if seat.is_sync and self.tell_decision is not None else None

    def _tell_decision(self, seat: Seat, known: Books | None) -> None:
        if known is not None and self.tell_decision is not None and has_decided(seat.agent, known):
            self.tell_decision(seat.index)

    def _repeat(self, side: Side, state: LeanState, error: Exception) -> Turn:
        try:
            return repeat_turn(side, state, error)
        except Exception as final:
            self.report(side.seat, "negotiation", final)
            raise

    def _put(self, state: LeanState, side: Side, index: int, offer: Any, data: Any) -> None:  # noqa: ANN401
        """Put an offer on the table, or take the offer off it when there is only a message."""
        pid = side.pid
        answers = state.current_offer is not None
        self._tell(state, side, 1 if answers else NOTHING, offer)
        if answers and self.chatty:
            self._tell_partner(index, "on_partner_response", _REJECT)
        state.n_acceptances = 0
        if offer is not None:
            state.n_acceptances = 1
            if self.chatty:
                self._tell_partner(index, "on_partner_proposal", offer)
        state.current_offer = offer
        state.current_data = data
        self.proposer = index
        state.current_proposer = state.last_negotiator = pid
        new_offers = state.new_offers
        new_offers.append((pid, offer))
        state.new_data.append((pid, data))
        state.new_offerer_agents = [side.seat.id] if len(new_offers) == 1 else [*state.new_offerer_agents, side.seat.id]
        self.trace_.append((state.step, pid, offer))

    def _tell(self, state: LeanState, side: Side, response: int, offer: Any) -> None:  # noqa: ANN401
        """Tells observers of a turn."""
        seat = side.seat
        if response != NOTHING and self.tell_response is not None:
            self.tell_response(self.ref, state.step, seat.id, response)
        if offer is not None and self.tell_offer is not None:
            self.tell_offer(self.ref, state.step, seat.id, offer if type(offer) is tuple else tuple(offer))
        if self.tell_turn is not None:
            if offer is not None:
                quantity, day, price = offer
                self.tell_turn((self.ref.index, state.step, seat.index, response, quantity, day, price))
            elif response != NOTHING:
                self.tell_turn((self.ref.index, state.step, seat.index, response, NOTHING, NOTHING, NOTHING))

    def _wait(self, state: LeanState, index: int) -> None:
        other = 1 - index
        self.last = other
        offered = any(pid == self.sides[other].pid for pid, _ in state.new_offers)
        self.frozen = (index,) if offered else (index, other)
        self.n_waits += 1
        if state.current_offer is not None:
            self._tell_partner(index, "on_partner_response", _WAIT)
        if self.n_waits > self.max_waits:
            self.n_waits = 0
            self.frozen = None
            state.timedout = True
            return
        state.waiting = True

    def _rare(self, state: LeanState, side: Side, index: int, response: Any, offer: Any) -> bool:  # noqa: ANN401
        """Handle every turn but a legal counter-offer and waiting; tells whether the pass is over."""
        response, offer, data = plain_offer(response, offer)
        offer = self._checked(offer)
        if response == _WAIT:
            self._wait(state, index)
            return True
        self.n_waits = 0
        self.frozen = None
        if response == _REJECT and (offer is not None or data):
            self._put(state, side, index, offer, data)
            return False
        if state.current_offer is not None:
            if response in _CODES:
                self._tell(state, side, int(response), None)
            self._tell_partner(index, "on_partner_response", response)
        return self._conclude(state, side, response)

    def _conclude(self, state: LeanState, side: Side, response: Any) -> bool:  # noqa: ANN401
        if response in (_END, _REJECT):
            state.broken = True
        elif response == _LEAVE:
            state.left_negotiators.add(side.pid)
            raise TypeError("negmas 0.16 fails to tell a controller that it left, and runs the pass again")
        elif response == _ACCEPT:
            if state.current_offer is None:
                state.broken = True
                return True
            state.n_acceptances += 1
            if state.n_acceptances == 2 - len(state.left_negotiators):
                state.agreement = state.current_offer
                return True
            return False
        else:  # no response, or none that negmas knows
            return False
        return True

    def _checked(self, offer: Any) -> Any:  # noqa: ANN401
        """Return a legal offer with integers, or None."""
        space = self.topic.outcome_space
        if offer is None or not space.is_valid(offer):
            return None
        if outcome_types_are_ok(offer, space.issues):
            return offer
        return cast_value_types(offer, space.issues)

    def _tell_sides(self, callback: str) -> None:
        for side in self.sides:
            if callback in side.seat.callbacks:
                side.seat.tell(callback, self.state, negotiator_id=side.pid, state=snapshot(self.state))

    def _tell_partner(self, index: int, callback: str, what: Any) -> None:  # noqa: ANN401
        partner = self.sides[1 - index]
        if callback not in partner.seat.callbacks:
            return
        told = {"negotiator_id": partner.pid, "partner_id": self.sides[index].pid}
        if callback == "on_partner_response":
            told |= {"outcome": self.state.current_offer, "response": what}
        else:
            told |= {"offer": what}
        partner.seat.agent_call(callback, state=snapshot(self.state), **told)
