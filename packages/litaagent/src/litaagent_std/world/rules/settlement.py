"""How a factory's day is settled: the rules of scml 0.8.4 as one pure function.

The engine settles days with it, and the utility function of the agents evaluates it: both give the same numbers.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Literal, NamedTuple

Inventory = Literal["as_shipped", "depleting"]
"""`as_shipped`: input stock is never consumed, as in scml 0.8.4. `depleting`: production consumes it."""

Line = tuple[float, int]
"""A delivery of today as (unit price, quantity)."""

_by_price = itemgetter(0)


def _by_falling_price(line: Line) -> float:
    return -line[0]


class Terms(NamedTuple):
    """What a factory's day depends on beside its contracts with other factories.

    Attributes:
        balance: Balance at the start of the day.
        n_lines: Units that can be produced.
        cost: Production cost per unit.
        stock_in: Input available without negotiation: exogenous input plus inventory.
        stock_in_bill: Total price of the exogenous input.
        stock_out: Output sold without negotiation: exogenous output plus output inventory.
        stock_out_bill: Total price of the exogenous output.
        shortfall_price: Output trading price, the scale of the shortfall penalty.
        shortfall_penalty: Penalty per missing unit, relative to `shortfall_price`.
        storage_price: Input trading price, the scale of the storage cost.
        storage_cost: Cost per unused unit of input, relative to `storage_price`.
        disposal_price: Input trading price, the scale of the disposal cost.
        disposal_cost: Cost per unused unit of input in a world of perishable goods, else 0.
    """

    balance: float
    n_lines: int
    cost: float
    stock_in: int
    stock_in_bill: float
    stock_out: int
    stock_out_bill: float
    shortfall_price: float
    shortfall_penalty: float
    storage_price: float
    storage_cost: float
    disposal_price: float
    disposal_cost: float


class Settled(NamedTuple):
    """The outcome of a factory's day.

    Attributes:
        profit: Revenue of delivered sales minus the input bill, production, storage and penalties.
        produced: Units produced and delivered.
        total_input: Available input, stock included.
        total_output: Output sold, delivered or not.
        shortfall: Units sold and not delivered.
        shortfall_penalty: Penalty paid for them.
        storage_cost: Storage paid.
        disposal_cost: Disposal paid.
    """

    profit: float
    produced: int
    total_input: int
    total_output: int
    shortfall: int
    shortfall_penalty: float
    storage_cost: float
    disposal_cost: float


def settle(inputs: list[Line], outputs: list[Line], terms: Terms) -> Settled:
    """Settle a day.

    Input is paid in full, cheapest first. Input whose price and production cost exceed the balance is paid as well
    but cannot be processed. Output is delivered most expensive first.

    Args:
        inputs: Today's purchases from other factories in order of conclusion; sorted in place.
        outputs: Today's sales to other factories in order of conclusion; sorted in place.
        terms: Everything else.
    """
    (
        balance,
        n_lines,
        cost,
        stock_in,
        stock_in_bill,
        stock_out,
        stock_out_bill,
        shortfall_price,
        shortfall_penalty,
        storage_price,
        storage_cost,
        disposal_price,
        disposal_cost,
    ) = terms
    # Exogenous goods and stock are one line, whose price spreads the exogenous bill over both.
    inputs.append((stock_in_bill / stock_in if stock_in else 0, stock_in))
    outputs.append((stock_out_bill / stock_out if stock_out else 0, stock_out))
    inputs.sort(key=_by_price)
    outputs.sort(key=_by_falling_price)

    # Units bought, units that the balance allows to process, units that can be delivered.
    bill, bought, affordable = _pay(inputs, balance, cost)
    deliverable = min(affordable, n_lines)
    revenue, sold = _deliver(outputs, deliverable)
    produced = min(bought, n_lines, min(deliverable, sold))

    # Penalties on what is missing and on what is left over, relative to trading prices.
    shortfall = max(0, sold - produced)
    unused = max(0, bought - produced)
    penalty = shortfall_price * (shortfall_penalty * shortfall)
    disposal = disposal_price * (disposal_cost * unused)
    storage = storage_price * (storage_cost * unused)
    profit = revenue - bill - cost * produced - disposal - storage - penalty
    return Settled(profit, produced, bought, sold, shortfall, penalty, storage, disposal)


def _pay(inputs: list[Line], balance: float, cost: float) -> tuple[float, int, int]:
    """Return the bill, the quantity bought, and the quantity that the balance allows to produce."""
    bill: float = 0
    bought = affordable = 0
    broke = balance < 0
    for price, quantity in inputs:
        due = price * quantity
        if not broke and bill + due + quantity * cost > balance:
            affordable = bought + int((balance - bill) // (price + cost))
            broke = True
        bill += due
        bought += quantity
    return bill, bought, affordable if broke else bought


def _deliver(outputs: list[Line], deliverable: int) -> tuple[float, int]:
    """Return the revenue of what can be delivered, and the quantity sold."""
    revenue: float = 0
    sold = 0
    delivering = True
    for price, quantity in outputs:
        if delivering:
            if sold + quantity >= deliverable:
                revenue += (deliverable - sold) * price
                delivering = False
            else:
                revenue += quantity * price
        sold += quantity
    return revenue, sold


def next_inventory(rule: Inventory, inventory: int, bought: int, produced: int) -> int:
    """Return the input inventory after a day.

    Args:
        rule: Whether production consumes stock.
        inventory: Inventory at the start of the day.
        bought: Input delivered today, exogenous input included.
        produced: Units produced today.
    """
    if rule == "depleting":
        return inventory + bought - produced
    return inventory + max(0, bought - produced)


def breach(bought: int, sold: int, terms: Terms) -> tuple[bool, float]:
    """Return whether a factory sold more than it could make, and the missing share of what it sold.

    As in scml, exogenous quantities count twice: once as executed contracts, once as part of the terms.
    """
    available = bought + terms.stock_in
    promised = sold + terms.stock_out
    capacity = min(available, terms.n_lines)
    return promised > capacity, 0 if capacity >= promised else (promised - capacity) / promised
