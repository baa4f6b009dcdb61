"""Decisions of other networks in every situation of the teacher.

At each decision the teacher's brain is copied once per compared set of networks, and each copy decides with its own;
the teacher's own decision is played. So decisions are compared in the same situation, with all of L1 to L4, and never
between two worlds that have diverged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.hrl_xf.online.hierarchy.policies import LAYERS, Hierarchy
from litaagent_std.policy.brain import Decision
from litaagent_std.policy.networks.exploration import Exploration
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


class ShadowedAgent(LitaAgentHRL):
    """The teacher in play, with shadows that decide in the same situations.

    Args:
        *args: Passed to scml.
        teacher: Folder of the teacher's weights.
        shadows: Folders of other weights by name; None is the heuristic agent.
        **kwargs: As for `LitaAgentHRL`.

    Attributes:
        agreement: Agreement of each shadow with the teacher.
        decisions: Number of decided rounds.
        asked: What the teacher's networks were asked.
    """

    def __init__(self, *args: Any, teacher: str, shadows: Mapping[str, str | None], **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        networks = Hierarchy.load(teacher)
        self.asked = Exploration([None])  # keeps the inputs, and explores nothing
        layers = replace(networks, learning=LAYERS).layers(self.asked)
        super().__init__(
            *args,
            goal_layer=layers.goal,
            decision_layer=layers.decision,
            coordination_layer=layers.coordination,
            **{**networks.base, **kwargs},
        )
        self._shadows = {name: Hierarchy() if path is None else Hierarchy.load(path) for name, path in shadows.items()}
        self.agreement = {name: Agreement() for name in shadows}
        self.decisions = 0

    def _decide(self, threads: Sequence[ThreadObservation]) -> dict[str, Decision]:
        if not threads:
            return super()._decide(threads)
        self.decisions += 1
        others = {}
        for name, networks in self._shadows.items():
            brain = self.brain.copy_with(networks.layers())
            others[name] = brain.respond(threads), brain.goals
        decided = super()._decide(threads)
        for name, (decisions, goals) in others.items():
            self.agreement[name].add_decisions(decisions, decided)
            self.agreement[name].add_goals(self.brain.obs, goals, self.brain.goals)
        return decided
