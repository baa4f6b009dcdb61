"""The protocols behind which versions of L2, L3 and L4 are exchanged, for batches and for one factory.

In each round the brain makes a plan for each side from the heuristics and passes it, with everything it was made from
(`SituationBatch`), to the layers that were plugged in: L2 sets the goals beforehand, L4 gives each thread a weight α,
L3 decides each thread, L4 chooses which offers to accept together. All of it passes through L1 afterwards
(`l1.guard`), so a layer may return anything. A layer that needs the threads of both sides at once, for one call of its
network, is also a `RoundLayer`.

A layer may be written for one factory (`GoalLayer`, `DecisionLayer`, `CoordinationLayer` on a `Situation`); `adaptors`
calls it for each factory of a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ..arrays import Bools, Floats, Ints
from ..columns import Batch, CalendarBatch, Histories, ObservationBatch, ThreadBatch
from ..memory import MemoryBatch, MemoryRow
from ..observation import Agenda, Calendar, Observation, Offer, ThreadObservation
from ..parameters import ParameterColumns
from ..plan import Bounds, BoundsBatch, Goals, GoalsBatch, Plan, PlanBatch

if TYPE_CHECKING:
    from ..partners.types import PartnerTypes

__all__ = [
    "ACCEPT",
    "COUNTER",
    "DEFAULT_L3",
    "END",
    "KEEP",
    "NEUTRAL_ALPHA",
    "Action",
    "ActionBatch",
    "BatchCoordination",
    "BatchDecisions",
    "BatchGoals",
    "CoordinationLayer",
    "DayBatch",
    "DecisionLayer",
    "GoalLayer",
    "LayerSet",
    "Layers",
    "RoundBatch",
    "RoundLayer",
    "Situation",
    "SituationBatch",
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

KEEP: Final = 0
ACCEPT: Final = 1
COUNTER: Final = 2
END: Final = 3
"""Codes of `ActionBatch.kind`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Layers:
    """Which version of each layer plays.

    Attributes:
        l2: ``heuristic`` or ``learned``.
        l3: ``baseline`` (concession over time), ``model`` (acceptance model), ``types`` (the same model, with types of
            partners named by a trained network) or ``learned`` (residuals on the latter).
        l4: ``greedy`` (offers by price, nothing offered twice), ``joint`` (knapsack, overbooking) or ``learned``
            (weights on top of joint).
    """

    l2: str = "heuristic"
    l3: str = DEFAULT_L3
    l4: str = "joint"

    def __post_init__(self) -> None:
        for name, allowed in _VERSIONS.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r} does not exist; choose from {allowed}")

    @property
    def typed(self) -> bool:
        """Whether a network names types of partners."""
        return self.l3 in ("types", "learned")

    @property
    def learned(self) -> tuple[str, ...]:
        """Names of the layers that are learned."""
        return tuple(name for name in _VERSIONS if getattr(self, name) == "learned")


@dataclass(frozen=True, slots=True, eq=False)
class DayBatch:
    """B factories' days at this moment: what L2 sees.

    Attributes:
        obs: The observations of the day's start.
        calendar: Commitments of this moment.
        bounds: L1's bounds of this moment.
        memory: Statistics across days.
        parameters: The parameters of the heuristics.
        live: The same observations as a live agent made them; layers that are written for one factory see these.
        calendars: The same calendars.
        seats: The factories as the brain numbers them, ``[B]``.
    """

    obs: ObservationBatch
    calendar: CalendarBatch
    bounds: BoundsBatch
    memory: MemoryBatch
    parameters: ParameterColumns
    live: Sequence[Observation] = ()
    calendars: Sequence[Calendar] = ()
    seats: Ints = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class RoundBatch:
    """A round of S factories with M threads, those of both sides, before any of them is decided.

    Attributes:
        day: The factories' days; `DayBatch.seats` tells which they are.
        goals: L2's goals, already bounded by L1, S rows.
        threads: The threads; their seats are rows of `day`.
        histories: The offers made in them so far.
    """

    day: DayBatch
    goals: GoalsBatch
    threads: ThreadBatch
    histories: Histories


@dataclass(slots=True, eq=False)
class SituationBatch:
    """One side's round of S factories with M threads, at the moment of their decisions.

    Attributes:
        selling: Which side this is.
        seats: The factories as the brain numbers them, ``[S]``.
        day: Their days, S rows.
        goals: L2's goals, already bounded by L1, S rows.
        agenda: Legal ranges of the side, ``[S, 6]``.
        threads: The threads; their seats are rows of what is above.
        pending: Whether each partner has a proposal of ours that is not answered yet, ``[S, P]``.
        outstanding: These proposals, ``[S, P, 3]``.
        plan: What the heuristic layers would do, M rows.
        baseline: What L1's baseline would do, without a model of partners and without joint acceptance, M rows.
        rows: The threads as a live agent made them; layers that are written for one factory see these.
        index: Rows of the threads among those of the round (`RoundBatch`), ``[M]``.
        alpha: L4's weights, ``[M]``; None if there is no layer that returns them, or before it did.
    """

    selling: bool
    seats: Ints
    day: DayBatch
    goals: GoalsBatch
    agenda: Ints
    threads: ThreadBatch
    pending: Bools
    outstanding: Ints
    plan: PlanBatch | None = None
    baseline: PlanBatch | None = None
    rows: Sequence[ThreadObservation] = ()
    index: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    alpha: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ActionBatch(Batch):
    """L3's actions in M threads.

    Attributes:
        kind: `KEEP` the heuristic plan, `ACCEPT`, `COUNTER` or `END`, ``[M]``.
        offer: Counter-offers, which need not be legal: quantity, delivery day, unit price, ``[M, 3]``.
    """

    kind: Ints
    offer: Ints


@runtime_checkable
class BatchGoals(Protocol):
    """Any version of L2."""

    def goals_of(self, day: DayBatch) -> GoalsBatch:
        """Set the goals from the day's observations and the commitments of this moment.

        Goals are kept until something is agreed, so a layer is not asked in every round.
        """


@runtime_checkable
class BatchDecisions(Protocol):
    """Any version of L3 that revises the heuristic plan."""

    def decide_all(self, situation: SituationBatch, alpha: Floats) -> ActionBatch:
        """Decide the threads of a round, given L4's weights ``[M]``."""


@runtime_checkable
class BatchCoordination(Protocol):
    """Any version of L4 that revises the heuristic plan."""

    def weigh_all(self, situation: SituationBatch) -> Floats:
        """Return α of each thread, before L3 decides, ``[M]``: 1 is neutral.

        α scales the thread's concession and L3's residual, and threads of greater α are proposed to first.
        """

    def accept_all(self, situation: SituationBatch, wanted: Bools) -> Bools:
        """Return the offers that are accepted together, given those that L3 (or the plan) wants, ``[M]`` each."""


@runtime_checkable
class RoundLayer(Protocol):
    """A version of L3 or L4 that sees all threads of a round before it is asked about either side."""

    def start_round(self, round_batch: RoundBatch) -> None:
        """Take the round; afterwards `SituationBatch.index` tells which of its threads a side's decisions are for."""


@dataclass(frozen=True, slots=True)
class Situation:
    """One factory's side of a round, at the moment of its decisions.

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
    memory: MemoryRow
    plan: Plan
    baseline: Plan


class Action(NamedTuple):
    """L3's action in one thread.

    ``keep`` leaves the heuristic plan as it is, ``counter`` carries an offer, which need not be legal.
    """

    kind: Literal["keep", "accept", "counter", "end"]
    offer: Offer | None = None


class GoalLayer(Protocol):
    """An L2 for one factory."""

    def goals(self, obs: Observation, calendar: Calendar, limits: Bounds, memory: MemoryRow) -> Goals:
        """Set the goals from the day's observation and the commitments of this moment.

        Args:
            obs: The observation of the day's start.
            calendar: The commitments.
            limits: L1's bounds.
            memory: What the agent remembers across days; `l2.HeuristicGoals` sets the heuristic's goals from it.
        """


class DecisionLayer(Protocol):
    """An L3 for one factory."""

    def decide(self, situation: Situation, alpha: Mapping[str, float]) -> Mapping[str, Action]:
        """Decide the threads of a round.

        Args:
            situation: The round.
            alpha: L4's weight of each thread; `NEUTRAL_ALPHA` if L4 is not learned.

        Returns:
            An action by partner; partners that are missing keep the plan.
        """


class CoordinationLayer(Protocol):
    """An L4 for one factory."""

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
    """Learned layers and types as `learned.load_layers` returns them; None for what the weights do not hold.

    Attributes:
        goal: L2.
        decision: L3.
        coordination: L4.
        types: The network that names types of partners.
        base: Settings of the agent whose decisions the layers change (``l3``, ``parameters``); default: its own.
    """

    goal: GoalLayer | BatchGoals | None = None
    decision: DecisionLayer | BatchDecisions | None = None
    coordination: CoordinationLayer | BatchCoordination | None = None
    types: PartnerTypes | None = None
    base: Mapping[str, Any] = field(default_factory=dict)


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
