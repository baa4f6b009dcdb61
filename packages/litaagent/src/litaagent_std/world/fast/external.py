"""External seats: the world stops where such a seat has to decide, and continues with the reply.

A loop around it::

    setup = official_setup(7, n_days=50).with_agents({0: external_seat(0)})
    play = FastWorld(setup).play()
    decision = next(play, None)
    while decision is not None:
        try:
            decision = play.send(policy(decision))
        except StopIteration:
            break

No threads are involved: the negotiation is suspended until the reply is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from negmas.sao import SAOResponse, SAOState
from scml.std.agent import StdSyncAgent

from litaagent_std.world.events import Outcome
from litaagent_std.world.fast.interface.awi import LeanAWI
from litaagent_std.world.setup import AgentSpec

Reply = Mapping[str, Outcome | None] | Mapping[str, SAOResponse]
"""Proposals by partner for ``first_proposals``, responses by partner for ``counter_all``."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a seat has to decide now.

    Attributes:
        seat: Number of the seat.
        agent: Id of the factory.
        kind: ``first_proposals``: an offer for every partner that may be proposed to; the reply maps partners to
            outcomes. ``counter_all``: a response to every offer; the reply maps partners to `SAOResponse`, and the
            negotiation ends with a partner that is missing from it.
        partners: Partners with whom a negotiation was opened today.
        offers: Current offers, by partner (empty for ``first_proposals``).
        states: The states of these negotiations, by partner.
        awi: The seat's interface to the world.
    """

    seat: int
    agent: str
    kind: Literal["first_proposals", "counter_all"]
    partners: tuple[str, ...]
    offers: Mapping[str, Outcome]
    states: Mapping[str, SAOState]
    awi: LeanAWI


class DecisionNeeded(BaseException):
    """Stops a negotiation until an external seat has decided.

    Not an `Exception`, because exceptions are what agents raise by mistake.

    Args:
        agent: The agent that needs the decision.
        decision: The decision.
    """

    def __init__(self, agent: ExternalAgent, decision: Decision) -> None:
        super().__init__(
            f"{decision.agent} is an external seat and has to decide {decision.kind}; "
            "run its world with FastWorld.play() and send the reply"
        )
        self.agent = agent
        self.decision = decision


class ExternalAgent(StdSyncAgent):  # type: ignore[misc]
    """The agent of an external seat; its decisions come from outside the world.

    Args:
        seat: Number of the seat, for `Decision.seat`.
    """

    def __init__(self, *args: Any, seat: int = -1, **kwargs: Any) -> None:  # noqa: ANN401 - scml's arguments
        super().__init__(*args, **kwargs)
        self._seat = seat
        self._reply: Reply | None = None

    def give(self, reply: Reply) -> None:
        """Set the reply to the decision that was requested.

        Raises:
            TypeError: If the reply is not a mapping from partners.
        """
        if not isinstance(reply, Mapping):
            raise TypeError(
                f"the reply for {self.id} is {reply!r}, but must map partners to outcomes (first_proposals) "
                "or to SAOResponse (counter_all); send {} to end all negotiations"
            )
        self._reply = reply

    def first_proposals(self) -> dict[str, Outcome | None]:
        """Return the reply, or stop the world until there is one."""
        return dict(self._ask("first_proposals", {}, {}))

    def counter_all(self, offers: dict[str, Outcome], states: dict[str, SAOState]) -> dict[str, SAOResponse]:
        """Return the reply, or stop the world until there is one."""
        return dict(self._ask("counter_all", offers, states))

    def _ask(
        self,
        kind: Literal["first_proposals", "counter_all"],
        offers: Mapping[str, Outcome],
        states: Mapping[str, SAOState],
    ) -> Any:  # noqa: ANN401 - the reply to the decision that was requested
        if self._reply is None:
            partners = tuple(self.negotiators)
            decision = Decision(self._seat, self.id, kind, partners, dict(offers), dict(states), self.awi)
            raise DecisionNeeded(self, decision)
        reply, self._reply = self._reply, None
        return reply


def external_seat(seat: int) -> AgentSpec:
    """Return the agent of an external seat."""
    return AgentSpec(f"{__name__}.ExternalAgent", {"seat": seat})
