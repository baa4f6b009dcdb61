"""What others would have decided in the teacher's place, in every situation that the teacher comes into.

At each decision the teacher's brain is copied for everybody who is compared, and each copy decides under the numbers of
its own policy; then the teacher's own decision goes ahead. So decisions are compared in one and the same situation, all
of L1 to L4 included, and never two worlds that have drifted apart.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

from litaagent_std.agents.online.acting import PolicySet
from litaagent_std.agents.online.agent import LitaOnline
from litaagent_std.agents.online.seat import DecisionRequest, apply_action
from litaagent_std.agents.online.steering import Steering
from litaagent_std.policy.brain import Decision
from litaagent_std.policy.observation import Observation, ThreadObservation
from litaagent_std.policy.plan import Goals

__all__ = ["Agreement", "ShadowedAgent"]


@dataclass(slots=True)
class Agreement:
    """Counts of what was compared and what was the same.

    Attributes:
        threads: Decisions of threads.
        kinds: Those of the same kind: accept, reject, or end.
        same: Those that are the same to the last unit of the counter-offer.
        quantities: Goal quantities, one per side and delivery day.
        same_quantities: Those that are the same.
        prices: Goal prices.
        price_gap: Sum of their distances over the market's price.
    """

    threads: int = 0
    kinds: int = 0
    same: int = 0
    quantities: int = 0
    same_quantities: int = 0
    prices: int = 0
    price_gap: float = 0.0

    def note_decisions(self, ours: Mapping[str, Decision], theirs: Mapping[str, Decision]) -> None:
        """Compare a round."""
        for partner, decision in theirs.items():
            self.threads += 1
            self.kinds += ours[partner].kind == decision.kind
            self.same += ours[partner] == decision

    def note_goals(self, obs: Observation, ours: Goals | None, theirs: Goals | None) -> None:
        """Compare goals; sides without any count nothing."""
        if ours is None or theirs is None:
            return
        for name in ("q_buy", "q_sell"):
            both = list(zip(getattr(ours, name), getattr(theirs, name), strict=True))
            self.quantities += len(both)
            self.same_quantities += sum(one == other for one, other in both)
        for name, market in (("p_buy", obs.price_in), ("p_sell", obs.price_out)):
            for one, other in zip(getattr(ours, name), getattr(theirs, name), strict=True):
                if isfinite(one) and isfinite(other):
                    self.prices += 1
                    self.price_gap += abs(one - other) / max(market, 1.0)


class ShadowedAgent(LitaOnline):
    """The teacher in play, with shadows that decide what it decides.

    Args:
        *args: Passed to scml.
        shadows: Files of weights by name.
        **kwargs: As for `LitaOnline`; ``weights`` are the teacher's.

    Attributes:
        agreement: Of each shadow with the teacher.
        questions: All questions that were asked.
        decisions: How often a round was decided.
    """

    def __init__(self, *args: Any, shadows: Mapping[str, str], **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        super().__init__(*args, **kwargs)
        self._shadows = {name: (PolicySet.load(path), Steering()) for name, path in shadows.items()}
        self.agreement = {name: Agreement() for name in shadows}
        self.questions: list[DecisionRequest] = []
        self.decisions = 0

    def _ask(self, question: DecisionRequest, kind: Literal["first_proposals", "counter_all"]) -> None:
        self.questions.append(question)
        for policies, steering in self._shadows.values():
            apply_action(steering, question, policies.answer(question))
        super()._ask(question, kind)

    def _steer(
        self,
        kind: Literal["first_proposals", "counter_all"],
        offers: Mapping[str, Any],
        states: Mapping[str, Any],
    ) -> None:
        super()._steer(kind, offers, states)
        self.decisions += 1
        threads, obs = self._threads(offers, states), self.diary.days[-1].obs
        decided, goals = self._decided(self.steering, threads)
        for name, (_, steering) in self._shadows.items():
            others, other_goals = self._decided(steering, threads)
            self.agreement[name].note_decisions(others, decided)
            self.agreement[name].note_goals(obs, other_goals, goals)

    def _decided(
        self, steering: Steering, threads: Sequence[ThreadObservation]
    ) -> tuple[dict[str, Decision], Goals | None]:
        """Return what a copy of the brain decides under some numbers, and the goals that it sets."""
        shared = {id(self.brain.obs): self.brain.obs}  # an observation never changes
        brain, numbers, layer = copy.deepcopy((self.brain, self.steering, self._goal_layer), shared)
        numbers.day, numbers.threads, numbers.weights = steering.day, steering.threads, steering.weights
        return brain.respond(list(threads)), layer.latest
