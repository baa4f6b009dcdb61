"""The protocols behind which heuristic and learned versions of L2, L3 and L4 are exchanged.

In each round the brain makes a plan for each side from the heuristics and passes it, with everything it was made from
(`Situation`), to the layers that were plugged in: L2 sets the goals beforehand, L4 gives each thread a weight α, L3
decides each thread, L4 chooses which offers to accept together. All of it passes through L1 afterwards (`l1.guard`),
so a layer may return anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from .memory import Memory
from .observation import Agenda, Calendar, Observation, Offer, ThreadObservation
from .plan import Bounds, Goals, Plan

if TYPE_CHECKING:
    from .partners.types import PartnerTypes

__all__ = [
    "DEFAULT_L3",
    "NEUTRAL_ALPHA",
    "Action",
    "CoordinationLayer",
    "DecisionLayer",
    "GoalLayer",
    "LayerSet",
    "Layers",
    "Situation",
    "residual",
]

DEFAULT_L3: Final = "types"
"""Version of L3 that plays if none is named."""

_VERSIONS: Final = {
    "l2": ("heuristic", "learned"),
    "l3": ("baseline", "model", "types", "learned"),
    "l4": ("greedy", "joint", "learned"),
}

NEUTRAL_ALPHA: Final = 1.0
"""Weight of a thread for which no coordination layer returns one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Layers:
    """Which version of each layer plays.

    Attributes:
        l2: ``heuristic`` or ``learned``.
        l3: ``baseline`` (concession over time), ``model`` (acceptance model), ``types`` (the same model, with types of
            partners named by a trained network) or ``learned`` (on top of the model).
        l4: ``greedy`` (offers by price, nothing offered twice), ``joint`` (knapsack, overbooking) or ``learned``
            (on top of joint).
    """

    l2: str = "heuristic"
    l3: str = DEFAULT_L3
    l4: str = "joint"

    def __post_init__(self) -> None:
        for name, allowed in _VERSIONS.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r} does not exist; choose from {allowed}")

    @property
    def learned(self) -> tuple[str, ...]:
        """Names of the layers that are learned."""
        return tuple(name for name in _VERSIONS if getattr(self, name) == "learned")


@dataclass(frozen=True, slots=True)
class Situation:
    """One side's round, at the moment of its decisions.

    Attributes:
        obs: The observation of the day's start; the same object all day.
        threads: The side's threads of this round.
        selling: Which side this is.
        agenda: The side's legal range of offers.
        goals: L2's goals, already bounded by L1.
        bounds: L1's bounds at this moment.
        outstanding: Our proposals in other threads that are not answered yet.
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
    """L3's action in one thread.

    ``keep`` leaves the heuristic plan as it is, ``counter`` carries an offer, which need not be legal.
    """

    kind: Literal["keep", "accept", "counter", "end"]
    offer: Offer | None = None


class GoalLayer(Protocol):
    """Any version of L2."""

    def goals(self, obs: Observation, calendar: Calendar, limits: Bounds, memory: Memory) -> Goals:
        """Set the goals from the day's observation and the commitments of this moment."""


class DecisionLayer(Protocol):
    """Any learned version of L3."""

    def decide(self, situation: Situation, alpha: Mapping[str, float]) -> Mapping[str, Action]:
        """Decide the threads of a round.

        Args:
            situation: The round.
            alpha: L4's weight of each thread; `NEUTRAL_ALPHA` if L4 is not learned.

        Returns:
            An action by partner; partners that are missing keep the plan.
        """


class CoordinationLayer(Protocol):
    """Any learned version of L4."""

    def weigh(self, situation: Situation) -> Mapping[str, float]:
        """Return α of each thread, before L3 decides: how far L3 may depart from the baseline.

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
    """Learned layers and types as `learned.load_layers` returns them; None for what the weights do not hold."""

    goal: GoalLayer | None = None
    decision: DecisionLayer | None = None
    coordination: CoordinationLayer | None = None
    types: PartnerTypes | None = None


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
