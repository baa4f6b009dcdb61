"""A seat of ours that is driven from outside: the world stops at each of its questions and waits for the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from litaagent_std.agents.online.seat import Call, DecisionRequest, SteeredSeat, apply_action
from litaagent_std.world.fast.external import Decision, DecisionNeeded

__all__ = ["SteeredAgent"]


class SteeredAgent(SteeredSeat):
    """The heuristic agent under numbers that training sends.

    Args:
        *args: Passed to scml.
        seat: Number of the seat, for questions.
        **kwargs: Passed on.
    """

    def __init__(self, *args: Any, seat: int = -1, **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        super().__init__(*args, **kwargs)
        self.question: DecisionRequest | None = None
        self._seat = seat
        self._asked_for: Call | None = None

    def give(self, reply: Any) -> None:  # noqa: ANN401 - the world passes on what it was sent
        """Take the answer to the question that stopped the world."""
        assert self.question is not None
        apply_action(self.steering, self.question, np.asarray(reply, np.float32))

    def _steer_round(self, call: Call, offers: Mapping[str, Any], states: Mapping[str, Any]) -> None:
        if self._asked_for == call:  # the answer has come: the world repeats the call that it had stopped
            self._asked_for = None
            return
        self._asked_for = call
        super()._steer_round(call, offers, states)

    def _ask(self, question: DecisionRequest, call: Call) -> None:
        self.question = question
        raise DecisionNeeded(self, Decision(self._seat, self.id, call, question.partners, {}, {}, self.awi))
