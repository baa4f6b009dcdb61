"""Bankruptcy and score: what follows from a factory's balance."""

from __future__ import annotations

from typing import Final

__all__ = ["BANKRUPTCY_LIMIT", "is_bankrupt", "score"]

BANKRUPTCY_LIMIT: Final = 0.0
"""A factory whose balance falls below it is bankrupt for good: it negotiates no more, and its contracts are void."""


def is_bankrupt(was_bankrupt: bool, balance: float) -> bool:
    """Return whether a factory is bankrupt after a day that left it with `balance`."""
    return was_bankrupt or bool(balance < BANKRUPTCY_LIMIT)


def score(balance: float, initial_balance: float) -> float:
    """Return a factory's score: its balance relative to its initial balance, if it had one."""
    return balance / initial_balance if initial_balance else balance
