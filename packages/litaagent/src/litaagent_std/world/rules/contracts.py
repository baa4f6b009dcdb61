"""The book of contracts: who delivers what to whom on which day."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

from negmas.situated import Contract

from litaagent_std.world.fast.negotiation import Negotiation
from litaagent_std.world.fast.seats import Seat


class Deal(NamedTuple):
    """A contract between two factories.

    Attributes:
        buyer: The buying seat.
        seller: The selling seat.
        product: The product.
        quantity: Units.
        day: Day of delivery.
        unit_price: Price per unit.
        papers: What the agents hold in hand, one each; the engine never reads them back.
    """

    buyer: Seat
    seller: Seat
    product: int
    quantity: int
    day: int
    unit_price: int
    papers: tuple[Contract, ...]


class ContractBook:
    """Open contracts by day of delivery, in order of conclusion."""

    def __init__(self) -> None:
        self._open: dict[int, list[Deal]] = defaultdict(list)

    def add(self, deal: Deal) -> None:
        """Enters a contract."""
        self._open[deal.day].append(deal)

    def due(self, day: int) -> list[Deal]:
        """Take out the contracts that are due."""
        return self._open.pop(day, [])

    def nullify(self, seat: Seat, today: int) -> None:
        """Strikes out what a bankrupt factory was to deliver or to receive in the future."""
        for day, deals in self._open.items():
            kept = []
            for deal in deals:
                if deal.buyer is seat or deal.seller is seat:
                    for paper in deal.papers:
                        paper.nullified_at = today
                else:
                    kept.append(deal)
            self._open[day] = kept


def write_contract(negotiation: Negotiation, terms: tuple[int, int, int], today: int) -> Contract:
    """Write the contract that an agent is handed, as negmas writes it.

    Each side gets a paper of its own, so that nobody can alter the other's.
    """
    quantity, day, unit_price = terms
    ref = negotiation.ref
    return Contract(
        agreement={"quantity": quantity, "time": day, "unit_price": unit_price},
        partners=(ref.caller, ref.partner),
        annotation=dict(negotiation.annotation),
        issues=negotiation.topic.issues,
        concluded_at=today,
        to_be_signed_at=today,
        mechanism_state=negotiation.state,
        mechanism_id=negotiation.id,
        id=f"{negotiation.id}:contract",
    )


def annotation_of(buyer: str, seller: str, caller: str, product: int, today: int) -> dict[str, Any]:
    """Return what negotiations and contracts are annotated with in scml."""
    return {
        "product": product,
        "is_buy": caller == buyer,
        "buyer": buyer,
        "seller": seller,
        "caller": caller,
        "sim_step": today,
    }
