"""How an agent is asked for its turn in a negotiation.

negmas asks through a chain of objects: mechanism, negotiator, controller. The functions here call the controller
(the agent) directly and do what the chain would have done:

- `sync_turn`: agents that decide for all partners together (negmas' ``SAOSyncController``).
- `plain_turn`: agents with their own `propose` and `respond`.
- `chained_turn`: agents whose `propose` or `respond` have unusual parameters.
- `native_turn`: native agents in a negotiation with a hosted one.
- `silent_turn`: seats whose agent is gone.

If an agent raises, negmas asks again in a certain pattern before it gives up; `repeat_turn` follows that pattern.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from negmas.gb.common import ExtendedResponseType
from negmas.helpers import TimeoutCaller, TimeoutError
from negmas.outcomes.common import ExtendedOutcome
from negmas.sao import ResponseType, SAOResponse, SAOSyncController

from litaagent_std.world.events import REJECT
from litaagent_std.world.fast.interface.proxies import LeanState, snapshot
from litaagent_std.world.reproducible.streams import admit, switch

if TYPE_CHECKING:
    from litaagent_std.world.fast.negotiation import Side

Turn = tuple[Any, Any]
"""A response and an offer, as the agent gave them."""

_SYNC_PARTS: Final = (
    "respond",
    "propose",
    "_set_first_proposals",
    "_filter_unexpected_offers",
    "_reset_for",
    "first_offer",
)

SyncBuffers = tuple[dict[str, Any], dict[str, Any]]
"""The offers that a synchronous agent has collected, and its proposals."""

_RESPONSES: Final = tuple(ResponseType)

_WAIT = ResponseType.WAIT
_REJECT = ResponseType.REJECT_OFFER
_END = ResponseType.END_NEGOTIATION


def is_synchronous(agent: Any) -> bool:  # noqa: ANN401 - an agent of any class
    """Return whether an agent decides for all its partners together, by negmas' own ``SAOSyncController``."""
    kind = type(agent)
    return isinstance(agent, SAOSyncController) and all(
        getattr(kind, part) is getattr(SAOSyncController, part) and part not in agent.__dict__ for part in _SYNC_PARTS
    )


def sync_buffers(agent: Any) -> SyncBuffers:  # noqa: ANN401 - a synchronous agent
    """Return the present buffers of a synchronous agent."""
    return agent._SAOSyncController__offers, agent._SAOSyncController__proposals


def has_decided(agent: Any, before: SyncBuffers) -> bool:  # noqa: ANN401 - a synchronous agent
    """Return whether an agent has decided for all its partners since it had the buffers `before`.

    Every decision replaces at least one of the two dictionaries.
    """
    offers, proposals = before
    return agent._SAOSyncController__offers is not offers or agent._SAOSyncController__proposals is not proposals


def sync_turn(side: Side, state: LeanState) -> Turn:
    """Take the turn of an agent that collects the offers of all its partners before it responds.

    The agent's buffers are those of negmas' ``SAOSyncController``, under the same names.
    """
    seat, pid = side.seat, side.pid
    seat.responded = None
    offer = state.current_offer
    if offer is None:
        return _REJECT, _sync_proposal(side, state.step)
    agent = seat.agent
    # a response that was decided together with those to other partners
    response = agent._SAOSyncController__responses.pop(pid, _WAIT)
    if response != _WAIT:
        agent._SAOSyncController__n_waits[pid] = 0
    else:
        # collect the offer; wait for the other partners, but only so often
        offers = agent._SAOSyncController__offers
        offers[pid] = offer
        states = agent._SAOSyncController__offer_states
        if pid not in states:  # while the agent waits, the negotiation does not change
            states[pid] = snapshot(state)
        n_active = seat.n_active
        if len(offers) < n_active:
            waits = agent._SAOSyncController__n_waits
            if waits[pid] < n_active:
                waits[pid] += 1
                return _WAIT, offer
        response = _counter_all(side)
    if response != _REJECT:
        return response, offer
    seat.responded = response
    return response, _sync_proposal(side, state.step)


def _counter_all(side: Side) -> Any:  # noqa: ANN401 - any response of the agent
    seat, pid = side.seat, side.pid
    agent = seat.agent
    switch(seat.stream)
    if not agent._SAOSyncController__first_proposals_collected:
        agent._set_first_proposals()
    offers = agent._SAOSyncController__offers = dict(agent._SAOSyncController__offers)
    replies = agent.counter_all(offers=offers, states=agent._SAOSyncController__offer_states)
    # keep the replies for the turns with the other partners; a missing reply ends the negotiation
    responses = agent._SAOSyncController__responses
    proposals = agent._SAOSyncController__proposals
    waits = agent._SAOSyncController__n_waits
    for partner in agent._negotiators:
        if partner not in replies:
            replies[partner] = SAOResponse(_END, None)
        reply = replies.get(partner, None)
        if reply is None:
            responses[partner] = _REJECT
            proposals[partner] = None
            continue
        responses[partner] = reply.response
        proposals[partner] = reply.outcome
        waits[partner] = 0
    agent._SAOSyncController__offers = {}
    agent._SAOSyncController__offer_states = {}
    return responses.pop(pid, _REJECT)


def _sync_proposal(side: Side, step: int) -> Any:  # noqa: ANN401 - any proposal of the agent
    if side.proposed_at == step and side.proposal is not None:
        return side.proposal  # one proposal per round, however often negmas asks
    seat, pid = side.seat, side.pid
    agent = seat.agent
    proposals = agent._SAOSyncController__proposals
    if not proposals:  # the first turn of the day
        switch(seat.stream)
        agent._set_first_proposals()
        proposals = agent._SAOSyncController__proposals
    if pid in proposals:
        proposal = proposals.pop(pid, None)
    else:
        switch(seat.stream)
        if agent._SAOSyncController__global_ufun:
            agent._set_first_proposals()
            proposal = agent._SAOSyncController__proposals.pop(pid, None)
        else:
            proposal = agent.first_offer(pid)
    agent._SAOSyncController__n_waits[pid] = 0
    agent._SAOSyncController__responses.pop(pid, None)
    agent._SAOSyncController__offers.pop(pid, None)
    agent._SAOSyncController__offer_states.pop(pid, None)
    side.proposed_at = step
    side.proposal = proposal
    return proposal


def plain_turn(side: Side, state: LeanState) -> Turn:
    """Take the turn of an agent with its own `propose` and `respond`."""
    seat, pid = side.seat, side.pid
    seat.responded = None
    switch(seat.stream)
    view = snapshot(state)
    offer = state.current_offer
    if offer is None:
        return _REJECT, _plain_proposal(side, view)
    response = seat.respond(negotiator_id=pid, state=view, source=state.current_proposer)
    if response != _REJECT:
        if isinstance(response, ExtendedResponseType) and response.response == _REJECT:
            return response, _plain_proposal(side, view)
        return response, offer
    seat.responded = response
    return response, _plain_proposal(side, view)


def _plain_proposal(side: Side, view: LeanState) -> Any:  # noqa: ANN401 - any proposal of the agent
    step = view.step
    if side.proposed_at == step and side.proposal is not None:
        return side.proposal  # one proposal per round, however often negmas asks
    side.proposal = side.seat.propose(negotiator_id=side.pid, state=view)
    side.proposed_at = step
    return side.proposal


def native_turn(side: Side, state: LeanState) -> Turn:
    """Take the turn of a native agent in a negotiation with a hosted one."""
    native = side.seat.native
    if native is None:
        raise RuntimeError(f"{side.seat.id} has no native agent; its turns are the hosted agent's")
    link = native.links[side.pid]
    offer = state.current_offer
    if offer is not None:
        response = native.respond(link, state.step, offer)
        if response != REJECT:
            return _RESPONSES[response], offer
    if side.proposed_at != state.step or side.proposal is None:
        side.proposal = native.propose(link, state.step)
        side.proposed_at = state.step
    return _REJECT, side.proposal


def silent_turn(side: Side, state: LeanState) -> Turn:
    """Take the turn of a seat whose agent is gone: it offers nothing and ends the negotiation."""
    return (_REJECT, None) if state.current_offer is None else (_END, None)


def chained_turn(side: Side, state: LeanState) -> Turn:
    """Take the turn of an agent whose `propose` or `respond` have unusual parameters, as negmas would."""
    side.seat.responded = None
    switch(side.seat.stream)
    calls = _Calls(side, None, None)
    return calls.counter(snapshot(state), side.dest())


class LimitExceededError(BaseException):
    """A call of an agent exceeded its time limit; not an `Exception`, because no agent raised it."""


def limited(
    turn: Callable[[Side, LeanState], Turn], seconds: float, fired: Callable[[], None]
) -> Callable[[Side, LeanState], Turn]:
    """Limit the wall-clock time of every turn, with a thread.

    Args:
        turn: How turns are taken.
        seconds: The limit.
        fired: Called when the limit is exceeded.
    """
    admit(f"{TimeoutCaller.get_pool()._thread_name_prefix}_")  # the pool has no public name

    def take(side: Side, state: LeanState) -> Turn:
        started = time.perf_counter()
        try:
            taken: Turn = TimeoutCaller.run(lambda: turn(side, state), timeout=seconds)
        except TimeoutError as error:
            fired()
            raise LimitExceededError from error
        if time.perf_counter() - started > seconds:
            fired()
            raise LimitExceededError
        return taken

    return take


def repeat_turn(side: Side, state: LeanState, error: Exception) -> Turn:
    """Continue as negmas does after the first call of a turn has raised `error`.

    A ``TypeError`` may come from an agent that lacks an optional parameter, so negmas calls again without it;
    any exception makes it ask for the whole turn once more.

    Raises:
        Exception: If the last call raised, too.
    """
    seat = side.seat
    response, seat.responded = seat.responded, None
    switch(seat.stream)
    view = snapshot(state)
    try:
        return _Calls(side, error, response).counter(view, side.dest())
    except Exception:  # an agent may raise anything; the second failure is passed on
        return _Calls(side, None, None).counter(view, None)


class _Calls:
    """The calls of one turn in negmas' order, of which the first may already have failed.

    Args:
        side: Whose turn it is.
        error: The exception of the failed call; None if no call has failed.
        response: The agent's response before its `propose` failed; None if there was none.
    """

    def __init__(self, side: Side, error: Exception | None, response: Any) -> None:  # noqa: ANN401
        self._side = side
        self._error = error
        self._response = response

    def counter(self, state: LeanState, dest: str | None) -> Turn:
        """Respond to the current offer and, if that is a rejection, propose."""
        offer = state.current_offer
        if offer is None:
            return _REJECT, self._propose(state, dest)
        try:
            response = self._respond(state, state.current_proposer)
        except TypeError:
            response = self._respond(state, None)
        code = response.response if isinstance(response, ExtendedResponseType) else response
        if code != _REJECT:
            return response, offer
        return response, self._propose(state, None)

    def _respond(self, state: LeanState, source: str | None) -> Any:  # noqa: ANN401
        if self._response is not None:
            response, self._response = self._response, None
            return response
        return self._twice(self._side.seat.agent.respond, state, source=source)

    def _propose(self, state: LeanState, dest: str | None) -> Any:  # noqa: ANN401
        side = self._side
        if side.proposed_at != state.step or side.proposal is None:
            side.proposal = self._twice(side.seat.agent.propose, state, dest=dest or state.current_proposer)
            side.proposed_at = state.step
        return side.proposal

    def _twice(self, call: Callable[..., Any], state: LeanState, **optional: str | None) -> Any:  # noqa: ANN401
        pid = self._side.pid
        try:
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            return call(negotiator_id=pid, state=state, **optional)
        except TypeError:
            return call(negotiator_id=pid, state=state)


def plain_offer(response: Any, offer: Any) -> tuple[Any, Any, Any]:  # noqa: ANN401
    """Strip negmas' extended responses and offers down to response, outcome and data."""
    if isinstance(response, ExtendedResponseType) or isinstance(offer, ExtendedOutcome):
        merged = SAOResponse.from_extended(response, offer)
        return merged.response, merged.outcome, merged.data
    return response, offer, None
