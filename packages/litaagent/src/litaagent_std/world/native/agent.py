"""What all native agents share: the facts of the day, the calendar of contracts and the protocol of a turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from litaagent_std.world.events import Outcome

if TYPE_CHECKING:
    from litaagent_std.world.reproducible.streams import Stream
    from litaagent_std.world.rules.settlement import Terms

__all__ = ["Bounds", "Limits", "Link", "NativeAgent", "NativeSeat"]

Bounds = tuple[int, int, int, int, int, int]
"""Lowest and highest quantity, delivery day and unit price."""

_INFINITY: Final = float("inf")


class Limits(NamedTuple):
    """What an agent accepts for one delivery day, as of now.

    Attributes:
        quantity: The most units.
        price: The worst unit price for the agent.
        chance: Probability of accepting what is within both; nothing else is accepted.
    """

    quantity: int
    price: int
    chance: float = 1.0


class NativeSeat(Protocol):
    """What a native agent needs of its seat.

    Attributes:
        index: Number of the seat.
        id: Id of the factory.
        level: Level of the factory.
        agent: The agent object; it has been constructed, so that its parameters and its draws are known.
        profile: The factory's private facts.
        stream: The seat's random stream.
        n_active: Negotiations that are running.
        notify_decision: Called when the agent has decided for all its partners, if an observer wants to know.
    """

    index: int
    id: str
    level: int
    agent: Any
    profile: Any
    stream: Stream
    n_active: int
    notify_decision: Callable[[int], None] | None


class Link:
    """What a native agent keeps about one partner.

    Attributes:
        pid: The partner's id.
        selling: Whether the agent sells to the partner.
        best_today: The best price that the partner has offered today for delivery today.
        best_ever: The best price of any contract with the partner.
        ranges: Cached price ranges of concession for later days and for today; valid while `version` is the agent's.
        version: The version of the agent's price memory that `ranges` was computed from.
    """

    __slots__ = ("best_ever", "best_today", "pid", "ranges", "selling", "version")

    def __init__(self, pid: str, selling: bool) -> None:
        self.pid = pid
        self.selling = selling
        self.best_today = self.best_ever = 0.0 if selling else _INFINITY
        self.ranges: list[tuple[int, int] | None] = [None, None]
        self.version = -1


class NativeAgent(ABC):
    """Decides for one seat instead of its agent object.

    Args:
        seat: The seat.
        n_days: Days of the world.
        n_levels: Levels of the world.
        relative_times: Relative time of a negotiation by completed rounds.

    Attributes:
        id: The seat's id.
        links: Partners by id.
        partners: Partners of today's negotiations in order of registration.
        supplies: Contracted input by day of delivery.
        sales: Contracted output by day of delivery.
        stock: Input available without negotiation today, minus output sold without negotiation.
        bought: Bounds of today's negotiations about the input.
        sold: Bounds of today's negotiations about the output.
    """

    bought: Bounds
    sold: Bounds

    def __init__(self, seat: NativeSeat, n_days: int, n_levels: int, relative_times: Sequence[float]) -> None:
        self.seat = seat
        self.id = seat.id
        self.n_days = n_days
        self.n_lines: int = seat.profile.n_lines
        self.is_first = seat.level == 0
        self.is_last = seat.level == n_levels - 1
        self.is_middle = not self.is_first and not self.is_last
        self.relative_times = relative_times
        self.links: dict[str, Link] = {}
        self.partners: list[str] = []
        self.supplies = [0] * n_days
        self.sales = [0] * n_days
        self.today = 0
        self.stock = self.inventory = self.forced_in = self.forced_out = 0
        self.bits = seat.stream.python.getrandbits
        self.uniform = seat.stream.python.random

    # -- the day

    def start_day(self, day: int, terms: Terms, inventory: int) -> None:
        """Set the facts of the day.

        Args:
            day: The day.
            terms: What the day's settlement depends on.
            inventory: Input inventory at the start of the day.
        """
        self.today = day
        self.inventory = inventory
        self.forced_in = terms.stock_in - inventory
        self.forced_out = terms.stock_out
        self.stock = terms.stock_in - terms.stock_out

    def set_bounds(self, bought: Bounds, sold: Bounds) -> None:
        """Set the bounds of today's negotiations about the input and about the output."""
        self.bought = bought
        self.sold = sold

    def reset(self) -> None:
        """Forget yesterday's negotiations."""
        self.partners = []

    def before_step(self) -> None:  # noqa: B027 - agents without a memory of the day have nothing to do
        """Start the day, once negotiations are open."""

    @property
    def surplus(self) -> int:
        """Input available today that is not sold as output; negative if input is missing."""
        return self.stock + self.supplies[self.today] - self.sales[self.today]

    # -- negotiations

    def register(self, pid: str, selling: bool) -> Link:
        """Register a negotiation that was opened today, and return the link to the partner."""
        self.partners.append(pid)
        link = self.links.get(pid)
        if link is None:
            link = self.links[pid] = Link(pid, selling)
        return link

    @abstractmethod
    def respond(self, link: Link, step: int, offer: Outcome) -> int:
        """Return the response to an offer: ACCEPT, REJECT, END or WAIT."""

    @abstractmethod
    def limits(self, link: Link, step: int, day: int) -> Limits:
        """Return what `respond` would accept now for a delivery day; nothing changes.

        An agent that decides about all its partners together may accept less, if others offer the same.
        """

    @abstractmethod
    def propose(self, link: Link, step: int) -> Outcome | None:
        """Return an offer, or None to end the negotiation."""

    def leave(self, pid: str) -> None:
        """Register the end of a negotiation; `conclude` follows if it ended in agreement."""
        self.seat.n_active -= 1

    def conclude(self, link: Link, quantity: int, day: int, unit_price: int) -> None:
        """Register a contract that was just concluded."""
        if link.selling:
            self.sales[day] += quantity
        else:
            self.supplies[day] += quantity
