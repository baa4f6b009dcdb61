"""A seat: one factory with the agent that runs it.

The seat knows how its agent is asked for turns and which optional callbacks the agent overrides. It counts the
exceptions of the agent's code.
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

from apexrl.runs.errors import UserFacingError, safe_text
from litaagent_std.world.fast.turns import (
    Turn,
    chained_turn,
    is_synchronous,
    native_turn,
    plain_turn,
    silent_turn,
    sync_turn,
)
from litaagent_std.world.reproducible.streams import Stream, switch
from litaagent_std.world.rules.settlement import Terms

if TYPE_CHECKING:
    from litaagent_std.world.fast.interface.awi import LeanAWI
    from litaagent_std.world.fast.interface.proxies import LeanState
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
"""Methods of negmas' controllers that the fast engine never calls, because it makes all negotiators itself."""


class UnsupportedAgentError(UserFacingError):
    """An agent overrides a method that only scml's own engine calls."""


class SeatAdapter(DefaultOneShotAdapter):  # type: ignore[misc]
    """scml's adapter, which agents know as ``awi.agent``; the engine fills it and calls the agent directly."""

    make_lean_ufun: Callable[[], LeanUFun]

    def make_ufun(self, add_exogenous: bool, in_adapter: bool = False) -> LeanUFun:
        """Make the day's utility function again; agents may call it."""
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
        native: The native agent, if the seat has one; the agent object is then never called.
        is_isolated: Whether the agent plays in a process of its own (`world.isolated`).
        is_sync: Whether the agent object decides for all its partners together.
        notify_decision: Called when a native agent has decided for all its partners, if an observer wants to know.
        callbacks: The optional callbacks that the agent overrides.
        end_callback: How the agent handles ends of negotiations: ``sync``, ``none`` or ``custom``.
        has_preference_callbacks: Whether the agent overrides a callback for new preferences.
        responded: What the agent responded in this turn before it proposes.
        n_active: Negotiations that are running.
        buying: Today's running negotiations with suppliers.
        selling: Today's running negotiations with consumers.
        terms: What today's settlement depends on beside contracts with other factories.
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
        "has_preference_callbacks",
        "id",
        "index",
        "initial_balance",
        "inventory",
        "is_isolated",
        "is_sync",
        "level",
        "n_active",
        "n_errors",
        "native",
        "notify_decision",
        "profile",
        "propose",
        "respond",
        "responded",
        "selling",
        "stream",
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
        self.native: NativeAgent | None = None
        self.notify_decision: Callable[[int], None] | None = None
        self.responded: Any = None
        self.buying: dict[str, NegotiationDetails] = {}
        self.selling: dict[str, NegotiationDetails] = {}
        self.adapter = _make_adapter(agent, name)
        self.inspect_agent()

    def inspect_agent(self) -> None:
        """Find out how the agent is asked for turns and which callbacks it overrides."""
        agent, kind = self.agent, type(self.agent)
        self._refuse_own_negotiators()
        self.is_isolated: bool = getattr(kind, "is_isolated", False)
        self.is_sync = is_synchronous(agent)
        self.propose, self.respond = agent.propose, agent.respond
        if self.is_sync:
            self.turn = sync_turn
        elif _takes(agent.propose, False) and _takes(agent.respond, True):
            self.turn = plain_turn
        else:
            self.turn = chained_turn
        self.callbacks = frozenset(name for name in _OPTIONAL_CALLBACKS if _overridden(agent, name))
        self.has_preference_callbacks = _overridden(agent, "on_preferences_changed") or _overridden(
            agent, "set_preferences"
        )
        self.end_callback = "custom"
        ending = getattr(kind, "on_negotiation_end", None)
        if "on_negotiation_end" not in agent.__dict__:
            if ending is SAOSyncController.on_negotiation_end and _plain_reset(kind):
                self.end_callback = "sync"
            elif ending is Controller.on_negotiation_end:
                self.end_callback = "none"

    def _refuse_own_negotiators(self) -> None:
        """Raise an error for agents that would not be called the way negmas calls them."""
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
                "the fast engine makes an agent's negotiators itself and would never call these methods",
                'run the world with engine="scml" (lita: --engine scml)',
            )

    def play_natively(self, native: NativeAgent, notify_decision: Callable[[int], None] | None) -> None:
        """Let a native agent take all turns of the seat."""
        self.native = native
        self.turn = native_turn
        self.is_sync = False
        self.notify_decision = notify_decision

    def fall_silent(self) -> None:
        """Make no offers any more, because the agent is gone."""
        self.turn = silent_turn
        self.is_sync = False

    def end_negotiation(self, side: Side, state: LeanState) -> None:
        """Notify the agent's controller that a negotiation is over, before the agent is notified of the outcome."""
        agent, pid = self.agent, side.pid
        if self.native is not None:
            self.native.leave(pid)
            return
        if self.end_callback == "sync":
            agent._SAOSyncController__offers.pop(pid, None)
            agent._SAOSyncController__offer_states.pop(pid, None)
            agent._SAOSyncController__responses.pop(pid, None)
            agent._SAOSyncController__proposals.pop(pid, None)
            agent._SAOSyncController__n_waits.pop(pid, None)
        elif self.end_callback == "custom":
            self.notify("on_negotiation_end", state, negotiator_id=pid, state=state.__copy__())
        self.forget_negotiation(side)

    def forget_negotiation(self, side: Side) -> None:
        """Take the NMI of a negotiation that is over from the agent's negotiator."""
        values = side.negotiator.__dict__
        values["nmi"] = values["_nmi"] = None
        self.n_active -= 1

    def notify(self, callback: str, live_state: LeanState, **arguments: Any) -> None:  # noqa: ANN401 - negmas'
        """Call an optional callback of negotiations; as in negmas, an exception only marks the state."""
        try:
            self.agent_call(callback, **arguments)
        except Exception as error:  # an agent may raise anything
            live_state.has_error = True
            live_state.error_details = safe_text(error)
            live_state.erred_negotiator = arguments.get("negotiator_id", "")
            live_state.erred_agent = self.id

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
    """Return whether the first call that negmas would make fits the method's parameters.

    For `propose` that is the call without ``dest``: agents that take it are asked by `chained_turn`.
    """
    function = getattr(method, "__func__", None)
    if function is None:  # set on the instance: not worth caching
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
    method = getattr(type(agent), name, None)
    return method is not None and not method.__module__.startswith("negmas.")


def _plain_reset(kind: type) -> bool:
    return getattr(kind, "_reset_for", None) is SAOSyncController._reset_for
