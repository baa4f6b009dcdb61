"""Why our agent decided as it did: its log as `tables` of the record and back, and a decision in words (`text`)."""

from litaagent_std.records.reasons.tables import (
    TURN_REASONS,
    ReasonLog,
    SeatReasons,
    seat_reasons,
    turn_decisions,
    turn_reasons,
)
from litaagent_std.records.reasons.text import goal_of, offer_text, reason, types_text

__all__ = [
    "TURN_REASONS",
    "ReasonLog",
    "SeatReasons",
    "goal_of",
    "offer_text",
    "reason",
    "seat_reasons",
    "turn_decisions",
    "turn_reasons",
    "types_text",
]
