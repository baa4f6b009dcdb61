"""A day's negotiations: who meets whom, in which order they run, and what happens when one ends."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from negmas.negotiators.common import NegotiatorEntry
from scml.oneshot.common import NegotiationDetails

from litaagent_std.world.events import ContractSigned, EventHub, NegotiationEnd, NegotiationRef
from litaagent_std.world.fast.external import Decision, DecisionNeeded, Reply
from litaagent_std.world.fast.interface.standins import make_negotiator
from litaagent_std.world.fast.negotiation import Negotiation, Side
from litaagent_std.world.fast.seats import Seat
from litaagent_std.world.fast.topics import Topic
from litaagent_std.world.native.negotiation import NativeNegotiation
from litaagent_std.world.rules.contracts import ContractBook, Deal, annotation_of, write_contract

Report = Callable[[Seat, str, Exception], None]


class Bargaining:
    """Opens and runs the negotiations of a day.

    Args:
        seats: All seats.
        n_levels: Levels of the world.
        hub: Who hears of negotiations.
        book: Where contracts are entered.
        report: Who hears of exceptions.
    """

    def __init__(self, seats: Sequence[Seat], n_levels: int, hub: EventHub, book: ContractBook, report: Report) -> None:
        self._hub = hub
        self._book = book
        self._report = report
        self._max_waits = len(seats)
        self._levels = [[seat for seat in seats if seat.level == level] for level in range(n_levels)]
        self._pairs = self._meetings()
        self._today = 0

    def _meetings(self) -> list[tuple[Seat, Seat, bool]]:
        """List who meets whom as (caller, partner, caller buys).

        Every other level, counted from the last, calls: each factory its suppliers, then its consumers.
        """
        pairs = []
        last = len(self._levels) - 1
        for level in range(last, -1, -2):
            for caller in self._levels[level]:
                if level > 0:
                    pairs += [(caller, partner, True) for partner in self._levels[level - 1]]
                if level < last:
                    pairs += [(caller, partner, False) for partner in self._levels[level + 1]]
        return pairs

    def open(self, today: int, topics: Sequence[Topic]) -> list[Negotiation | NativeNegotiation]:
        """Open today's negotiations between factories that are not bankrupt, in order of registration."""
        self._today = today
        negotiations: list[Negotiation | NativeNegotiation] = []
        tell = self._hub.negotiation_start
        met: set[tuple[int, bool]] = set()
        for caller, partner, buys in self._pairs:
            if caller.bankrupt or partner.bankrupt:
                continue
            if (
                caller.mind is None and (caller.index, buys) not in met
            ):  # a caller's negotiators of one side are made together
                met.add((caller.index, buys))
                self._invite(caller, buys)
            buyer, seller = (caller, partner) if buys else (partner, caller)
            product = buyer.level
            ref = NegotiationRef(today, len(negotiations), caller.id, partner.id, buyer.id, seller.id, product)
            caller.n_active += 1
            partner.n_active += 1
            negotiations.append(self._meet(ref, topics[product], caller, partner))
            if tell is not None:
                tell(ref)
        return negotiations

    def _meet(self, ref: NegotiationRef, topic: Topic, caller: Seat, partner: Seat) -> Negotiation | NativeNegotiation:
        calling, answering = caller.mind, partner.mind
        to_partner = calling and calling.meet(partner.id, caller.id == ref.seller)
        to_caller = answering and answering.meet(caller.id, partner.id == ref.seller)
        if calling and answering and to_partner and to_caller:
            sides = (calling, to_partner), (answering, to_caller)
            return NativeNegotiation(ref, topic, *sides, self._max_waits, self._hub)
        if calling is not None:  # a hosted caller's negotiators are there already
            self._make_negotiator(caller, partner)
        self._make_negotiator(partner, caller)
        negotiation = Negotiation(
            ref,
            topic,
            Side(caller, partner.id, caller.agent._negotiators[partner.id][0]),
            Side(partner, caller.id, partner.agent._negotiators[caller.id][0]),
            annotation_of(ref.buyer, ref.seller, ref.caller, ref.product, ref.day),
            self._max_waits,
            self._hub,
            self._report,
        )
        buyer, seller = (caller, partner) if caller.id == ref.buyer else (partner, caller)
        details = NegotiationDetails(ref.buyer, ref.seller, ref.product, negotiation.nmi)
        seller.selling[ref.buyer] = details
        buyer.buying[ref.seller] = details
        return negotiation

    @staticmethod
    def _make_negotiator(seat: Seat, partner: Seat) -> None:
        negotiator = make_negotiator(partner.id, seat.agent, seat.adapter)
        seat.agent._negotiators[partner.id] = NegotiatorEntry(negotiator, None)

    def _invite(self, caller: Seat, buys: bool) -> None:
        partners = self._levels[caller.level - 1 if buys else caller.level + 1]
        for partner in partners:
            if not partner.bankrupt:
                self._make_negotiator(caller, partner)

    def play(self, negotiations: list[Negotiation | NativeNegotiation]) -> Generator[Decision, Reply, None]:
        """Run the negotiations to their ends, one pass of each at a time.

        Yields:
            The decisions of seats that are driven from outside; each expects its reply to be sent.
        """
        running = negotiations
        while running:
            still = []
            for negotiation in running:
                goes_on = False
                while True:
                    try:
                        goes_on = negotiation.step()
                    except DecisionNeeded as needed:
                        needed.agent.give((yield needed.decision))
                        continue
                    except Exception:  # agents raise anything; it was reported where it was raised
                        if isinstance(negotiation, NativeNegotiation):
                            raise  # no agent's code has run
                        negotiation.abort()
                    break
                if goes_on:
                    still.append(negotiation)
                elif isinstance(negotiation, NativeNegotiation):
                    negotiation.close(self._book)
                else:
                    self.close(negotiation)
            running = still

    def close(self, negotiation: Negotiation) -> None:
        """Tells everybody how a negotiation ended and enters the contract, if there is one."""
        state, ref = negotiation.state, negotiation.ref
        agreement = state.agreement
        if self._hub.negotiation_end is not None:
            status = "agreement" if agreement is not None else _failure(negotiation)
            told = None if agreement is None else tuple(agreement)
            self._hub.negotiation_end(NegotiationEnd(ref, state.step, status, told))
        for side in negotiation.sides:
            side.seat.end_negotiation(side, state)
        if agreement is None:
            self._fail(negotiation)
        else:
            self._conclude(negotiation, agreement)
        negotiation.release()

    def _fail(self, negotiation: Negotiation) -> None:
        ref = negotiation.ref
        for side in negotiation.sides:
            seat = side.seat
            if seat.mind is not None:
                continue  # minds learn nothing from failures
            if seat.id == ref.buyer:
                seat.ufun._registered_supply_failures.add(ref.seller)
                seat.ufun._invalidate_limit_cache()
                seat.buying.pop(ref.seller, None)
            else:
                seat.ufun._registered_sale_failures.add(ref.buyer)
                seat.ufun._invalidate_limit_cache()
                seat.selling.pop(ref.buyer, None)
            self._call(
                seat,
                "on_negotiation_failure",
                [ref.caller, ref.partner],
                dict(negotiation.annotation),
                negotiation.nmi,
                negotiation.state,
            )

    def _conclude(self, negotiation: Negotiation, agreement: Sequence[Any]) -> None:
        ref, today = negotiation.ref, self._today
        quantity, day, unit_price = agreement
        papers = []
        if self._hub.contract is not None:
            self._hub.contract(ContractSigned(ref, quantity, day, unit_price))
        buyer, seller = sorted((side.seat for side in negotiation.sides), key=lambda seat: seat.id != ref.buyer)
        for side in negotiation.sides:
            seat = side.seat
            if seat.mind is not None:
                seat.mind.conclude(seat.mind.links[side.pid], quantity, day, unit_price)
                continue
            if seat is buyer:
                seat.awi.register_supply(ref.seller, quantity, unit_price, day)
                seat.ufun.register_supply(quantity, unit_price, day)
                seat.buying.pop(ref.seller, None)
            else:
                seat.awi.register_sale(ref.buyer, quantity, unit_price, day)
                seat.ufun.register_sale(quantity, unit_price, day)
                seat.selling.pop(ref.buyer, None)
            paper = write_contract(negotiation, (quantity, day, unit_price), today)
            papers.append(paper)
            self._call(seat, "on_negotiation_success", paper, negotiation.nmi)
        for paper in papers:
            paper.signatures = {ref.caller: ref.caller, ref.partner: ref.partner}
            paper.signed_at = today
        self._book.add(Deal(buyer, seller, ref.product, quantity, day, unit_price, tuple(papers)))

    def _call(self, seat: Seat, method: str, *args: Any) -> None:  # noqa: ANN401 - any callback
        try:
            seat.agent_call(method, *args)
        except Exception as error:  # agents raise anything
            self._report(seat, method, error)


def _failure(negotiation: Negotiation) -> str:
    if negotiation.state.has_error:
        return "error"
    return "broken" if negotiation.state.broken else "timedout"
