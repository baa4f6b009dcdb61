"""A recorded decision in words."""

from __future__ import annotations

from litaagent_std.policy.brain import DecisionRecord
from litaagent_std.policy.l3.heuristic import ARCHETYPES
from litaagent_std.policy.observation import Offer

__all__ = ["goal_of", "offer_text", "reason", "types_text"]


def offer_text(offer: Offer | None) -> str:
    """Describe an offer in words."""
    return "–" if offer is None else f"{offer.quantity} at {offer.price} for day {offer.time}"


def types_text(record: DecisionRecord) -> str:
    """Describe the belief about the partner in words: its types by probability, those of 5 % and more."""
    if record.types is None:
        return "–"
    named = sorted(zip(record.types, ARCHETYPES, strict=True), reverse=True)
    return ", ".join(f"{name} {chance:.2f}" for chance, name in named if chance >= 0.05)


def goal_of(record: DecisionRecord, time: int) -> tuple[int, float]:
    """Return the goal's quantity and reservation price for a delivery day; 0 and 0 beyond the horizon."""
    goals, lead = record.goals, time - record.day
    quantities, prices = (goals.q_buy, goals.p_buy) if record.buying else (goals.q_sell, goals.p_sell)
    return (quantities[lead], prices[lead]) if 0 <= lead < len(quantities) else (0, 0.0)


def reason(record: DecisionRecord) -> str:
    """Return why a decision was taken, in one sentence."""
    kind = record.decision.kind
    if kind == "accept":
        return f"{_judged(record)}; it is among the offers that are worth most together"
    if kind == "end":
        return f"{_nothing_left(record)}, so the thread ends"
    opening = "it is ours to open" if record.received is None else _declined(record)
    return f"{opening}; {_proposal(record)}"


def _judged(record: DecisionRecord) -> str:
    price = record.received.price if record.received is not None else 0
    limit = 0.0 if record.reservation is None else record.reservation
    side = "at most" if record.buying else "at least"
    kept = price <= limit if record.buying else price >= limit
    return f"its price {price} {'keeps' if kept else 'misses'} our limit of {side} {limit:g}"


def _declined(record: DecisionRecord) -> str:
    offer, limit = record.received, record.reservation
    if offer is None:
        return "there is nothing to accept"
    if limit is None:
        return f"{offer_text(offer)} is outside the day's agenda"
    if (offer.price > limit) if record.buying else (offer.price < limit):
        return _judged(record)
    units, _ = goal_of(record, offer.time)
    if offer.quantity > units:
        return f"{offer.quantity} units are more than the goal of {units} for day {offer.time}"
    return "other offers are worth more together, or the same units are already on a table"


def _nothing_left(record: DecisionRecord) -> str:
    goals = record.goals.q_buy if record.buying else record.goals.q_sell
    verb = "buy" if record.buying else "sell"
    if not any(goals):
        return f"there is nothing to {verb}"
    if record.proposed is not None:
        return f"L1 leaves nothing of {offer_text(record.proposed)}"
    return f"nothing that may be offered here gains by it, though {sum(goals)} units are still to {verb}"


def _proposal(record: DecisionRecord) -> str:
    offer = record.decision.offer
    clipped = "" if record.proposed in (None, offer) else f" (L1 made it out of {offer_text(record.proposed)})"
    chance = "" if record.acceptance is None else f", taken with probability {record.acceptance:.2f}"
    chance += f", urgency {record.urgency:.2f}" if record.urgency else ""
    weight = "" if record.alpha is None else f", α {record.alpha:.2f}"
    return f"the best proposal is {offer_text(offer)}{clipped}{chance}{weight}"
