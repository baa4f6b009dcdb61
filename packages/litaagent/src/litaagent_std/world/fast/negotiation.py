"""One negotiation: the alternating offers protocol of negmas 0.16 as the league uses it.

There are two sides, of which the caller proposes first, 20 rounds and integer issues. A round is one turn of each
side. A *pass* is one call of the mechanism: it is a round unless a side waits for its other partners. An offer
outside the outcome space ends the negotiation. `turns` holds how agents are asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from negmas.outcomes.outcome_ops import cast_value_types, outcome_types_are_ok
from negmas.sao import ResponseType

from litaagent_std.world.events import NOTHING
from litaagent_std.world.fast.external import DecisionNeeded
from litaagent_std.world.fast.interface.mechanism import MechanismView
from litaagent_std.world.fast.interface.proxies import (
    LeanNegotiator,
    LeanNMI,
    LeanState,
    fresh_state,
    make_nmi,
    snapshot,
)
from litaagent_std.world.fast.turns import (
    LimitExceededError,
    SyncBuffers,
    Turn,
    has_decided,
    plain_offer,
    repeat_turn,
    sync_buffers,
)
from litaagent_std.world.reproducible.clock import SECONDS_PER_ROUND

if TYPE_CHECKING:
    from litaagent_std.world.events import EventHub, NegotiationRef
    from litaagent_std.world.fast.interface.agenda import Agenda
    from litaagent_std.world.fast.seats import Seat

_ACCEPT = ResponseType.ACCEPT_OFFER
_REJECT = ResponseType.REJECT_OFFER
_END = ResponseType.END_NEGOTIATION
_NO_RESPONSE = ResponseType.NO_RESPONSE
_WAIT = ResponseType.WAIT
_LEAVE = ResponseType.LEAVE

_CODES: Final = tuple(ResponseType)

_ROUND_ORDER: Final = ((1, 0), (0, 1), (0, 1))
"""Order of the sides in a round, by the side that acted last: 0, 1, or none (-1)."""


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
        """Return the id of the partner's negotiator, which is this agent's id."""
        return self.seat.id


class Negotiation(MechanismView):
    """A negotiation between a caller and a partner; it replaces negmas' mechanism.

    Args:
        ref: Who negotiates what.
        agenda: What all negotiations about the product share today.
        caller: The side that proposes first.
        partner: The other side.
        annotation: negmas' annotation, which contracts repeat.
        max_waits: Passes in a row that may end in waiting.
        hub: The observers.
        report_error: Called with every exception of an agent.

    Attributes:
        last: The side that acted last, or -1.
        proposer: The side whose offer is current, or -1.
        waiting_order: After a pass that ended in waiting: the sides of the next pass.
        pending_order: After a pass that a `DecisionNeeded` stopped: the sides that it still has to ask.
        has_callbacks: Whether an agent overrides an optional callback.
        trace_: All offers as (round, negotiator, offer).
    """

    __slots__ = (
        "agenda",
        "annotation",
        "bounds",
        "emit_decision",
        "emit_offer",
        "emit_response",
        "emit_turn",
        "has_callbacks",
        "id",
        "last",
        "max_waits",
        "n_rounds",
        "n_waits",
        "nmi",
        "pending_order",
        "proposer",
        "ref",
        "report_error",
        "sides",
        "state",
        "trace_",
        "waiting_order",
    )

    sides: tuple[Side, Side]

    def __init__(
        self,
        ref: NegotiationRef,
        agenda: Agenda,
        caller: Side,
        partner: Side,
        annotation: dict[str, Any],
        max_waits: int,
        hub: EventHub,
        report_error: Callable[[Seat, str, Exception], None],
    ) -> None:
        self.ref = ref
        self.agenda = agenda
        self.sides = (caller, partner)
        self.annotation = annotation
        self.max_waits = max_waits
        self.emit_response = hub.response
        self.emit_offer = hub.offer
        self.emit_turn = hub.turn
        self.emit_decision = hub.decision
        self.report_error = report_error
        self.bounds = agenda.bounds
        self.n_rounds = agenda.n_rounds
        self.id = f"{ref.day}:{ref.caller}-{ref.partner}"
        self.state = fresh_state()
        self.last = -1
        self.proposer = -1
        self.waiting_order: tuple[int, ...] | None = None
        self.pending_order: tuple[int, ...] | None = None
        self.n_waits = 0
        self.trace_: list[tuple[int, str, Any]] = []
        self.has_callbacks = bool(caller.seat.callbacks or partner.seat.callbacks)
        self.nmi: LeanNMI = make_nmi(self, agenda.nmi_values, annotation)
        for side in self.sides:
            values = side.negotiator.__dict__
            values["nmi"] = values["_nmi"] = self.nmi

    def step(self) -> bool:
        """Run one pass and return whether the negotiation is still running.

        Raises:
            DecisionNeeded: If an external seat has not decided yet; call again when it has.
            Exception: If an agent raised, again after all repetitions.
        """
        state = self.state
        if self.pending_order is None and not self._start_pass(state):
            return False
        try:
            self._run_pass(state)
        except TypeError:  # negmas runs the pass again, from the next side on
            self._run_pass(state)
        if state.broken or state.timedout or state.agreement is not None:
            state.running = False
        if not state.waiting:
            if self.has_callbacks:
                self._notify_sides("on_round_end")
            step = state.step = state.step + 1
            state.time = step * SECONDS_PER_ROUND
            state.relative_time = self.agenda.relative_times[step]
        return bool(state.running)

    def _start_pass(self, state: LeanState) -> bool:
        """Start a pass, unless all rounds are over."""
        if state.step >= self.n_rounds:
            state.running = state.broken = False
            state.timedout = True
            return False
        if not state.running:
            state.running = state.started = True
            state.relative_time = self.agenda.relative_times[0]
            if self.has_callbacks:
                self._notify_sides("on_negotiation_start")
        if self.has_callbacks and not state.waiting:
            self._notify_sides("on_round_start")
        state.waiting = False
        return True

    def abort(self) -> None:
        """End the negotiation after an uncaught exception."""
        state = self.state
        state.has_error = True
        state.error_details = "Uncaught Exception"
        state.waiting = state.timedout = state.running = False
        state.broken = True
        state.agreement = None
        state.step += 1

    def release(self) -> None:
        """Drop the NMI of a finished negotiation: without the reference cycle both are freed at once."""
        del self.nmi

    def _run_pass(self, state: LeanState) -> None:
        # resume a stopped or waiting pass, or start a new round
        order = self.pending_order or self.waiting_order
        self.pending_order = None
        if order is None:
            state.new_offers = []
            state.new_data = []
            order = _ROUND_ORDER[self.last]
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
            before = self._sync_buffers(seat)
            try:
                response, offer = seat.turn(side, state)
            except DecisionNeeded:
                self.pending_order = order[order.index(index) :]
                raise
            except LimitExceededError:
                state.timedout = True
                return
            except Exception as error:  # an agent may raise anything
                response, offer = self._repeat(side, state, error)
            self._emit_decision(seat, before)
            if response is _WAIT:
                self._wait(state, index)
                return
            if response is _REJECT and type(offer) is tuple and len(offer) == 3:
                # the common case, a legal counter-offer, needs no general check
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
                    self.waiting_order = None
                    self._record_offer(state, side, index, offer, None)
                    continue
            if self._handle_response(state, side, index, response, offer):
                return

    def _sync_buffers(self, seat: Seat) -> SyncBuffers | None:
        """Return the buffers of a synchronous agent, if an observer wants to know of its decisions."""
        return sync_buffers(seat.agent) if seat.is_sync and self.emit_decision is not None else None

    def _emit_decision(self, seat: Seat, before: SyncBuffers | None) -> None:
        if before is not None and self.emit_decision is not None and has_decided(seat.agent, before):
            self.emit_decision(seat.index)

    def _repeat(self, side: Side, state: LeanState, error: Exception) -> Turn:
        try:
            return repeat_turn(side, state, error)
        except Exception as final:
            self.report_error(side.seat, "negotiation", final)
            raise

    def _record_offer(self, state: LeanState, side: Side, index: int, offer: Any, data: Any) -> None:  # noqa: ANN401
        """Make an offer the current one; a message without an offer clears it."""
        pid = side.pid
        responds = state.current_offer is not None
        self._emit_turn(state, side, 1 if responds else NOTHING, offer)
        if responds and self.has_callbacks:
            self._notify_partner(index, "on_partner_response", _REJECT)
        state.n_acceptances = 0
        if offer is not None:
            state.n_acceptances = 1
            if self.has_callbacks:
                self._notify_partner(index, "on_partner_proposal", offer)
        state.current_offer = offer
        state.current_data = data
        self.proposer = index
        state.current_proposer = state.last_negotiator = pid
        new_offers = state.new_offers
        new_offers.append((pid, offer))
        state.new_data.append((pid, data))
        state.new_offerer_agents = [side.seat.id] if len(new_offers) == 1 else [*state.new_offerer_agents, side.seat.id]
        self.trace_.append((state.step, pid, offer))

    def _emit_turn(self, state: LeanState, side: Side, response: int, offer: Any) -> None:  # noqa: ANN401
        """Emit the events of a turn."""
        seat = side.seat
        if response != NOTHING and self.emit_response is not None:
            self.emit_response(self.ref, state.step, seat.id, response)
        if offer is not None and self.emit_offer is not None:
            self.emit_offer(self.ref, state.step, seat.id, offer if type(offer) is tuple else tuple(offer))
        if self.emit_turn is not None:
            if offer is not None:
                quantity, day, price = offer
                self.emit_turn((self.ref.index, state.step, seat.index, response, quantity, day, price))
            elif response != NOTHING:
                self.emit_turn((self.ref.index, state.step, seat.index, response, NOTHING, NOTHING, NOTHING))

    def _wait(self, state: LeanState, index: int) -> None:
        # the next pass starts with the waiting side, and includes the other one unless it has made its offer
        other = 1 - index
        self.last = other
        offered = any(pid == self.sides[other].pid for pid, _ in state.new_offers)
        self.waiting_order = (index,) if offered else (index, other)
        self.n_waits += 1
        if state.current_offer is not None:
            self._notify_partner(index, "on_partner_response", _WAIT)
        if self.n_waits > self.max_waits:
            self.n_waits = 0
            self.waiting_order = None
            state.timedout = True
            return
        state.waiting = True

    def _handle_response(self, state: LeanState, side: Side, index: int, response: Any, offer: Any) -> bool:  # noqa: ANN401
        """Handle every turn but a legal counter-offer and waiting; return whether the pass is over."""
        response, offer, data = plain_offer(response, offer)
        offer = self._valid_or_none(offer)
        if response == _WAIT:
            self._wait(state, index)
            return True
        self.n_waits = 0
        self.waiting_order = None
        if response == _REJECT and (offer is not None or data):
            self._record_offer(state, side, index, offer, data)
            return False
        if state.current_offer is not None:
            if response in _CODES:
                self._emit_turn(state, side, int(response), None)
            self._notify_partner(index, "on_partner_response", response)
        return self._conclude(state, side, response)

    def _conclude(self, state: LeanState, side: Side, response: Any) -> bool:  # noqa: ANN401
        if response in (_END, _REJECT):
            state.broken = True
        elif response == _LEAVE:
            state.left_negotiators.add(side.pid)
            raise TypeError("negmas 0.16 fails to notify a controller that it left, and runs the pass again")
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

    def _valid_or_none(self, offer: Any) -> Any:  # noqa: ANN401
        """Return a legal offer with integers, or None."""
        space = self.agenda.outcome_space
        if offer is None or not space.is_valid(offer):
            return None
        if outcome_types_are_ok(offer, space.issues):
            return offer
        return cast_value_types(offer, space.issues)

    def _notify_sides(self, callback: str) -> None:
        for side in self.sides:
            if callback in side.seat.callbacks:
                side.seat.notify(callback, self.state, negotiator_id=side.pid, state=snapshot(self.state))

    def _notify_partner(self, index: int, callback: str, value: Any) -> None:  # noqa: ANN401
        partner = self.sides[1 - index]
        if callback not in partner.seat.callbacks:
            return
        arguments = {"negotiator_id": partner.pid, "partner_id": self.sides[index].pid}
        if callback == "on_partner_response":
            arguments |= {"outcome": self.state.current_offer, "response": value}
        else:
            arguments |= {"offer": value}
        partner.seat.agent_call(callback, state=snapshot(self.state), **arguments)
