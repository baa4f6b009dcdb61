"""The events of a world, and the observers that receive them.

Both engines emit the same events in the same order, so a recorder, an environment or a test depends on no engine and
wraps no agent. An observer is any object with some of the methods of `WorldObserver`. A method that is not overridden
costs nothing, because the engine collects the overridden ones once, before the first day (`EventHub`).

Order of the events::

    world_start
      per day: day_start, negotiation_start*, (decision | response | offer | turn | negotiation_end | contract |
               error)*, settlement*, bankruptcy*, day_end
    world_end

Within a negotiation, one turn is an optional `on_response` (only if there is a current offer) followed by an optional
`on_offer` (only if a legal counter-offer was made). `on_turn` follows and holds both as one row of integers. A turn in
which a synchronous agent waits for its other partners is no event; `on_decision` precedes the turn at which such an
agent decides for all partners. `on_negotiation_end` follows the turn that ended the negotiation, and `on_end` holds the
same as one row of integers; if it ended in agreement, `on_contract` follows directly. Exogenous contracts are part of
`DayStart`.

Turns and ends as rows have the same width, so that a recorder keeps both in one flat list and makes no object per
event: the fourth column tells them apart, a response code up to `LEAVE`, or `ENDED` and above.

Contracts between factories are executed in the order of their conclusion, then the day's exogenous ones in the
configuration's order. scml keeps the latter in a set of objects with random ids, so that its own order, and the
last bit of its trading prices, differ from run to run; both engines fix the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from apexrl.runs.errors import safe_text

if TYPE_CHECKING:
    from litaagent_std.world.setup import DailyCosts

Outcome = tuple[int, int, int]
"""An offer as the league writes it: (quantity, delivery day, unit price)."""

TurnRow = tuple[int, int, int, int, int, int, int]
"""A turn: number of the negotiation, round, seat, response, then quantity, delivery day and unit price of the offer.

`NOTHING` stands for the response if there was no offer to respond to, and for the offer if none was made.
"""

EndRow = tuple[int, int, int, int, int, int, int]
"""An end: number of the negotiation, rounds completed, caller, `ENDED` + status, buyer, seller and product.

The status is an index of `STATUSES`; an agreement is on the latest offer of the negotiation.
"""

ROW_WIDTH: Final = 7
"""Integers of a `TurnRow` and of an `EndRow`."""

NOTHING = -1

ACCEPT, REJECT, END, NO_RESPONSE, WAIT, LEAVE = range(6)
"""Response codes; the values are those of ``negmas.ResponseType``."""

ENDED: Final = 8
"""Codes from here on are those of an `EndRow`."""

STATUSES: Final = ("agreement", "broken", "timedout", "error")
"""How a negotiation may end."""

AGREEMENT, BROKEN, TIMEDOUT, ERROR = range(len(STATUSES))


@dataclass(frozen=True, slots=True)
class WorldStart:
    """The constants of a world, public and private.

    Attributes:
        agents: Ids of the factories in seat order, without the two system agents.
        levels: Production level of each agent.
        agent_types: Full class name of each agent's controller.
        n_lines: Production lines of each agent.
        costs: Production cost per unit of each agent.
        initial_balances: Starting balance of each agent.
        catalog_prices: Catalog price of each product.
        n_days: Days the world will run.
        n_rounds: Rounds per negotiation.
        horizon: Days ahead that deliveries can be agreed for.
        daily_costs: Relative costs of each agent on each day; agents learn them day by day.
        controllers: The agents themselves. A native agent plays in the place of a default agent's object.
    """

    agents: tuple[str, ...]
    levels: tuple[int, ...]
    agent_types: tuple[str, ...]
    n_lines: tuple[int, ...]
    costs: tuple[float, ...]
    initial_balances: tuple[float, ...]
    catalog_prices: tuple[float, ...]
    n_days: int
    n_rounds: int
    horizon: int
    daily_costs: DailyCosts = field(repr=False, compare=False)
    controllers: tuple[object, ...] = field(repr=False, compare=False)


class Exogenous(NamedTuple):
    """An exogenous contract revealed today; the partner is the system seller or buyer."""

    buyer: str
    seller: str
    product: int
    quantity: int
    unit_price: int


@dataclass(frozen=True, slots=True)
class DayStart:
    """The state of the world before the day's negotiations.

    Attributes:
        day: The day.
        trading_prices: Trading price of each product.
        exogenous: The exogenous contracts revealed today, in the configuration's order.
        balances: Balance of each agent, in seat order.
        inventories: Input inventory of each agent, in seat order.
        issues: Per product, the ranges ((q_min, q_max), (t_min, t_max), (p_min, p_max)); products without
            negotiations keep their latest ranges.
    """

    day: int
    trading_prices: tuple[float, ...]
    exogenous: tuple[Exogenous, ...]
    balances: tuple[float, ...]
    inventories: tuple[int, ...]
    issues: tuple[tuple[tuple[int, int], tuple[int, int], tuple[int, int]], ...]


class NegotiationRef(NamedTuple):
    """Who negotiates what; the same object accompanies every event of the negotiation.

    Attributes:
        day: The day.
        index: Position in the day's order of registration, from 0.
        caller: The agent that proposes first.
        partner: The agent that responds first.
        buyer: The one of the two that buys.
        seller: The one of the two that sells.
        product: The product.
    """

    day: int
    index: int  # type: ignore[assignment]  # tuple.index is of no use here
    caller: str
    partner: str
    buyer: str
    seller: str
    product: int


class NegotiationEnd(NamedTuple):
    """How a negotiation ended.

    Attributes:
        negotiation: The negotiation.
        round: Rounds completed (the mechanism's final step).
        status: ``agreement``, ``broken``, ``timedout`` or ``error``.
        agreement: The agreed outcome, or None.
    """

    negotiation: NegotiationRef
    round: int
    status: str
    agreement: Outcome | None


class ContractSigned(NamedTuple):
    """A contract that two factories concluded (signing is automatic on the same day)."""

    negotiation: NegotiationRef
    quantity: int
    time: int
    unit_price: int


class Settlement(NamedTuple):
    """The settlement of one factory's day.

    Attributes:
        day: The day.
        agent: The factory.
        input_quantity: Units of input bought today, exogenous included.
        output_quantity: Units of output sold today, exogenous included.
        produced: Units produced.
        profit: The day's profit.
        balance: Balance after the day.
        inventory_input: Input inventory after the day.
        shortfall_quantity: Units sold but not delivered.
        shortfall_penalty: Penalty paid for them.
        storage_cost: Storage paid for unused input.
    """

    day: int
    agent: str
    input_quantity: int
    output_quantity: int
    produced: int
    profit: float
    balance: float
    inventory_input: int
    shortfall_quantity: int
    shortfall_penalty: float
    storage_cost: float


@dataclass(frozen=True, slots=True)
class AgentError:
    """An exception of an agent's code.

    Attributes:
        day: The day.
        agent: The agent whose code failed.
        where: The call that failed, such as ``step`` or ``negotiation``.
        kind: Class name of the exception.
        message: Its text.
    """

    day: int
    agent: str
    where: str
    kind: str
    message: str

    @classmethod
    def of(cls, day: int, agent: str, where: str, error: BaseException) -> AgentError:
        """Describe an exception; its class and its text are the agent's own, so they are made safe to write."""
        kind = str.encode(type(error).__name__, "utf-8", "backslashreplace").decode()
        return cls(day, agent, where, kind, safe_text(error))


@dataclass(frozen=True, slots=True)
class DayEnd:
    """The state of the world after a day.

    Attributes:
        day: The day.
        trading_prices: Trading price of each product, valid from tomorrow.
        sold_quantities: Units of each product delivered today.
        balances: Balance of each agent, in seat order.
        bankrupt: Whether each agent is bankrupt.
    """

    day: int
    trading_prices: tuple[float, ...]
    sold_quantities: tuple[int, ...]
    balances: tuple[float, ...]
    bankrupt: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class WorldEnd:
    """The outcome of a world.

    Attributes:
        scores: Score of each agent by id.
        days: Days that were run.
        n_errors: Number of errors per agent id (agents without errors are absent).
        limit_fired: Whether a wall-clock limit fired; such a world is left out of comparisons.
    """

    scores: dict[str, float]
    days: int
    n_errors: dict[str, int]
    limit_fired: bool


class WorldObserver:
    """Base class of observers: override the methods of the events that you need; the others cost nothing."""

    def on_world_start(self, event: WorldStart) -> None:
        """Receive the constants of the world, once, before the first day."""

    def on_day_start(self, event: DayStart) -> None:
        """Receive the state of the day, after exogenous contracts are revealed, before any agent is called."""

    def on_negotiation_start(self, negotiation: NegotiationRef) -> None:
        """Receive each negotiation, in order of registration."""

    def on_response(self, negotiation: NegotiationRef, round_: int, agent: str, response: int) -> None:
        """Receive `agent`'s response to the current offer (codes as in ``negmas.ResponseType``)."""

    def on_offer(self, negotiation: NegotiationRef, round_: int, agent: str, offer: Outcome) -> None:
        """Receive a legal offer of `agent`."""

    def on_turn(self, turn: TurnRow) -> None:
        """Receive a turn, response and offer together, as one row of integers."""

    def on_decision(self, seat: int) -> None:
        """Receive the seat of a synchronous agent that has just decided for all its partners."""

    def on_negotiation_end(self, event: NegotiationEnd) -> None:
        """Receive the end of a negotiation, before its agents are notified."""

    def on_end(self, end: EndRow) -> None:
        """Receive the end of a negotiation as one row of integers."""

    def on_contract(self, event: ContractSigned) -> None:
        """Receive a contract, right after the end of its negotiation."""

    def on_settlement(self, event: Settlement) -> None:
        """Receive the settlement of each factory's day, in seat order."""

    def on_bankruptcy(self, day: int, agent: str, balance: float) -> None:
        """Receive a factory that has just gone bankrupt, right after its settlement."""

    def on_error(self, event: AgentError) -> None:
        """Receive an exception of an agent's code."""

    def on_day_end(self, event: DayEnd) -> None:
        """Receive the state of the world after the day."""

    def on_world_end(self, event: WorldEnd) -> None:
        """Receive the final scores, once."""


_METHODS = tuple(name for name in vars(WorldObserver) if name.startswith("on_"))


class EventHub:
    """The overridden methods of all observers, collected once so that unobserved events cost nothing.

    Each attribute (``day_start``, ``offer`` …) is None if no observer overrides the method, else a callable that
    passes the event to every observer in order.

    Args:
        observers: The observers, in the order in which they are notified.
    """

    __slots__ = tuple(name.removeprefix("on_") for name in _METHODS)

    world_start: Callable[[WorldStart], None] | None
    day_start: Callable[[DayStart], None] | None
    negotiation_start: Callable[[NegotiationRef], None] | None
    response: Callable[[NegotiationRef, int, str, int], None] | None
    offer: Callable[[NegotiationRef, int, str, Outcome], None] | None
    turn: Callable[[TurnRow], object] | None
    decision: Callable[[int], None] | None
    negotiation_end: Callable[[NegotiationEnd], None] | None
    end: Callable[[EndRow], object] | None
    contract: Callable[[ContractSigned], None] | None
    settlement: Callable[[Settlement], None] | None
    bankruptcy: Callable[[int, str, float], None] | None
    error: Callable[[AgentError], None] | None
    day_end: Callable[[DayEnd], None] | None
    world_end: Callable[[WorldEnd], None] | None

    def __init__(self, observers: Iterable[object] = ()) -> None:
        observers = tuple(observers)
        for name in _METHODS:
            base = getattr(WorldObserver, name)
            callbacks = [
                getattr(observer, name)
                for observer in observers
                if getattr(type(observer), name, None) not in (None, base)
            ]
            setattr(self, name.removeprefix("on_"), _fan_out(callbacks))


def _fan_out(callbacks: list[Callable[..., Any]]) -> Callable[..., Any] | None:
    if not callbacks:
        return None
    if len(callbacks) == 1:
        return callbacks[0]
    ordered = tuple(callbacks)

    def notify(*args: Any) -> None:  # noqa: ANN401 - passes any event on unchanged
        for callback in ordered:
            callback(*args)

    return notify
