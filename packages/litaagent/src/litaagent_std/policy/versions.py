"""Digests of earlier releases that mean the same as a present one: what was made with them stays usable."""

from __future__ import annotations

from typing import Final

__all__ = ["same_digest"]

_EQUAL: Final = {
    # version 0.1: the digest of L1 was that of its source; the table of features had the same formulas in other words
    "a0aadbc7c8bcb5264b0d3ebbc28f3061f315df332282ea74684ddfcc61cec573": (
        "10bbadc0a08ada9d7b8608f92945c1ffcc53f59555df3bd1114361fc6ab0e702"
    ),
    "ed782ef460f9060b5975ba5cb6c4169590a4e555f2a771f36ca1cf1ca197f9eb": (
        "8b436797ae7f5113013220f9e781f374161a8930f29f6f8eb25752a77d96ccf5"
    ),
}


def same_digest(made: str, present: str) -> bool:
    """Return whether a digest that something was made with is the present one, or an earlier name of it."""
    return made == present or _EQUAL.get(made) == present
