"""Decisions of other policies in every situation of the teacher.

At each decision the teacher's brain is copied once per compared policy, and each copy decides with the residuals of its
own policy; then the teacher's own decision is played. So decisions are compared in the same situation, with all of L1
to L4, and never between two worlds that have diverged.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from litaagent_std.agents.online.acting import PolicySet
from litaagent_std.agents.online.agent import LitaOnline
from litaagent_std.agents.online.seat import Call, DecisionRequest, apply_action
from litaagent_std.agents.online.steering import Residuals
from litaagent_std.policy.brain import Decision
from litaagent_std.policy.observation import Observation, ThreadObservation
from litaagent_std.policy.plan import Goals

__all__ = ["Agreement", "ShadowedAgent"]


@dataclass(slots=True)
class Agreement:
    """Counts of comparisons and of equal results.

    Attributes:
        threads: Compared decisions of threads.
        kinds: Decisions of the same kind: accept, reject, or end.
        same: Equal decisions, counter-offers included.
        quantities: Compared goal quantities, one per side and delivery day.
        same_quantities: Equal goal quantities.
        prices: Compared goal prices.
        price_gap: Sum of their distances over the market price.
    """

    threads: int = 0
    kinds: int = 0
    same: int = 0
    quantities: int = 0
    same_quantities: int = 0
    prices: int = 0
    price_gap: float = 0.0

    def add_decisions(self, ours: Mapping[str, Decision], theirs: Mapping[str, Decision]) -> None:
        """Add the comparison of a round."""
        for partner, decision in theirs.items():
            self.threads += 1
            self.kinds += ours[partner].kind == decision.kind
            self.same += ours[partner] == decision

    def add_goals(self, obs: Observation, ours: Goals | None, theirs: Goals | None) -> None:
        """Add the comparison of goals; nothing is added if either side has none."""
        if ours is None or theirs is None:
            return
        for name in ("q_buy", "q_sell"):
            both = list(zip(getattr(ours, name), getattr(theirs, name), strict=True))
            self.quantities += len(both)
            self.same_quantities += sum(own == other for own, other in both)
        for name, market in (("p_buy", obs.price_in), ("p_sell", obs.price_out)):
            for own, other in zip(getattr(ours, name), getattr(theirs, name), strict=True):
                if isfinite(own) and isfinite(other):
                    self.prices += 1
                    self.price_gap += abs(own - other) / max(market, 1.0)


class ShadowedAgent(LitaOnline):
    """The teacher in play, with shadows that decide in the same situations.

    Args:
        *args: Passed to scml.
        shadows: Files of weights by name.
        **kwargs: As for `LitaOnline`; ``weights`` are the teacher's.

    Attributes:
        agreement: Agreement of each shadow with the teacher.
        requests: All requests.
        decisions: Number of decided rounds.
    """

    def __init__(self, *args: Any, shadows: Mapping[str, str], **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        super().__init__(*args, **kwargs)
        self._shadows = {name: (PolicySet.load(path), Residuals()) for name, path in shadows.items()}
        self.agreement = {name: Agreement() for name in shadows}
        self.requests: list[DecisionRequest] = []
        self.decisions = 0

    def _request(self, request: DecisionRequest, call: Call) -> None:
        self.requests.append(request)
        for policies, residuals in self._shadows.values():
            apply_action(residuals, request, policies.act(request))
        super()._request(request, call)

    def _request_actions(self, call: Call, offers: Mapping[str, Any], states: Mapping[str, Any]) -> None:
        super()._request_actions(call, offers, states)
        self.decisions += 1
        threads, obs = self._threads(offers, states), self.episode_log.days[-1].obs
        decided, goals = self._decide_as(self.residuals, threads)
        for name, (_, residuals) in self._shadows.items():
            others, other_goals = self._decide_as(residuals, threads)
            self.agreement[name].add_decisions(others, decided)
            self.agreement[name].add_goals(obs, other_goals, goals)

    def _decide_as(
        self, residuals: Residuals, threads: Sequence[ThreadObservation]
    ) -> tuple[dict[str, Decision], Goals | None]:
        """Return the decisions and goals of a copy of the brain with other residuals."""
        shared = {id(self.brain.obs): self.brain.obs}  # observations are immutable
        brain, own, layer = copy.deepcopy((self.brain, self.residuals, self._goal_layer), shared)
        own.day, own.threads, own.weights = residuals.day, residuals.threads, residuals.weights
        return brain.respond(list(threads)), layer.latest
