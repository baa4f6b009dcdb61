"""The brain: joins the layers and turns observations into decisions.

A shell feeds it one `Observation` each morning and the `ThreadObservation`s of every round, and tells it how
threads ended. It never sees scml: offers come and go as plain tuples. With ``keep_log`` it writes down why
each decision was taken (`DecisionRecord`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from .l1_safety import Bounds, bounds, clip
from .l2_goals import GoalLayer, Goals, HeuristicGoals
from .memory import Memory
from .observation import Agenda, Calendar, Observation, Offer, ThreadObservation
from .parameters import Parameters, level_name
from .side import Side

L2: Final = ("heuristic",)
L3: Final = ("baseline", "model")
L4: Final = ("greedy", "joint")

Kind = Literal["accept", "reject", "end"]


class Decision(NamedTuple):
    """A thread's decision; a rejection carries the counter-offer."""

    kind: Kind
    offer: Offer | None = None


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """Why a decision was taken.

    Attributes:
        day: Today.
        round: The thread's round.
        partner: The partner.
        buying: Whether we buy.
        received: The partner's offer, if any.
        decision: What we did.
        proposed: The proposal before the clip of L1.
        goals: L2's goals.
        bounds: L1's bounds.
        reservation: Our limit price for the delivery day of the offer received.
        acceptance: Probability that the partner takes our proposal.
        alternatives: The next best proposals with their probabilities.
    """

    day: int
    round: int
    partner: str
    buying: bool
    received: Offer | None
    decision: Decision
    proposed: Offer | None
    goals: Goals
    bounds: Bounds
    reservation: float | None
    acceptance: float | None
    alternatives: tuple[tuple[Offer, float], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Layers:
    """Which version of each layer plays.

    Attributes:
        l2: ``heuristic``.
        l3: ``baseline`` (concession over time) or ``model`` (acceptance model).
        l4: ``greedy`` (offers by price, nothing offered twice) or ``joint`` (knapsack, overbooking).
    """

    l2: str = "heuristic"
    l3: str = "model"
    l4: str = "joint"

    def __post_init__(self) -> None:
        for name, allowed in (("l2", L2), ("l3", L3), ("l4", L4)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r} does not exist; choose from {allowed}")


class Brain:
    """Decides for one factory in one world.

    Args:
        parameters: Tunable numbers; the level's overrides are applied on the first day.
        layers: Which version of each layer plays.
        keep_log: Whether to keep a `DecisionRecord` of every decision in `log`.
        goal_layer: Another L2, for experiments and trained goals.
    """

    def __init__(
        self,
        parameters: Parameters | None = None,
        layers: Layers | None = None,
        *,
        keep_log: bool = False,
        goal_layer: GoalLayer | None = None,
    ) -> None:
        self._all_parameters = parameters or Parameters()
        self.layers = layers or Layers()
        self.keep_log = keep_log
        self.log: list[DecisionRecord] = []
        self.interventions = 0
        self._goal_layer = goal_layer
        self._started = False

    def start_day(self, obs: Observation) -> None:
        """Takes the morning's observation in."""
        if not self._started:
            self._start_world(obs)
        self.obs = obs
        self.memory.start_day(obs)
        self._sides = (
            Side(obs, self.parameters, self.layers, self.memory, selling=False),
            Side(obs, self.parameters, self.layers, self.memory, selling=True),
        )

    def _start_world(self, obs: Observation) -> None:
        self._started = True
        self.parameters = self._all_parameters.at(level_name(obs.level, obs.n_levels))
        self.memory = Memory(
            obs.horizon + 1, assume_persistent=self.parameters.assume_persistent, rate=self.parameters.fill_rate
        )
        self._goals: GoalLayer = self._goal_layer or HeuristicGoals(self.parameters)

    def propose(self, threads: list[ThreadObservation]) -> dict[str, Offer | None]:
        """Returns the first proposal of each thread; None where nothing should be offered."""
        return {partner: decision.offer for partner, decision in self._decide(threads).items()}

    def respond(self, threads: list[ThreadObservation]) -> dict[str, Decision]:
        """Decides on all offers of a round together."""
        return self._decide(threads)

    def contract(self, partner: str, *, buying: bool, offer: Offer) -> None:
        """Hears that a thread ended in agreement."""
        self._sides[not buying].agreed(partner, offer)

    def thread_failed(self, partner: str) -> None:
        """Hears that a thread ended without agreement."""
        for side in self._sides:
            side.failed(partner)

    def end_day(self, calendar: Calendar) -> None:
        """Hears the commitments with which the day goes into settlement."""
        self.memory.note_calendar(calendar)

    def _decide(self, threads: list[ThreadObservation]) -> dict[str, Decision]:
        decisions: dict[str, Decision] = {}
        for side in self._sides:
            mine = [thread for thread in threads if thread.buying != side.selling]
            if mine:
                decisions |= self._decide_side(side, mine)
        return decisions

    def _decide_side(self, side: Side, threads: list[ThreadObservation]) -> dict[str, Decision]:
        calendar = threads[0].calendar
        limits = bounds(self.obs, calendar, self.memory.regime)
        goals = self._goals.goals(self.obs, calendar, limits, self.memory)
        agenda = side.agenda
        if agenda is None:
            return {thread.partner: Decision("end") for thread in threads}
        side.answered(threads)
        plan = side.plan(threads, limits, goals)
        decisions = {}
        for thread in threads:
            decision = self._safe(thread, plan.accept, plan.offers.get(thread.partner), agenda, limits, side)
            decisions[thread.partner] = decision
            if self.keep_log:
                self._record(thread, decision, plan.offers.get(thread.partner), goals, limits, side)
        side.commit(threads, {name: decision.offer for name, decision in decisions.items()})
        return decisions

    def _safe(
        self,
        thread: ThreadObservation,
        accept: frozenset[str],
        proposed: Offer | None,
        agenda: Agenda,
        limits: Bounds,
        side: Side,
    ) -> Decision:
        """Passes one decision through L1's clip; nothing leaves the agent otherwise."""
        if thread.partner in accept:
            return Decision("accept", thread.offer)
        if proposed is None:
            return Decision("end")
        most = limits.lines[proposed.time - self.obs.day] if side.selling else limits.buy
        clipped = clip(proposed, agenda, most)
        if clipped != proposed:
            self.interventions += 1
        return Decision("end") if clipped is None else Decision("reject", clipped)

    def _record(
        self,
        thread: ThreadObservation,
        decision: Decision,
        proposed: Offer | None,
        goals: Goals,
        limits: Bounds,
        side: Side,
    ) -> None:
        offer = decision.offer if decision.kind == "reject" else None
        self.log.append(
            DecisionRecord(
                day=self.obs.day,
                round=thread.round,
                partner=thread.partner,
                buying=thread.buying,
                received=thread.offer,
                decision=decision,
                proposed=proposed,
                goals=goals,
                bounds=limits,
                reservation=None if thread.offer is None else side.reservation(thread, thread.offer, goals),
                acceptance=None if offer is None else side.acceptance(thread, offer),
                alternatives=side.alternatives(thread, 3),
            )
        )
