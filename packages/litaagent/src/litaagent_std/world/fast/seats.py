"""A seat: one factory with the agent that runs it.

The seat knows how its agent wants to be asked for turns, which optional callbacks the agent has, and counts what
goes wrong in the agent's code.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from negmas.negotiators.controller import Controller
from negmas.sao import SAOController, SAOSyncController
from scml.oneshot.agent import OneShotAgent
from scml.oneshot.common import NegotiationDetails, OneShotProfile
from scml.oneshot.sysagents import DefaultOneShotAdapter

from apexrl.runs.errors import UserFacingError
from litaagent_std.world.fast.turns import Turn, answers_together, chained_turn, plain_turn, sync_turn
from litaagent_std.world.reproducible.streams import Stream, switch
from litaagent_std.world.rules.settlement import Terms

if TYPE_CHECKING:
    from litaagent_std.world.fast.interface.awi import LeanAWI
    from litaagent_std.world.fast.interface.standins import LeanState
    from litaagent_std.world.fast.interface.ufun import LeanUFun, UFunFactory
    from litaagent_std.world.fast.negotiation import Side
    from litaagent_std.world.native.agent import NativeAgent

_OPTIONAL_CALLBACKS: Final = (
    "on_negotiation_start",
    "on_round_start",
    "on_round_end",
    "on_partner_proposal",
    "on_partner_response",
)


_UNCALLED: Final = (
    "create_negotiator",
    "make_negotiator",
    "add_negotiator",
    "kill_negotiator",
    "before_join",
    "after_join",
    "join",
    "call",
    "on_mechanism_error",
)
"""Methods of negmas' controllers that the fast engine does not call, because it makes no negotiators of their own."""


class UnsupportedAgentError(UserFacingError):
    """An agent does something that only scml's own engine can host."""


class SeatAdapter(DefaultOneShotAdapter):  # type: ignore[misc]
    """scml's adapter as agents know it (``awi.agent``); the engine fills it and calls the agent itself."""

    make_lean_ufun: Callable[[], LeanUFun]

    def make_ufun(self, add_exogenous: bool, in_adapter: bool = False) -> LeanUFun:
        """Make the day's utility function again, when an agent asks for it."""
        return self.make_lean_ufun()


class Seat:
    """A factory and its agent.

    Args:
        index: Number of the seat.
        agent: The agent.
        name: Id of the factory.
        stream: The seat's random stream.
        profile: The factory's private facts, in the agent's own copy.

    Attributes:
        mind: What decides in the place of the agent, if anything does; the agent is then never called.
        is_sync: Whether the agent is asked for all its partners together.
        tell_decision: Who hears when a mind decides for all its partners, if anybody does.
        total: Sum of all profits.
    """

    __slots__ = (
        "adapter",
        "agent",
        "awi",
        "balance",
        "bankrupt",
        "breach_levels",
        "breaches",
        "buying",
        "callbacks",
        "end_callback",
        "hears_preferences",
        "id",
        "index",
        "initial_balance",
        "inventory",
        "is_sync",
        "level",
        "mind",
        "n_active",
        "n_errors",
        "profile",
        "propose",
        "respond",
        "responded",
        "selling",
        "stream",
        "tell_decision",
        "terms",
        "total",
        "turn",
        "ufun",
        "ufun_factory",
    )

    awi: LeanAWI
    terms: Terms
    turn: Callable[[Side, LeanState], Turn]
    ufun: LeanUFun
    ufun_factory: UFunFactory

    def __init__(
        self, index: int, agent: OneShotAgent, name: str, stream: Stream, profile: OneShotProfile, balance: int
    ) -> None:
        self.index = index
        self.agent = agent
        self.id = name
        self.stream = stream
        self.profile = profile
        self.level = int(profile.input_product)
        self.initial_balance = balance
        self.balance: float = balance
        self.total: float = 0
        self.inventory = 0
        self.bankrupt = False
        self.breaches: list[bool] = []
        self.breach_levels: list[float] = []
        self.n_active = 0
        self.n_errors = 0
        self.mind: NativeAgent | None = None
        self.tell_decision: Callable[[int], None] | None = None
        self.responded: Any = None
        self.buying: dict[str, NegotiationDetails] = {}
        self.selling: dict[str, NegotiationDetails] = {}
        self.adapter = _make_adapter(agent, name)
        self._study_agent()

    def _study_agent(self) -> None:
        """Find out how the agent wants to be asked."""
        agent, kind = self.agent, type(self.agent)
        self._refuse_own_negotiators()
        self.is_sync = answers_together(agent)
        self.propose, self.respond = agent.propose, agent.respond
        if self.is_sync:
            self.turn = sync_turn
        elif _takes(agent.propose, False) and _takes(agent.respond, True):
            self.turn = plain_turn
        else:
            self.turn = chained_turn
        self.callbacks = frozenset(name for name in _OPTIONAL_CALLBACKS if _overridden(agent, name))
        self.hears_preferences = _overridden(agent, "on_preferences_changed") or _overridden(agent, "set_preferences")
        self.end_callback = "custom"
        ending = getattr(kind, "on_negotiation_end", None)
        if "on_negotiation_end" not in agent.__dict__:
            if ending is SAOSyncController.on_negotiation_end and _plain_reset(kind):
                self.end_callback = "sync"
            elif ending is Controller.on_negotiation_end:
                self.end_callback = "none"

    def _refuse_own_negotiators(self) -> None:
        """Refuses agents that would not be called the way negmas calls them."""
        agent, kind = self.agent, type(self.agent)
        own = [
            name
            for name in _UNCALLED
            if name in agent.__dict__
            or getattr(kind, name) not in (getattr(SAOController, name), getattr(SAOSyncController, name))
        ]
        if own:
            raise UnsupportedAgentError(
                f"{kind.__module__}.{kind.__qualname__} in seat {self.index} overrides {', '.join(own)}",
                "the fast engine answers for an agent's negotiators itself and would never call them",
                'run the world with engine="scml" (lita: --engine scml)',
            )

    def end_negotiation(self, side: Side, state: LeanState) -> None:
        """Tells the agent's controller that a negotiation is over, before the agent hears of the outcome."""
        agent, pid = self.agent, side.pid
        if self.mind is not None:
            self.mind.leave(pid)
            return
        if self.end_callback == "sync":
            agent._SAOSyncController__offers.pop(pid, None)
            agent._SAOSyncController__offer_states.pop(pid, None)
            agent._SAOSyncController__responses.pop(pid, None)
            agent._SAOSyncController__proposals.pop(pid, None)
            agent._SAOSyncController__n_waits.pop(pid, None)
        elif self.end_callback == "custom":
            self.tell("on_negotiation_end", state, negotiator_id=pid, state=state.__copy__())
        values = side.negotiator.__dict__
        values["nmi"] = values["_nmi"] = None
        self.n_active -= 1

    def tell(self, callback: str, live: LeanState, **told: Any) -> None:  # noqa: ANN401 - negmas' callbacks
        """Call an optional callback of negotiations; as in negmas, an exception only marks the state."""
        try:
            self.agent_call(callback, **told)
        except Exception as error:  # an agent may raise anything
            live.has_error = True
            live.error_details = str(error)
            live.erred_negotiator = told.get("negotiator_id", "")
            live.erred_agent = self.id

    def agent_call(self, method: str, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any method
        """Call a method of the agent under its stream."""
        previous = switch(self.stream)
        try:
            return getattr(self.agent, method)(*args, **kwargs)
        finally:
            switch(previous)


def _make_adapter(agent: OneShotAgent, name: str) -> SeatAdapter:
    adapter = SeatAdapter(obj=agent, name=name)
    adapter.id = name
    agent.id = name
    agent.name = name
    agent.connect_to_oneshot_adapter(adapter)
    return adapter


def _takes(method: Callable[..., Any], source: bool) -> bool:
    """Tells whether the first call that negmas would make fits the method's parameters.

    For `propose` that is the call without ``dest``: agents that take it are asked by `chained_turn`.
    """
    function = getattr(method, "__func__", None)
    if function is None:  # the agent's own, set on the instance: not worth keeping
        return _fits.__wrapped__(method, False, source)
    return _fits(function, True, source)


@functools.cache
def _fits(function: Callable[..., Any], bound: bool, source: bool) -> bool:
    signature = inspect.signature(functools.partial(function, None) if bound else function)
    try:
        if source:
            signature.bind(negotiator_id="", state=None, source="")
            return True
        signature.bind(negotiator_id="", state=None)
    except TypeError:
        return False
    try:
        signature.bind(negotiator_id="", state=None, dest="")
    except TypeError:
        return True
    return function is SAOSyncController.propose


def _overridden(agent: OneShotAgent, name: str) -> bool:
    if name in agent.__dict__:
        return True
    found = getattr(type(agent), name, None)
    return found is not None and not found.__module__.startswith("negmas.")


def _plain_reset(kind: type) -> bool:
    return getattr(kind, "_reset_for", None) is SAOSyncController._reset_for
