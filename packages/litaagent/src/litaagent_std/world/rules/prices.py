"""Trading prices and the price range of negotiations."""

from __future__ import annotations

from typing import Final, NamedTuple

PRICE_DISCOUNT: Final = 0.9
"""Weight of the past in tomorrow's trading price."""

CATALOG_QUANTITY: Final = 50
"""Units that the catalog price stands for on the first day."""


class Market(NamedTuple):
    """A product's trading price with the weight of its past.

    Attributes:
        price: The trading price.
        weight: Discounted quantity that the price stands for.
    """

    price: float
    weight: float


def initial_market(catalog_price: int) -> Market:
    """Return a product's market on the first day."""
    return Market(float(catalog_price), float(CATALOG_QUANTITY))


def mean_price(mean: float, quantity: int, more: int, unit_price: int) -> float:
    """Return the mean unit price of `quantity` units at `mean` and `more` units at `unit_price`.

    Add deliveries one by one, in order of execution: the last bit of the result depends on it.
    """
    paid = mean * quantity if quantity > 0 else 0.0
    return (paid + more * unit_price) / (quantity + more)


def next_market(market: Market, sold: int, mean: float, discount: float) -> Market:
    """Return a product's market after a day.

    price' = (discount · weight · price + sold · mean) / (discount · weight + sold); unchanged if nothing was sold.

    Args:
        market: The market at the start of the day.
        sold: Units delivered today.
        mean: Their mean unit price.
        discount: Weight of the past; `PRICE_DISCOUNT` in the league.
    """
    if sold <= 0:
        return market
    weight = market.weight * discount + sold
    return Market((market.price * market.weight * discount + mean * sold) / weight, weight)


def price_band(price: float, fraction: float) -> tuple[int, int]:
    """Return the lowest and the highest unit price that can be negotiated around a trading price."""
    low, high = max(1, int(price * (1.0 - fraction))), int((1.0 + fraction) * price)
    return (low, high) if low <= high else (high, low)
