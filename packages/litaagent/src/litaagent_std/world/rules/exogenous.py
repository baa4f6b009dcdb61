"""Exogenous contracts: what the market forces on the factories of the first and the last level."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

__all__ = ["ExogenousContract", "ExogenousTotals", "group_by_day", "summarize", "total_of_seat"]


@dataclass(frozen=True, slots=True)
class ExogenousContract:
    """A contract that the market forces on a factory at the edge of the chain; the system's side is seat −1."""

    day: int
    product: int
    quantity: int
    unit_price: int
    seller: int
    buyer: int


class ExogenousTotals(NamedTuple):
    """A factory's exogenous contracts of one day, added up.

    Attributes:
        input_quantity: Units of input that it has to buy.
        input_bill: Their total price.
        output_quantity: Units of output that it has to sell.
        output_bill: Their total price.
    """

    input_quantity: int
    input_bill: int
    output_quantity: int
    output_bill: int


def group_by_day(contracts: Iterable[ExogenousContract]) -> dict[int, list[ExogenousContract]]:
    """Group contracts by day; within a day the order stays, because it is the order of execution."""
    by_day: dict[int, list[ExogenousContract]] = {}
    for contract in contracts:
        by_day.setdefault(contract.day, []).append(contract)
    return by_day


def total_of_seat(contracts: Iterable[ExogenousContract], seat: int) -> ExogenousTotals:
    """Add up the contracts in which a seat buys or sells."""
    qin = pin = qout = pout = 0
    for contract in contracts:
        if contract.buyer == seat:
            qin += contract.quantity
            pin += contract.quantity * contract.unit_price
        if contract.seller == seat:
            qout += contract.quantity
            pout += contract.quantity * contract.unit_price
    return ExogenousTotals(qin, pin, qout, pout)


def summarize(contracts: Iterable[ExogenousContract], n_products: int) -> list[tuple[float, float]]:
    """Return the total quantity and the total price of each product: the summary that scml publishes every day."""
    quantities, bills = np.zeros(n_products), np.zeros(n_products)
    for contract in contracts:
        quantities[contract.product] += contract.quantity
        bills[contract.product] += contract.quantity * contract.unit_price
    return list(zip(quantities, bills, strict=True))
