"""The negotiations of a day: who negotiates with whom, in which order they run, and what follows from their ends."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from negmas.negotiators.common import NegotiatorEntry
from scml.oneshot.common import NegotiationDetails

from litaagent_std.world.events import (
    AGREEMENT,
    BROKEN,
    ENDED,
    ERROR,
    STATUSES,
    TIMEDOUT,
    ContractSigned,
    EventHub,
    NegotiationEnd,
    NegotiationRef,
)
from litaagent_std.world.fast.contracts import ContractBook, NegotiatedContract, make_contract
from litaagent_std.world.fast.external import Decision, DecisionNeeded, Reply
from litaagent_std.world.fast.interface.agenda import Agenda
from litaagent_std.world.fast.interface.proxies import make_negotiator
from litaagent_std.world.fast.negotiation import Negotiation, Side
from litaagent_std.world.fast.seats import Seat
from litaagent_std.world.native.negotiation import NativeNegotiation
from litaagent_std.world.rules.contracts import annotation_of, negotiation_pairs

ReportError = Callable[[Seat, str, Exception], None]


class NegotiationScheduler:
    """Opens and runs the negotiations of a day.

    Args:
        seats: All seats.
        n_levels: Levels of the world.
        hub: The observers.
        book: Receives the contracts.
        report_error: Called with every exception of an agent.
    """

    def __init__(
        self, seats: Sequence[Seat], n_levels: int, hub: EventHub, book: ContractBook, report_error: ReportError
    ) -> None:
        self._hub = hub
        self._book = book
        self._report_error = report_error
        self._max_waits = len(seats)
        self._seats = {seat.id: seat for seat in seats}
        self._levels = [[seat for seat in seats if seat.level == level] for level in range(n_levels)]
        self._pairs = negotiation_pairs(self._levels)
        self._today = 0

    def open(self, today: int, agendas: Sequence[Agenda]) -> list[Negotiation | NativeNegotiation]:
        """Open today's negotiations between factories that are not bankrupt, in order of registration.

        Args:
            today: The day.
            agendas: The day's agenda of each product.
        """
        self._today = today
        negotiations: list[Negotiation | NativeNegotiation] = []
        emit_start = self._hub.negotiation_start
        prepared: set[tuple[int, bool]] = set()
        for caller, partner, buys in self._pairs:
            if caller.bankrupt or partner.bankrupt:
                continue
            # negmas makes a caller's negotiators of one side together
            if caller.native is None and (caller.index, buys) not in prepared:
                prepared.add((caller.index, buys))
                self._make_negotiators(caller, buys)
            buyer, seller = (caller, partner) if buys else (partner, caller)
            product = buyer.level
            ref = NegotiationRef(today, len(negotiations), caller.id, partner.id, buyer.id, seller.id, product)
            caller.n_active += 1
            partner.n_active += 1
            negotiations.append(self._make_negotiation(ref, agendas[product], caller, partner))
            if emit_start is not None:
                emit_start(ref)
        return negotiations

    def _make_negotiation(
        self, ref: NegotiationRef, agenda: Agenda, caller: Seat, partner: Seat
    ) -> Negotiation | NativeNegotiation:
        calling, called = caller.native, partner.native
        to_partner = calling and calling.register(partner.id, caller.id == ref.seller)
        to_caller = called and called.register(caller.id, partner.id == ref.seller)
        if calling and called and to_partner and to_caller:
            sides = (calling, to_partner), (called, to_caller)
            return NativeNegotiation(ref, agenda.bounds, agenda.n_rounds, *sides, self._max_waits, self._hub)
        if calling is not None:  # the negotiators of a hosted caller exist already
            self._make_negotiator(caller, partner)
        self._make_negotiator(partner, caller)
        negotiation = Negotiation(
            ref,
            agenda,
            Side(caller, partner.id, caller.agent._negotiators[partner.id][0]),
            Side(partner, caller.id, partner.agent._negotiators[caller.id][0]),
            annotation_of(ref.buyer, ref.seller, ref.caller, ref.product, ref.day),
            self._max_waits,
            self._hub,
            self._report_error,
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

    def _make_negotiators(self, caller: Seat, buys: bool) -> None:
        partners = self._levels[caller.level - 1 if buys else caller.level + 1]
        for partner in partners:
            if not partner.bankrupt:
                self._make_negotiator(caller, partner)

    def run(self, negotiations: list[Negotiation | NativeNegotiation]) -> Generator[Decision, Reply, None]:
        """Run the negotiations to their ends, one pass of each at a time.

        Yields:
            The decisions of external seats; each expects its reply to be sent.
        """
        running = negotiations
        while running:
            still_running = []
            for negotiation in running:
                is_running = False
                while True:
                    try:
                        is_running = negotiation.step()
                    except DecisionNeeded as needed:
                        needed.agent.give((yield needed.decision))
                        continue
                    except Exception:  # agents raise anything; it was reported where it was raised
                        if isinstance(negotiation, NativeNegotiation):
                            raise  # no agent's code has run
                        negotiation.abort()
                    break
                if is_running:
                    still_running.append(negotiation)
                elif isinstance(negotiation, NativeNegotiation):
                    self._close_native(negotiation)
                else:
                    self._close(negotiation)
            running = still_running

    def _close_native(self, negotiation: NativeNegotiation) -> None:
        agreement = negotiation.close()
        if agreement is not None:
            quantity, day, unit_price = agreement
            ref = negotiation.ref
            buyer, seller = self._seats[ref.buyer], self._seats[ref.seller]
            self._book.add(NegotiatedContract(buyer, seller, ref.product, quantity, day, unit_price, ()))

    def _close(self, negotiation: Negotiation) -> None:
        """Notify observers and agents of a negotiation's end and add the contract, if there is one."""
        state, ref = negotiation.state, negotiation.ref
        agreement = state.agreement
        status = AGREEMENT if agreement is not None else _failure(negotiation)
        if self._hub.negotiation_end is not None:
            outcome = None if agreement is None else tuple(agreement)
            self._hub.negotiation_end(NegotiationEnd(ref, state.step, STATUSES[status], outcome))
        if self._hub.end is not None:
            caller, partner = (side.seat.index for side in negotiation.sides)
            buyer, seller = (caller, partner) if ref.caller == ref.buyer else (partner, caller)
            self._hub.end((ref.index, state.step, caller, ENDED + status, buyer, seller, ref.product))
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
            if seat.native is not None:
                continue  # native agents ignore failures
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
        copies = []
        if self._hub.contract is not None:
            self._hub.contract(ContractSigned(ref, quantity, day, unit_price))
        buyer, seller = sorted((side.seat for side in negotiation.sides), key=lambda seat: seat.id != ref.buyer)
        for side in negotiation.sides:
            seat = side.seat
            if seat.native is not None:
                seat.native.conclude(seat.native.links[side.pid], quantity, day, unit_price)
                continue
            if seat is buyer:
                seat.awi.register_supply(ref.seller, quantity, unit_price, day)
                seat.ufun.register_supply(quantity, unit_price, day)
                seat.buying.pop(ref.seller, None)
            else:
                seat.awi.register_sale(ref.buyer, quantity, unit_price, day)
                seat.ufun.register_sale(quantity, unit_price, day)
                seat.selling.pop(ref.buyer, None)
            copy = make_contract(negotiation, (quantity, day, unit_price), today)
            copies.append(copy)
            self._call(seat, "on_negotiation_success", copy, negotiation.nmi)
        for copy in copies:
            copy.signatures = {ref.caller: ref.caller, ref.partner: ref.partner}
            copy.signed_at = today
        self._book.add(NegotiatedContract(buyer, seller, ref.product, quantity, day, unit_price, tuple(copies)))

    def _call(self, seat: Seat, method: str, *args: Any) -> None:  # noqa: ANN401 - any callback
        try:
            seat.agent_call(method, *args)
        except Exception as error:  # agents raise anything
            self._report_error(seat, method, error)


def _failure(negotiation: Negotiation) -> int:
    if negotiation.state.has_error:
        return ERROR
    return BROKEN if negotiation.state.broken else TIMEDOUT
