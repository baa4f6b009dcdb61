"""The contract book of the fast engine: contracts between factories by delivery day, and the copies agents get."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from negmas.situated import Contract

if TYPE_CHECKING:
    from litaagent_std.world.events import Outcome
    from litaagent_std.world.fast.negotiation import Negotiation
    from litaagent_std.world.fast.seats import Seat


class NegotiatedContract(NamedTuple):
    """A contract between two factories.

    Attributes:
        buyer: The buying seat.
        seller: The selling seat.
        product: The product.
        quantity: Units.
        day: Day of delivery.
        unit_price: Price per unit.
        copies: The copies that the agents got, one each; the engine never reads them back.
    """

    buyer: Seat
    seller: Seat
    product: int
    quantity: int
    day: int
    unit_price: int
    copies: tuple[Contract, ...]


class ContractBook:
    """Open contracts by day of delivery, in order of conclusion."""

    def __init__(self) -> None:
        self._open: dict[int, list[NegotiatedContract]] = defaultdict(list)

    def add(self, contract: NegotiatedContract) -> None:
        """Add a contract."""
        self._open[contract.day].append(contract)

    def pop_due(self, day: int) -> list[NegotiatedContract]:
        """Remove and return the contracts that are due on a day."""
        return self._open.pop(day, [])

    def nullify(self, seat: Seat, today: int) -> None:
        """Remove all open contracts of a bankrupt factory."""
        for day, contracts in self._open.items():
            kept = []
            for contract in contracts:
                if contract.buyer is seat or contract.seller is seat:
                    for copy in contract.copies:
                        copy.nullified_at = today
                else:
                    kept.append(contract)
            self._open[day] = kept


def make_contract(negotiation: Negotiation, terms: Outcome, today: int) -> Contract:
    """Make the contract object that an agent gets, as negmas makes it.

    Each side gets its own copy, so that no agent can alter the other's.
    """
    quantity, day, unit_price = terms
    ref = negotiation.ref
    return Contract(
        agreement={"quantity": quantity, "time": day, "unit_price": unit_price},
        partners=(ref.caller, ref.partner),
        annotation=dict(negotiation.annotation),
        issues=negotiation.agenda.issues,
        concluded_at=today,
        to_be_signed_at=today,
        mechanism_state=negotiation.state,
        mechanism_id=negotiation.id,
        id=f"{negotiation.id}:contract",
    )
