"""What all native minds share: the facts of the day, the calendar of contracts and the protocol of a turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

from litaagent_std.world.events import ACCEPT, END, REJECT, WAIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litaagent_std.world.fast.seats import Seat
    from litaagent_std.world.fast.topics import Topic
    from litaagent_std.world.rules.settlement import Terms

__all__ = ["ACCEPT", "END", "REJECT", "WAIT", "Link", "NativeAgent", "Outcome"]

Outcome = tuple[int, int, int]
"""Quantity, delivery day and unit price."""

_INFINITY: Final = float("inf")


class Link:
    """What a mind keeps about one partner.

    Attributes:
        pid: The partner's id.
        selling: Whether the mind sells to the partner.
        best_today: The best price that the partner offered for today since the morning.
        best_ever: The best price of any contract with the partner.
        ranges: Prices to concede between, for future days and for today, as long as `known` is the mind's own.
        known: Which of the mind's memories of prices the ranges were made of.
    """

    __slots__ = ("best_ever", "best_today", "known", "pid", "ranges", "selling")

    def __init__(self, pid: str, selling: bool) -> None:
        self.pid = pid
        self.selling = selling
        self.best_today = self.best_ever = 0.0 if selling else _INFINITY
        self.ranges: list[tuple[int, int] | None] = [None, None]
        self.known = -1


class NativeAgent(ABC):
    """Decides for one seat in the place of its agent.

    Args:
        seat: The seat; its agent has been constructed, so that its parameters and its draws are known.
        n_days: Days of the world.
        n_levels: Levels of the world.
        relative_times: Relative time of a negotiation by completed rounds.

    Attributes:
        id: The seat's id.
        links: Partners by id.
        partners: Partners of today's negotiations in order of registration.
        supplies: Contracted input by day of delivery.
        sales: Contracted output by day of delivery.
        stock: Input that is there without negotiation today, minus output that is sold without.
    """

    def __init__(self, seat: Seat, n_days: int, n_levels: int, relative_times: Sequence[float]) -> None:
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
        """Take in the facts of the day.

        Args:
            day: The day.
            terms: What the day's settlement depends on.
            inventory: Input inventory in the morning.
        """
        self.today = day
        self.inventory = inventory
        self.forced_in = terms.stock_in - inventory
        self.forced_out = terms.stock_out
        self.stock = terms.stock_in - terms.stock_out

    def set_topics(self, bought: Topic, sold: Topic) -> None:
        """Take in what can be negotiated today, about the input and about the output."""
        self.bought = bought.bounds
        self.sold = sold.bounds

    def reset(self) -> None:
        """Forgets yesterday's negotiations."""
        self.partners = []

    def before_step(self) -> None:  # noqa: B027 - minds that keep nothing for a day have nothing to do
        """Start the day, once negotiations are open."""

    @property
    def surplus(self) -> int:
        """Input at hand today that nobody has bought as output; what is missing when negative."""
        return self.stock + self.supplies[self.today] - self.sales[self.today]

    # -- negotiations

    def meet(self, pid: str, selling: bool) -> Link:
        """Hears of a negotiation that was opened today."""
        self.partners.append(pid)
        link = self.links.get(pid)
        if link is None:
            link = self.links[pid] = Link(pid, selling)
        return link

    @abstractmethod
    def respond(self, link: Link, step: int, offer: Outcome) -> int:
        """Return the response to an offer: ACCEPT, REJECT, END or WAIT."""

    @abstractmethod
    def propose(self, link: Link, step: int) -> Outcome | None:
        """Return an offer, or None to end the negotiation."""

    def leave(self, pid: str) -> None:
        """Hears that a negotiation is over, before it hears of the contract."""
        self.seat.n_active -= 1

    def conclude(self, link: Link, quantity: int, day: int, unit_price: int) -> None:
        """Hears of a contract that it has just concluded."""
        if link.selling:
            self.sales[day] += quantity
        else:
            self.supplies[day] += quantity
