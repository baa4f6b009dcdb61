"""The prices of the native `SyncRandomStdAgent` on one day; each is computed once and cached."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor
from typing import Final, NamedTuple

from litaagent_std.world.native.agent import Bounds

_TOLERANCE: Final = 0.0001


class Concession(NamedTuple):
    """How the agent concedes.

    Attributes:
        today: Exponent of concession for deliveries today.
        future: Exponent of concession for later deliveries.
        margin: Share of the price range that is never conceded for later deliveries.
        by_round: Relative time raised to the exponent of today's deliveries, by completed rounds.
        by_round_future: Relative time raised to the exponent of later deliveries, by completed rounds.
    """

    today: float
    future: float
    margin: float
    by_round: Sequence[float]
    by_round_future: Sequence[float]


class SyncPrices:
    """Today's prices.

    Args:
        today: The day.
        n_days: Days of the world.
        concession: How the agent concedes.
        bought: Bounds of today's negotiations about the input.
        sold: Bounds of today's negotiations about the output.

    Attributes:
        sells: Whether any sale price is at least the highest purchase price.
        buys: Whether any purchase price is at most the lowest sale price.
    """

    def __init__(self, today: int, n_days: int, concession: Concession, bought: Bounds, sold: Bounds) -> None:
        self._today = today
        self._left = max(n_days - today, 1)
        self._concession = concession
        self._purchase_range, self._sale_range = bought[4:], sold[4:]
        self._sale_limits = (max(sold[4], bought[5]), sold[5])
        self._purchase_limits = (bought[4], min(bought[5], sold[4]))
        self.sells = self._sale_limits[0] <= self._sale_limits[1]
        self.buys = self._purchase_limits[0] <= self._purchase_limits[1]
        self._counters: dict[tuple[bool, int], int | None] = {}
        self._offers: dict[tuple[bool, int], int | None] = {}
        self._limits: dict[tuple[bool, int], float] = {}

    def counter(self, selling: bool, step: int) -> int | None:
        """Return the price of a counter-offer for today in a round; None if it is no integer and thus not legal."""
        key = selling, step
        if key not in self._counters:
            power = self._concession.by_round_future[step]
            low, high = self._sale_range if selling else self._purchase_range
            self._counters[key] = _legal(self._sale(power, low, high) if selling else _purchase(power, low, high))
        return self._counters[key]

    def offer(self, selling: bool, day: int) -> int | None:
        """Return the price of an offer for a later day; None if it is no integer and thus not legal."""
        key = selling, day
        if key not in self._offers:
            power = (1 - max(0, min(1, (day - self._today) / self._left))) ** self._concession.future
            low, high = self._sale_limits if selling else self._purchase_limits
            self._offers[key] = _legal(self._sale(power, low, high) if selling else _purchase(power, low, high))
        return self._offers[key]

    def is_acceptable(self, selling: bool, price: int, day: int, step: int) -> bool:
        """Return whether the price of a partner's offer is acceptable."""
        limit = self.limit(selling, day, step)
        return price + _TOLERANCE >= limit if selling else price - _TOLERANCE <= limit

    def worst(self, selling: bool, day: int, step: int) -> int:
        """Return the worst whole price that is acceptable."""
        limit = self.limit(selling, day, step)
        return ceil(limit - _TOLERANCE) if selling else floor(limit + _TOLERANCE)

    def limit(self, selling: bool, day: int, step: int) -> float:
        """Return the limit price of a delivery day in a round."""
        key = selling, -1 - step if day == self._today else day
        limit = self._limits.get(key)
        if limit is None:
            limit = self._limits[key] = self._limit(selling, day, step)
        return limit

    def _limit(self, selling: bool, day: int, step: int) -> float:
        concession = self._concession
        for_today = day == self._today
        power = concession.by_round[step] if for_today else ((day - self._today) / self._left) ** concession.future
        if selling:
            low, high = self._sale_limits
            return _sale(power, low, high) if for_today else self._sale(power, low, high)
        low, top = self._purchase_limits
        return _purchase(power, low, top if for_today else top - concession.margin * (top - low))

    def _sale(self, power: float, low: float, high: float) -> float:
        return _sale(power, low + self._concession.margin * (high - low), high)


def _sale(power: float, low: float, high: float) -> float:
    return max(low, min(high, int(0.5 + high - (high - low) * power)))


def _purchase(power: float, low: float, high: float) -> float:
    return max(low, min(high, int(low + (high - low) * power + 0.5)))


def _legal(price: float) -> int | None:
    return int(price) if price == int(price) else None
