"""Draws that consume a generator exactly as Python's and numpy's own functions do, without their overhead.

Minds replace agents that call `random.randint`, `random.shuffle` and `numpy.random.choice`. To leave the seat's streams
in the same state, these functions follow the same algorithms: a number below n is the first of n.bit_length() random
bits (Python) or of the lowest bits of a 32-bit word (numpy) that is small enough.
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
    """Draws an integer from `low` to `high`, both included, as `random.randint`."""
    width = high - low + 1
    size = width.bit_length()
    drawn = bits(size)
    while drawn >= width:
        drawn = bits(size)
    return low + drawn


def shuffle(items: list[Any], bits: Bits) -> None:
    """Shuffles in place, as `random.shuffle`."""
    sizes = _SIZES if len(items) <= len(_SIZES) else [(last + 1).bit_length() for last in range(len(items))]
    for last in range(len(items) - 1, 0, -1):
        size = sizes[last]
        other = bits(size)
        while other > last:
            other = bits(size)
        items[last], items[other] = items[other], items[last]


def words_of(state: RandomState) -> Bits:
    """Return ``getrandbits`` of a Python generator that goes on where a legacy numpy generator stands.

    Both are Mersenne twisters, and Python's hands out single words many times faster.
    """
    values: Any = state.get_state(legacy=True)
    twin = random.Random()
    twin.setstate((3, (*(int(word) for word in values[1]), int(values[2])), None))
    return twin.getrandbits


def counts(n: int, draws: int, words: Bits) -> list[int]:
    """Draws `draws` times one of n bins and returns how often each came, as ``numpy.random.choice(n, draws)``."""
    if n == 1:  # numpy draws nothing when there is no choice
        return [draws]
    found = [0] * n
    mask = (1 << (n - 1).bit_length()) - 1
    for _ in range(draws):
        drawn = words(_WORD) & mask
        while drawn >= n:
            drawn = words(_WORD) & mask
        found[drawn] += 1
    return found


def distribute(
    quantity: int, n: int, most: int, concentrated: bool, equal: bool, allow_zero: bool, bits: Bits, words: Bits
) -> list[int]:
    """Distributes a quantity over n bins by the rule of scml's function of the same name.

    Args:
        quantity: What to distribute; what the bins cannot hold is dropped.
        n: Number of bins.
        most: What a bin can hold.
        concentrated: Whether few bins get as much as they can hold.
        equal: Whether the bins get the same where the quantity suffices, before the rest is drawn.
        allow_zero: Whether bins may stay empty although the quantity would suffice for all.
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
    return [one + per for one in drawn] if per else drawn
