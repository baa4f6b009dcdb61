"""Trading prices and the price band of negotiations: pure functions of the rules of scml 0.8.4."""

from __future__ import annotations

from typing import NamedTuple


class Market(NamedTuple):
    """A product's trading price with the weight of its past.

    Attributes:
        price: The trading price.
        weight: Discounted quantity that the price stands for.
    """

    price: float
    weight: float


def mean_price(mean: float, quantity: int, more: int, unit_price: int) -> float:
    """Return the mean unit price of `quantity` units at `mean` and `more` units at `unit_price`.

    Deliveries are added one by one, in order of execution, because the last bit of the result depends on it.
    """
    paid = mean * quantity if quantity > 0 else 0.0
    return (paid + more * unit_price) / (quantity + more)


def next_market(market: Market, sold: int, mean: float, discount: float) -> Market:
    """Return a product's market after a day.

    price' = (discount · weight · price + sold · mean) / (discount · weight + sold); unchanged without trade.

    Args:
        market: The market in the morning.
        sold: Units delivered today.
        mean: Their mean unit price.
        discount: Weight of the past, 0.9 in the league.
    """
    if sold <= 0:
        return market
    weight = market.weight * discount + sold
    return Market((market.price * market.weight * discount + mean * sold) / weight, weight)


def price_band(price: float, fraction: float) -> tuple[int, int]:
    """Return the lowest and the highest unit price that can be negotiated around a trading price."""
    low, high = max(1, int(price * (1.0 - fraction))), int((1.0 + fraction) * price)
    return (low, high) if low <= high else (high, low)
