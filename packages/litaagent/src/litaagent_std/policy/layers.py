"""What a layer sees and says: the protocols behind which heuristic and learned versions are exchanged.

Each round the brain makes a plan for each side from the heuristics (`Plan`) and shows it, with everything it was
made from, to the layers that were plugged in (`Situation`): L2 sets the goals beforehand, L4 gives each thread a
weight α, L3 says what to do in each thread, L4 says which offers to accept together. What they say passes
through L1 afterwards (`l1_guard`), so a layer may say anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Final, Literal, NamedTuple, Protocol

from .l1.safety import Bounds
from .l2.heuristic import GoalLayer, Goals
from .memory import Memory
from .observation import Agenda, Observation, Offer, ThreadObservation

__all__ = [
    "NEUTRAL_ALPHA",
    "Action",
    "CoordinationLayer",
    "DecisionLayer",
    "GoalLayer",
    "LayerSet",
    "Plan",
    "Situation",
    "residual",
]

NEUTRAL_ALPHA: Final = 1.0
"""Weight of a thread that no coordination layer speaks about."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Partners whose offers are accepted, and the proposals for the others (None ends the thread)."""

    accept: frozenset[str]
    offers: Mapping[str, Offer | None]


@dataclass(frozen=True, slots=True)
class Situation:
    """One side's round, at the moment of its decisions.

    Attributes:
        obs: The morning's observation; the same object all day.
        threads: The side's threads of this round.
        selling: Which side this is.
        agenda: The side's legal range of offers.
        goals: L2's goals, already bounded by L1.
        bounds: L1's bounds at this moment.
        outstanding: Our proposals that are on the tables of other threads.
        memory: What the agent remembers across days.
        plan: What the heuristic layers would do.
        baseline: What L1's baseline would do, without a model of partners and without joint acceptance.
    """

    obs: Observation
    threads: tuple[ThreadObservation, ...]
    selling: bool
    agenda: Agenda
    goals: Goals
    bounds: Bounds
    outstanding: Mapping[str, Offer]
    memory: Memory
    plan: Plan
    baseline: Plan


class Action(NamedTuple):
    """What L3 wants in one thread.

    ``keep`` leaves the heuristic plan as it is, ``counter`` carries an offer, which need not be legal.
    """

    kind: Literal["keep", "accept", "counter", "end"]
    offer: Offer | None = None


class DecisionLayer(Protocol):
    """Any learned version of L3."""

    def decide(self, situation: Situation, alpha: Mapping[str, float]) -> Mapping[str, Action]:
        """Decides the threads of a round.

        Args:
            situation: The round.
            alpha: L4's weight of each thread; `NEUTRAL_ALPHA` without a learned L4.

        Returns:
            An action by partner; partners that are missing keep the plan.
        """


class CoordinationLayer(Protocol):
    """Any learned version of L4."""

    def weigh(self, situation: Situation) -> Mapping[str, float]:
        """Return α of each thread, before L3 decides: how far L3 may go from the baseline.

        Partners that are missing get `NEUTRAL_ALPHA`.
        """

    def accept(self, situation: Situation, wanted: frozenset[str]) -> frozenset[str]:
        """Return the partners whose offers are accepted together.

        Args:
            situation: The round.
            wanted: Partners whose offers L3 (or the plan) wants to accept.
        """


@dataclass(frozen=True, slots=True)
class LayerSet:
    """Learned layers as `inference.load_layers` returns them; None where the weights hold none."""

    goal: GoalLayer | None = None
    decision: DecisionLayer | None = None
    coordination: CoordinationLayer | None = None


def residual(base: Offer, change: tuple[float, float, float], alpha: float = NEUTRAL_ALPHA) -> Offer:
    """Return an offer moved by a learned residual, rounded to whole numbers and not yet clipped.

    Args:
        base: The offer that the residual refers to, as a rule the one of `Situation.baseline`.
        change: Residuals of quantity, delivery day and unit price, in their own units.
        alpha: Share of the residual that is applied; 0 gives the base itself.

    Raises:
        ValueError: If a residual is not finite.
    """
    if not all(isfinite(alpha * part) for part in change):
        raise ValueError(f"residual {change} with alpha={alpha} is not finite; check the weights that gave it")
    quantity, time, price = (round(value + alpha * part) for value, part in zip(base, change, strict=True))
    return Offer(quantity, time, price)
