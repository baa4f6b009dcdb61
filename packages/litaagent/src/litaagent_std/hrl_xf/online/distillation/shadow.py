"""Decisions of other policies in every situation of the teacher.

At each decision the teacher's brain is copied once per compared policy, and each copy decides with the residuals of its
own policy; the teacher's own decision is played. So decisions are compared in the same situation, with all of L1
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
from litaagent_std.agents.online.seat import DayRequests, RoundRequests
from litaagent_std.policy.arrays import Floats32
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

    def add_goals(self, obs: Observation, ours: Goals, theirs: Goals) -> None:
        """Add the comparison of goals."""
        for name in ("q_buy", "q_sell"):
            both = list(zip(getattr(ours, name), getattr(theirs, name), strict=True))
            self.quantities += len(both)
            self.same_quantities += sum(own == other for own, other in both)
        for name, market in (("p_buy", obs.price_in), ("p_sell", obs.price_out)):
            for own, other in zip(getattr(ours, name), getattr(theirs, name), strict=True):
                if isfinite(own) and isfinite(other):
                    self.prices += 1
                    self.price_gap += abs(own - other) / max(market, 1.0)


class _RequestLog:
    """A policy that keeps what it is asked.

    Args:
        policy: The policy that acts.
    """

    def __init__(self, policy: PolicySet) -> None:
        self._policy = policy
        self.requests: list[DayRequests | RoundRequests] = []

    def act_days(self, requests: DayRequests) -> Floats32:
        """Keep the requests and act; see `SteeringPolicy`."""
        self.requests.append(requests)
        return self._policy.act_days(requests)

    def act_rounds(self, requests: RoundRequests) -> Floats32:
        """Keep the requests and act; see `SteeringPolicy`."""
        self.requests.append(requests)
        return self._policy.act_rounds(requests)


class ShadowedAgent(LitaOnline):
    """The teacher in play, with shadows that decide in the same situations.

    Args:
        *args: Passed to scml.
        shadows: Files of weights by name.
        **kwargs: As for `LitaOnline`; ``weights`` are the teacher's.

    Attributes:
        agreement: Agreement of each shadow with the teacher.
        decisions: Number of decided rounds.
    """

    def __init__(self, *args: Any, shadows: Mapping[str, str], **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        super().__init__(*args, **kwargs)
        assert isinstance(self.layers.policy, PolicySet)  # as `LitaOnline` makes it
        self._log = self.layers.policy = _RequestLog(self.layers.policy)
        self._shadows = {name: PolicySet.load(path) for name, path in shadows.items()}
        self.agreement = {name: Agreement() for name in shadows}
        self.decisions = 0

    @property
    def requests(self) -> Sequence[DayRequests | RoundRequests]:
        """All requests of the teacher."""
        return self._log.requests

    def _decide(self, threads: Sequence[ThreadObservation]) -> dict[str, Decision]:
        if not threads:
            return super()._decide(threads)
        self.decisions += 1
        others = {name: self._decide_as(policy, threads) for name, policy in self._shadows.items()}
        decided = super()._decide(threads)
        for name, (decisions, goals) in others.items():
            self.agreement[name].add_decisions(decisions, decided)
            self.agreement[name].add_goals(self.brain.obs, goals, self.brain.goals)
        return decided

    def _decide_as(self, policy: PolicySet, threads: Sequence[ThreadObservation]) -> tuple[dict[str, Decision], Goals]:
        """Return the decisions and goals of a copy of the brain with another policy."""
        shared = {id(kept): kept for kept in (self.brain.obs, self.layers.policy)}  # neither is changed
        brain, layers = copy.deepcopy((self.brain, self.layers), shared)
        layers.policy = policy
        layers.restart_day()
        return brain.respond(threads), brain.goals
