"""scml's adapter and negotiation mechanism, which call the agents, with streams and events."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from litaagent_std.world.events import (
    AGREEMENT,
    BROKEN,
    ENDED,
    ERROR,
    NOTHING,
    STATUSES,
    TIMEDOUT,
    NegotiationEnd,
    NegotiationRef,
)
from litaagent_std.world.fast.turns import has_decided, is_synchronous, sync_buffers
from litaagent_std.world.reproducible.clock import VirtualTimeMechanism
from litaagent_std.world.reproducible.streams import Stream, switch

from negmas import ResponseType  # isort: skip  # after the streams are installed
from scml.oneshot.sysagents import DefaultOneShotAdapter  # isort: skip

if TYPE_CHECKING:
    from litaagent_std.world.scml.engine import ScmlWorld

__all__ = ["SeatAdapter", "SeatMechanism"]


class SeatAdapter(DefaultOneShotAdapter):  # type: ignore[misc]  # scml has no type information
    """scml's adapter between the world and an agent; its calls use the seat's stream."""

    stream: Stream
    world_stream: Stream
    index: int

    def make_ufun(self, add_exogenous: bool, in_adapter: bool = False) -> Any:  # noqa: ANN401  # scml's type
        """Make the day's utility function under the world's stream, because the framework draws, not the agent."""
        previous = switch(self.world_stream)
        try:
            return super().make_ufun(add_exogenous, in_adapter)
        finally:
            switch(previous)

    def reset(self) -> None:
        """Forget the last day's negotiations."""
        self._under_stream(super().reset)

    def before_step(self) -> None:
        """Start the agent's day."""
        self._under_stream(super().before_step)

    def _under_stream(self, method: Callable[..., Any], *args: Any) -> Any:  # noqa: ANN401  # passes through
        previous = switch(self.stream)
        try:
            return method(*args)
        except Exception as error:
            self.awi._world.report_error(self.id, method.__name__, error)
            raise
        finally:
            switch(previous)


class SeatMechanism(VirtualTimeMechanism):
    """A negotiation whose calls use the seats' streams and whose turns are emitted to observers."""

    world: ScmlWorld
    ref: NegotiationRef

    def _safe_counter(self, negotiator: Any, state: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # negmas's types
        current_offer, seat = state.current_offer, negotiator.owner
        agent, hub = seat.adapted_object, self.world.hub
        before = sync_buffers(agent) if hub.decision is not None and is_synchronous(agent) else None
        started = time.perf_counter()
        previous = switch(seat.stream)
        try:
            response, failed = super()._safe_counter(negotiator, state, *args, **kwargs)
        except Exception as error:
            self.world.report_error(seat.id, "negotiation", error)
            raise
        finally:
            switch(previous)
        if time.perf_counter() - started >= self._internal_nmi.step_time_limit:
            self.world.limit_fired = True
        if before is not None and hub.decision is not None and has_decided(agent, before):
            hub.decision(seat.index)
        if response is not None and response.response != ResponseType.WAIT:
            self._emit_turn(seat, current_offer, response, state.step)
        return response, failed

    def _emit_turn(self, seat: SeatAdapter, current_offer: Any, response: Any, round_: int) -> None:  # noqa: ANN401
        hub = self.world.hub
        # Agents may return anything; negmas compares it with each response type, and 1 or True equal one of them.
        code = next((known.value for known in ResponseType if known == response.response), None)
        responds = current_offer is not None and code is not None
        offers = code == ResponseType.REJECT_OFFER and response.outcome is not None
        if responds and code is not None and hub.response is not None:
            hub.response(self.ref, round_, seat.id, code)
        if offers and hub.offer is not None:
            hub.offer(self.ref, round_, seat.id, tuple(response.outcome))
        if (responds or offers) and hub.turn is not None:
            response_code = code if responds and code is not None else NOTHING
            quantity, day, price = response.outcome if offers else (NOTHING, NOTHING, NOTHING)
            hub.turn((self.ref.index, round_, seat.index, response_code, quantity, day, price))

    def _call(self, negotiator: Any, callback: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # negmas's types
        previous = switch(negotiator.owner.stream)
        try:
            return super()._call(negotiator, callback, *args, **kwargs)
        finally:
            switch(previous)

    def on_negotiation_end(self) -> None:
        """Emit the end of the negotiation, then let negmas notify the negotiators."""
        state = self._current_state
        hub, ref = self.world.hub, self.ref
        status = BROKEN if state.broken else TIMEDOUT
        if state.agreement is not None:
            status = AGREEMENT
        elif state.has_error:
            status = ERROR
        if hub.negotiation_end is not None:
            agreement = None if state.agreement is None else tuple(state.agreement)
            hub.negotiation_end(NegotiationEnd(ref, state.step, STATUSES[status], agreement))
        if hub.end is not None:
            seats = self.world.agents
            caller, buyer, seller = (seats[agent].index for agent in (ref.caller, ref.buyer, ref.seller))
            hub.end((ref.index, state.step, caller, ENDED + status, buyer, seller, ref.product))
        super().on_negotiation_end()
