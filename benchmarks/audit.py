"""An audit of what agents do: every offer and every acceptance against the hard bounds, computed anew from the world.

The bounds are those of L1, but nothing of L1 is used here: commitments, cash and legal ranges come from the world's
events, and what an agent says is taken as it returns it, before the world drops what is illegal. For an agent class
at ``path``, `audited_path` names a subclass that is the same agent under audit, as `stopwatch` does for timing.

Checked are:

========  ==============================================================================================
illegal   an offer that is not three whole numbers inside the day's ranges
lines     sales accepted together, or one sale proposed, for a day beyond what its lines have free
cash      purchases accepted together, or one purchase proposed, beyond cash that nothing else claims
input     with ``covered``: the same as lines, beyond the input that is there or contracted for the day
========  ==============================================================================================

Proposals to several partners may exceed a bound together if all are accepted: that is the soft bound, and what comes of
it is counted as oversold days and as shortfall. Input is a soft bound as well: only a risk budget of 0 makes it hard,
and it is computed for stock that production leaves alone, as scml ships it.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from litaagent_std.world.events import (
    ACCEPT,
    AgentError,
    ContractSigned,
    DayStart,
    NegotiationRef,
    Settlement,
    WorldObserver,
    WorldStart,
)
from litaagent_std.world.setup import AgentSpec

__all__ = ["Auditor", "audited_path"]

_PREFIX: Final = f"{__name__}."
_DOT: Final = "!"
_KEPT: Final = 5

_auditor: Auditor | None = None


class Auditor(WorldObserver):
    """Watches the audited agents of one world; use it in a ``with`` block around the world.

    Args:
        covered: Whether sales must be covered by input.

    Attributes:
        violations: Number of violations by kind: ``illegal``, ``lines``, ``cash``, ``input``.
        examples: The first few of them in words.
        checked: Offers and acceptances that were checked.
        errors: Exceptions of the audited agents.
        oversold: Days for which an audited agent has sold more in negotiations than its lines had free.
        shortfall_units: Units sold and not delivered.
        shortfall: Penalties for them, relative to the initial balance, by agent.
    """

    def __init__(self, *, covered: bool = False) -> None:
        self._covered = covered
        self.violations: Counter[str] = Counter()
        self.examples: list[str] = []
        self.checked = 0
        self.errors: list[str] = []
        self.oversold = 0
        self.shortfall_units = 0
        self.shortfall: dict[str, float] = {}
        self._audited: set[str] = set()
        self._sold: dict[str, Counter[int]] = defaultdict(Counter)
        self._owed: dict[str, Counter[int]] = defaultdict(Counter)
        self._bought: dict[str, Counter[int]] = defaultdict(Counter)
        self._contracts: dict[str, list[ContractSigned]] = defaultdict(list)
        self._threads: dict[tuple[str, str], NegotiationRef] = {}

    def __enter__(self) -> Auditor:
        global _auditor
        _auditor = self
        return self

    def __exit__(self, *_: object) -> None:
        global _auditor
        _auditor = None

    def on_world_start(self, event: WorldStart) -> None:
        """Take the facts of the world."""
        self._lines = dict(zip(event.agents, event.n_lines, strict=True))
        self._initial = dict(zip(event.agents, event.initial_balances, strict=True))
        self._agents = event.agents

    def on_day_start(self, event: DayStart) -> None:
        """Take the day's ranges, balances and forced contracts."""
        self._day, self._issues = event.day, event.issues
        self._balances = dict(zip(self._agents, event.balances, strict=True))
        self._stocks = dict(zip(self._agents, event.inventories, strict=True))
        self._threads.clear()
        self._forced_sales: Counter[str] = Counter()
        self._forced_cost: Counter[str] = Counter()
        self._forced_input: Counter[str] = Counter()
        for contract in event.exogenous:
            self._forced_sales[contract.seller] += contract.quantity
            self._forced_cost[contract.buyer] += contract.quantity * contract.unit_price
            self._forced_input[contract.buyer] += contract.quantity

    def on_negotiation_start(self, negotiation: NegotiationRef) -> None:
        """Remember who negotiates what today."""
        self._threads[negotiation.buyer, negotiation.seller] = negotiation
        self._threads[negotiation.seller, negotiation.buyer] = negotiation

    def on_contract(self, event: ContractSigned) -> None:
        """Books a contract on both sides."""
        ref = event.negotiation
        self._book(event, 1)
        for agent in (ref.buyer, ref.seller):
            self._contracts[agent].append(event)

    def on_bankruptcy(self, day: int, agent: str, balance: float) -> None:
        """Strikes the contracts of a bankrupt factory that are still to come."""
        for event in self._contracts.pop(agent, []):
            if event.time > day:
                self._book(event, -1)
                other = event.negotiation.buyer if event.negotiation.seller == agent else event.negotiation.seller
                self._contracts[other].remove(event)

    def _book(self, event: ContractSigned, sign: int) -> None:
        self._sold[event.negotiation.seller][event.time] += sign * event.quantity
        self._bought[event.negotiation.buyer][event.time] += sign * event.quantity
        self._owed[event.negotiation.buyer][event.time] += sign * event.quantity * event.unit_price

    def on_settlement(self, event: Settlement) -> None:
        """Count what was oversold and not delivered."""
        if event.agent not in self._audited:
            return
        sold = self._sold[event.agent][event.day]
        free = self._lines[event.agent] - self._forced_sales[event.agent]
        self.oversold += sold > max(0, free)
        self.shortfall_units += event.shortfall_quantity
        share = event.shortfall_penalty / self._initial[event.agent]
        self.shortfall[event.agent] = self.shortfall.get(event.agent, 0.0) + share

    def on_error(self, event: AgentError) -> None:
        """Keep an exception of an audited agent."""
        if event.agent in self._audited:
            self.errors.append(f"{event.kind} in {event.where} on day {event.day}: {event.message}")

    def watch(self, agent: str) -> None:
        """Take an agent under audit."""
        self._audited.add(agent)

    def check_proposals(self, agent: str, offers: Mapping[str, Any]) -> None:
        """Check what an agent proposes, partner by partner."""
        for partner, offer in offers.items():
            if offer is not None:
                self._check_offer(agent, partner, offer)

    def check_acceptances(self, agent: str, offers: Mapping[str, Any], partners: Iterable[str]) -> None:
        """Check the offers that an agent accepts at the same time."""
        sales: Counter[int] = Counter()
        cost = 0
        for partner in partners:
            quantity, day, price = offers[partner]
            self.checked += 1
            if self._sells(agent, partner):
                sales[day] += quantity
            else:
                cost += quantity * price
        for day, quantity in sales.items():
            self._check_sale(agent, "accepts", quantity, day)
        if cost and cost > self._free_cash(agent):
            self._note("cash", agent, f"accepts purchases of {cost}, free cash {self._free_cash(agent):.0f}")

    def _check_offer(self, agent: str, partner: str, offer: Any) -> None:  # noqa: ANN401 - whatever an agent says
        self.checked += 1
        ranges = self._issues[self._threads[agent, partner].product]
        whole = isinstance(offer, tuple) and len(offer) == len(ranges) and all(type(part) is int for part in offer)
        if not whole or not all(low <= part <= high for part, (low, high) in zip(offer, ranges, strict=True)):
            self._note("illegal", agent, f"offers {offer!r}, legal is {ranges}")
            return
        quantity, day, price = offer
        if self._sells(agent, partner):
            self._check_sale(agent, "offers", quantity, day)
        elif quantity * price > self._free_cash(agent):
            self._note("cash", agent, f"offers to buy for {quantity * price}, free cash {self._free_cash(agent):.0f}")

    def _check_sale(self, agent: str, does: str, quantity: int, day: int) -> None:
        if quantity > self._free_lines(agent, day):
            self._note("lines", agent, f"{does} {quantity} for day {day}, free {self._free_lines(agent, day)}")
        if self._covered and quantity > self._free_input(agent, day):
            self._note("input", agent, f"{does} {quantity} for day {day}, input {self._free_input(agent, day)}")

    def _sells(self, agent: str, partner: str) -> bool:
        return self._threads[agent, partner].seller == agent

    def _free_lines(self, agent: str, day: int) -> int:
        forced = self._forced_sales[agent] if day == self._day else 0
        return max(0, self._lines[agent] - self._sold[agent][day] - forced)

    def _free_input(self, agent: str, day: int) -> int:
        today = day == self._day
        incoming = self._bought[agent][day] + (self._forced_input[agent] if today else 0)
        outgoing = self._sold[agent][day] + (self._forced_sales[agent] if today else 0)
        return max(0, self._stocks[agent] + incoming - outgoing)

    def _free_cash(self, agent: str) -> float:
        owed = sum(value for day, value in self._owed[agent].items() if day >= self._day)
        return self._balances[agent] - owed - self._forced_cost[agent]

    def _note(self, kind: str, agent: str, what: str) -> None:
        self.violations[kind] += 1
        if len(self.examples) < _KEPT:
            self.examples.append(f"{agent} on day {self._day} {what}")


def audited_path(path: str) -> str:
    """Return the path of the audited subclass of the class at ``path``, which must decide round by round."""
    return _PREFIX + path.replace(".", _DOT)


def __getattr__(name: str) -> type:
    if _DOT not in name:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    agent: type = AgentSpec(name.replace(_DOT, ".")).load()
    return _audited(agent)


@functools.cache
def _audited(base: type) -> type:
    """Make the subclass; its name and module stay those of the agent."""
    agent: Any = base  # a class without type information

    def init(self: Any) -> None:  # noqa: ANN401 - an agent of any class
        if _auditor is not None:
            _auditor.watch(self.id)
        agent.init(self)

    def first_proposals(self: Any) -> Any:  # noqa: ANN401 - passes through
        offers = agent.first_proposals(self)
        if _auditor is not None:
            _auditor.check_proposals(self.id, offers)
        return offers

    def counter_all(self: Any, offers: Any, states: Any) -> Any:  # noqa: ANN401 - passes through
        responses = agent.counter_all(self, offers, states)
        if _auditor is not None:
            accepted = [name for name, one in responses.items() if one.response.value == ACCEPT]
            countered = {name: one.outcome for name, one in responses.items() if one.response.value != ACCEPT}
            _auditor.check_acceptances(self.id, offers, accepted)
            _auditor.check_proposals(self.id, countered)
        return responses

    methods = {"init": init, "first_proposals": first_proposals, "counter_all": counter_all}
    identity = {"__module__": agent.__module__, "__qualname__": agent.__qualname__, "__doc__": agent.__doc__}
    made: type = type(agent)(agent.__name__, (agent,), methods | identity)
    return made
