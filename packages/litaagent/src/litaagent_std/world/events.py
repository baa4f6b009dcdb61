"""What happens in a world, told to observers.

Both engines tell the same story in the same order, so a recorder, an environment or a test needs no
knowledge of the engine and no wrapper around an agent. An observer is any object with some of the methods of
`WorldObserver`; a method that is not overridden costs nothing, because the engine collects the overridden
ones once, before the first day (`EventHub`).

Order of the events:

    world_start
      per day: day_start, negotiation_start*, (decision | response | offer | turn | negotiation_end | contract |
               error)*, settlement*, bankruptcy*, day_end
    world_end

Within a negotiation: one turn is an optional `on_response` (only when an offer was on the table) followed by
an optional `on_offer` (only when a legal counter-offer was made). `on_turn` follows and is the same as one row of
numbers; who keeps everything hears that alone. A turn in which a synchronous agent waits for its other partners is
no event; `on_decision` comes before the turn at which such an agent decides about all partners. `on_negotiation_end`
follows the turn that ended the negotiation; when it ended in agreement, `on_contract` follows directly. Exogenous
contracts are part of `DayStart`.

Contracts between factories are executed in the order of their conclusion, then the day's exogenous ones in the
configuration's order. scml keeps the latter in a set of objects with random ids, so that its own order, and the
last bit of its trading prices, differ from run to run; both engines fix the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Outcome = tuple[int, int, int]
"""An offer as the league writes it: (quantity, delivery day, unit price)."""

TurnRow = tuple[int, int, int, int, int, int, int]
"""A turn: number of the negotiation, round, seat, response, then quantity, delivery day and unit price of the offer.

`NOTHING` stands where there was no offer on the table to respond to, or where no offer was made.
"""

NOTHING = -1

ACCEPT, REJECT, END, NO_RESPONSE, WAIT, LEAVE = range(6)
"""Response codes; the values are those of ``negmas.ResponseType``."""


@dataclass(frozen=True, slots=True)
class WorldStart:
    """The public and private facts that do not change during a world.

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


@dataclass(frozen=True, slots=True)
class Exogenous:
    """One exogenous contract revealed today; the partner is the system seller or buyer."""

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
        issues: Per product, the ranges ((q_min, q_max), (t_min, t_max), (p_min, p_max)); products that
            nobody negotiates keep their latest ranges.
    """

    day: int
    trading_prices: tuple[float, ...]
    exogenous: tuple[Exogenous, ...]
    balances: tuple[float, ...]
    inventories: tuple[int, ...]
    issues: tuple[tuple[tuple[int, int], tuple[int, int], tuple[int, int]], ...]


@dataclass(frozen=True, slots=True, eq=True)
class NegotiationRef:
    """Who negotiates what; the same object accompanies every event of the negotiation.

    Attributes:
        day: The day.
        index: Position in the day's order of registration, from 0.
        caller: The agent that proposes first.
        partner: The agent that responds first.
        buyer: Whoever of the two buys.
        seller: Whoever of the two sells.
        product: The product.
    """

    day: int
    index: int
    caller: str
    partner: str
    buyer: str
    seller: str
    product: int


@dataclass(frozen=True, slots=True)
class NegotiationEnd:
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


@dataclass(frozen=True, slots=True)
class ContractSigned:
    """A contract that two factories concluded (signing is automatic on the same day)."""

    negotiation: NegotiationRef
    quantity: int
    time: int
    unit_price: int


@dataclass(frozen=True, slots=True)
class Settlement:
    """One factory's day, settled.

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
    """An exception or a breach of a limit that came out of an agent's code.

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


@dataclass(frozen=True, slots=True)
class DayEnd:
    """The state of the world after a day.

    Attributes:
        day: The day.
        trading_prices: Trading price of each product as it will hold tomorrow.
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
        limit_fired: Whether a wall-clock limit fired, which excludes the world from comparisons.
    """

    scores: dict[str, float]
    days: int
    n_errors: dict[str, int]
    limit_fired: bool


class WorldObserver:
    """Base class of observers: override what you want to hear; the rest costs nothing."""

    def on_world_start(self, event: WorldStart) -> None:
        """Hear the facts of the world, once, before the first day."""

    def on_day_start(self, event: DayStart) -> None:
        """Hear the state of the day, after exogenous contracts are revealed, before any agent is called."""

    def on_negotiation_start(self, negotiation: NegotiationRef) -> None:
        """Hear of each negotiation in order of registration."""

    def on_response(self, negotiation: NegotiationRef, round_: int, agent: str, response: int) -> None:
        """Hear `agent`'s response to the offer on the table (codes as in ``negmas.ResponseType``)."""

    def on_offer(self, negotiation: NegotiationRef, round_: int, agent: str, offer: Outcome) -> None:
        """Hear a legal offer that `agent` put on the table."""

    def on_turn(self, turn: TurnRow) -> None:
        """Hear a turn, response and offer together, as one row of numbers."""

    def on_decision(self, seat: int) -> None:
        """Hear that a synchronous agent has just decided its turns with all its partners."""

    def on_negotiation_end(self, event: NegotiationEnd) -> None:
        """Hear how a negotiation ended, before its agents are told."""

    def on_contract(self, event: ContractSigned) -> None:
        """Hear of a contract, right after the end of its negotiation."""

    def on_settlement(self, event: Settlement) -> None:
        """Hear each factory's settled day, in seat order."""

    def on_bankruptcy(self, day: int, agent: str, balance: float) -> None:
        """Hear of a factory that has just gone bankrupt, right after its settlement."""

    def on_error(self, event: AgentError) -> None:
        """Hear of an exception in an agent's code."""

    def on_day_end(self, event: DayEnd) -> None:
        """Hear the state of the world after the day."""

    def on_world_end(self, event: WorldEnd) -> None:
        """Hear the final scores, once."""


_METHODS = tuple(name for name in vars(WorldObserver) if name.startswith("on_"))


class EventHub:
    """The overridden methods of all observers, collected once so that silence is free.

    Each attribute (``day_start``, ``offer`` …) is None when nobody listens, else a callable that passes the
    event to every listener in order.

    Args:
        observers: The observers, in the order in which they are told.
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
            heard = [
                getattr(observer, name)
                for observer in observers
                if getattr(type(observer), name, None) not in (None, base)
            ]
            setattr(self, name.removeprefix("on_"), _fan_out(heard))


def _fan_out(listeners: list[Callable[..., Any]]) -> Callable[..., Any] | None:
    if not listeners:
        return None
    if len(listeners) == 1:
        return listeners[0]
    ordered = tuple(listeners)

    def tell(*args: Any) -> None:  # noqa: ANN401 - passes any event on unchanged
        for listener in ordered:
            listener(*args)

    return tell
