"""Who negotiates with whom, about which issues, and what a contract is annotated with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

__all__ = ["Range", "annotation_of", "delivery_days", "negotiation_pairs", "quantities"]

Factory = TypeVar("Factory")

Range = tuple[int, int]
"""The lowest and the highest value of an issue."""


def negotiation_pairs(levels: Sequence[Sequence[Factory]]) -> list[tuple[Factory, Factory, bool]]:
    """List who negotiates with whom as (caller, partner, caller buys), in order of registration.

    Every other level, counted from the last, calls: each factory its suppliers, then its consumers.

    Args:
        levels: The factories of each level, from the first level to the last.
    """
    pairs = []
    last = len(levels) - 1
    for level in range(last, -1, -2):
        for caller in levels[level]:
            if level > 0:
                pairs += [(caller, partner, True) for partner in levels[level - 1]]
            if level < last:
                pairs += [(caller, partner, False) for partner in levels[level + 1]]
    return pairs


def quantities(max_n_lines: int, multiplier: int) -> Range:
    """Return the quantities that can be negotiated: from 1 to a multiple of the largest factory's lines."""
    return 1, max(1, int(max_n_lines * multiplier + 0.5))


def delivery_days(today: int, horizon: int, n_days: int) -> Range:
    """Return the delivery days that can be negotiated: from today to the horizon, within the world's days."""
    last = n_days - 1
    return min(today, last), min(today + horizon, last)


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
