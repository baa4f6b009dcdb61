"""The best and the worst utility of a factory's day, over a grid of quantities bought and sold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from litaagent_std.world.rules.settlement import Line, Terms

Grid = NDArray[np.float64]
"""Values over quantities bought and sold, [B, 1], [1, S] or [B, S]."""


def find_limit_on_grid(
    best: bool,
    most_in: int,
    most_out: int,
    in_price: float,
    out_price: float,
    secured_in: list[Line],
    secured_out: list[Line],
    terms: Terms,
) -> tuple[float, int, int, int]:
    """Find the highest (or lowest) profit over all quantities bought and sold today.

    The arithmetic is that of `settlement.settle`, in the same order, on the whole grid at once. Ties are broken as in
    scml's scan: the largest purchase, then the largest sale.

    Args:
        best: Whether to find the highest profit (else the lowest).
        most_in: Largest quantity bought.
        most_out: Largest quantity sold.
        in_price: Unit price of what is bought.
        out_price: Unit price of what is sold.
        secured_in: Purchases that are already agreed.
        secured_out: Sales that are already agreed.
        terms: Everything else that the day's settlement depends on.

    Returns:
        Profit, quantity bought, quantity sold and quantity produced.
    """
    buying = np.arange(most_in + 1, dtype=np.float64).reshape(-1, 1)  # [B, 1] quantity bought
    selling = np.arange(most_out + 1, dtype=np.float64).reshape(1, -1)  # [1, S] quantity sold
    # [B, 1] bill, units bought, units that the balance allows to process
    bill, bought, affordable = _purchases(buying, in_price, secured_in, terms)
    produced = np.minimum(affordable, terms.n_lines)
    # [B, S] revenue; [1, S] units sold
    revenue, sold = _sales(selling, out_price, secured_out, terms, produced)
    # [B, S] units produced, missing and left over, and their costs
    produced = np.minimum(np.minimum(bought, terms.n_lines), np.minimum(produced, sold))
    shortfall = np.maximum(0, sold - produced)
    unused = np.maximum(0, bought - produced)
    penalty = terms.shortfall_price * (terms.shortfall_penalty * shortfall)
    disposal = terms.disposal_price * (terms.disposal_cost * unused)
    storage = terms.storage_price * (terms.storage_cost * unused)
    profit = revenue - bill - terms.cost * produced - disposal - storage - penalty
    # the last of equal optima in row-major order
    flat = profit.ravel()[::-1]
    index = flat.size - 1 - int(flat.argmax() if best else flat.argmin())
    row, column = divmod(index, most_out + 1)
    return float(profit[row, column]), row, column, int(produced[row, column])


def _purchases(buying: Grid, price: float, secured: list[Line], terms: Terms) -> tuple[Grid, Grid, Grid]:
    stock = (terms.stock_in_bill / terms.stock_in if terms.stock_in else 0, terms.stock_in)
    lines: list[tuple[float, Grid | int]] = [(price, buying), *secured, stock]
    bill: Grid = np.zeros_like(buying)
    bought: Grid = np.zeros_like(buying)
    affordable: Grid = np.zeros_like(buying)
    broke = np.full(buying.shape, terms.balance < 0)
    for unit_price, quantity in sorted(lines, key=lambda line: line[0]):  # cheapest first
        due = unit_price * quantity
        fails = ~broke & (bill + due + quantity * terms.cost > terms.balance)
        if fails.any():
            can_buy = np.trunc((terms.balance - bill) // (unit_price + terms.cost))
            affordable = np.where(fails, bought + can_buy, affordable)
            broke = broke | fails
        bill = bill + due
        bought = bought + quantity
    return bill, bought, np.where(broke, affordable, bought)


def _sales(selling: Grid, price: float, secured: list[Line], terms: Terms, produced: Grid) -> tuple[Grid, Grid]:
    stock = (terms.stock_out_bill / terms.stock_out if terms.stock_out else 0, terms.stock_out)
    lines: list[tuple[float, Grid | int]] = [(price, selling), *secured, stock]
    shape = np.broadcast_shapes(produced.shape, selling.shape)
    revenue: Grid = np.zeros(shape)
    sold: Grid = np.zeros_like(selling)
    delivering = np.ones(shape, dtype=bool)
    for unit_price, quantity in sorted(lines, key=lambda line: -line[0]):  # most expensive first
        last = delivering & (sold + quantity >= produced)
        delivered = np.where(last, produced - sold, quantity)
        revenue = np.where(delivering, revenue + delivered * unit_price, revenue)
        delivering = delivering & ~last
        sold = sold + quantity
    return revenue, sold
