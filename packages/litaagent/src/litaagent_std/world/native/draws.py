"""Draws that consume a generator exactly as Python's and numpy's own functions do, without their overhead.

Native agents replace agents that call `random.randint`, `random.shuffle` and `numpy.random.choice`. To leave the seat's
streams in the same state, these functions use the same algorithm, rejection sampling: draw n.bit_length() random bits
(Python) or the lowest bits of a 32-bit word (numpy) until the number is below n.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.random import RandomState

Bits = Callable[[int], int]
"""``getrandbits`` of a generator."""

_WORD = 32
_SIZES = tuple((last + 1).bit_length() for last in range(64))


def between(low: int, high: int, bits: Bits) -> int:
    """Draw an integer from `low` to `high`, both included, as `random.randint`."""
    width = high - low + 1
    size = width.bit_length()
    drawn = bits(size)
    while drawn >= width:
        drawn = bits(size)
    return low + drawn


def shuffle(items: list[Any], bits: Bits) -> None:
    """Shuffle in place, as `random.shuffle`."""
    sizes = _SIZES if len(items) <= len(_SIZES) else [(last + 1).bit_length() for last in range(len(items))]
    for last in range(len(items) - 1, 0, -1):
        size = sizes[last]
        other = bits(size)
        while other > last:
            other = bits(size)
        items[last], items[other] = items[other], items[last]


def words_of(state: RandomState) -> Bits:
    """Return ``getrandbits`` of a Python generator with the state of a legacy numpy generator.

    Both are Mersenne twisters, and Python's returns single words many times faster.
    """
    values: Any = state.get_state(legacy=True)
    twin = random.Random()
    twin.setstate((3, (*(int(word) for word in values[1]), int(values[2])), None))
    return twin.getrandbits


def counts(n: int, draws: int, words: Bits) -> list[int]:
    """Draw one of n bins `draws` times and return the count of each, as ``numpy.random.choice(n, draws)``."""
    if n == 1:  # numpy draws nothing when there is no choice
        return [draws]
    count = [0] * n
    mask = (1 << (n - 1).bit_length()) - 1
    for _ in range(draws):
        drawn = words(_WORD) & mask
        while drawn >= n:
            drawn = words(_WORD) & mask
        count[drawn] += 1
    return count


def distribute(
    quantity: int, n: int, most: int, concentrated: bool, equal: bool, allow_zero: bool, bits: Bits, words: Bits
) -> list[int]:
    """Distribute a quantity over n bins, as scml's function of the same name.

    Args:
        quantity: The quantity; what exceeds the capacity of all bins is dropped.
        n: Number of bins.
        most: Capacity of a bin.
        concentrated: Whether as few bins as possible are filled to capacity.
        equal: Whether all bins get the same quantity before the rest is drawn (if `allow_zero` is False).
        allow_zero: Whether bins may stay empty although the quantity suffices for all.
        bits: The seat's Python generator.
        words: The seat's numpy generator.
    """
    quantity = min(quantity, most * n)
    if concentrated:
        filled = [0] * n if allow_zero else [1] * min(quantity, n) + [0] * (n - min(quantity, n))
        quantity -= sum(filled)
        if quantity:
            for i in range(n):
                quantity += filled[i]
                filled[i] = min(most, quantity)
                quantity -= filled[i]
        shuffle(filled, bits)
        return filled
    if quantity < n:
        filled = [0] * (n - quantity) + [1] * quantity
        shuffle(filled, bits)
        return filled
    if quantity == n:
        return [1] * n
    per = 0 if allow_zero else quantity // n if equal else 1
    drawn = counts(n, quantity - per * n, words)
    return [units + per for units in drawn] if per else drawn
