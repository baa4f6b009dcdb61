"""What earlier releases made stays usable: their digests by present ones, and the settings of the first agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["REFERENCE", "same_digest"]

REFERENCE: Final[Mapping[str, Any]] = {
    "l2": "heuristic",
    "l3": "model",
    "l4": "joint",
    "parameters": {
        "sell_start": 1.0,
        "sell_end_slack": 0.0,
        "sell_end_full": 0.15,
        "sell_curve": 1.0,
        "fill_weight": 0.5,
        "fill_rate": 0.2,
        "drift_weight": 0.0,
        "learn_rate": 0.4,
        "model_weight": 1.0,
        "model_curve": 2.0,
        "hold": 0.3,
        "urgency_low": 0.0,
        "urgency_high": 0.0,
        "impatience": 3.0,
        "buy_start": 0.0,
        "buy_end": 1.0,
        "buy_curve": 0.5,
        "buy_urgency": 0.7,
        "stock_target": 1.0,
        "stock_days": 4.0,
        "cover_days": 3.0,
        "bankruptcy_days": 3.0,
        "input_trust": 0.7,
        "risk_budget": 0.05,
        "assume_persistent": True,
        "overrides": {},
    },
}
"""Settings of the first agent that won the league's worlds, all written out: whatever the defaults become, it stays
playable (`agents.variants.LitaAgentV1`, ``lita-v1``) and is what later agents are compared with."""

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
