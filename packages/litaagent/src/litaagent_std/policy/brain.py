"""The brain: joins the layers and turns observations into decisions.

An agent gives it one `Observation` at the start of each day and the `ThreadObservation`s of every round, and notifies
it how threads ended. It does not depend on scml: offers are plain tuples. With ``keep_log`` it records why each
decision was taken (`DecisionRecord`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .l1.guard import Allowance, guard, wanted_plan
from .l1.risk import bounded_goals, purchase_cap, sale_caps
from .l1.safety import bounds, clip
from .l2.heuristic import HeuristicGoals
from .layers import NEUTRAL_ALPHA, CoordinationLayer, DecisionLayer, GoalLayer, Layers, Situation
from .memory import Memory
from .observation import Agenda, Calendar, Observation, Offer, ThreadObservation
from .parameters import Parameters, level_name
from .partners.types import PartnerTypes, shipped_types
from .plan import Bounds, Goals, Plan
from .side import Side

__all__ = ["Brain", "Decision", "DecisionRecord"]

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
        decision: Our decision.
        proposed: The proposal before the clip of L1.
        goals: L2's goals.
        bounds: L1's bounds.
        reservation: Our limit price for the delivery day of the offer received; None if there is no offer, or one
            outside the day's agenda.
        acceptance: Probability that the partner takes our proposal.
        alternatives: Other proposals within the goal, the best by expected revenue, with their probabilities.
        alpha: L4's weight of the thread; None when no learned L3 or L4 plays.
        types: Probability of each of `l3.ARCHETYPES` for the partner; None if there is no model of partners.
        urgency: Urgency of the side's goals for the delivery day of our proposal, or the greatest if there is none.
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
    alpha: float | None = None
    types: tuple[float, ...] | None = None
    urgency: float = 0.0


class _Planned(NamedTuple):
    """A side's plan, the proposals before L1's guard, and L4's weights."""

    plan: Plan
    proposed: Mapping[str, Offer | None]
    alpha: Mapping[str, float]


class Brain:
    """Decide for one factory in one world.

    Args:
        parameters: Tunable parameters; the level's overrides are applied on the first day.
        layers: Which version of each layer plays.
        keep_log: Whether to keep a `DecisionRecord` of every decision in `log`.
        goal_layer: Another L2, learned or the user's own.
        decision_layer: Another L3, which sees the heuristic plan.
        coordination_layer: Another L4, likewise.
        types: The network that names types of partners for ``l3="types"``; default: the one of the package.

    Raises:
        ValueError: If a layer is to be ``learned`` and none is given.
    """

    def __init__(
        self,
        parameters: Parameters | None = None,
        layers: Layers | None = None,
        *,
        keep_log: bool = False,
        goal_layer: GoalLayer | None = None,
        decision_layer: DecisionLayer | None = None,
        coordination_layer: CoordinationLayer | None = None,
        types: PartnerTypes | None = None,
    ) -> None:
        self._all_parameters = parameters or Parameters()
        self.layers = layers or Layers()
        self.keep_log = keep_log
        self.log: list[DecisionRecord] = []
        self.interventions = 0
        self._goal_layer, self._decision_layer, self._coordination_layer = (
            goal_layer,
            decision_layer,
            coordination_layer,
        )
        self._types = (types or shipped_types()) if self.layers.l3 == "types" else None
        given = {"l2": goal_layer, "l3": decision_layer, "l4": coordination_layer}
        for name in self.layers.learned:
            if given[name] is None:
                raise ValueError(f"{name}='learned' but no such layer is given; pass one, or weights that hold it")
        self._started = False

    def start_day(self, obs: Observation) -> None:
        """Start a day with its observation."""
        if not self._started:
            self._start_world(obs)
        self.obs = obs
        self.memory.start_day(obs)
        self._sides = (
            Side(obs, self.parameters, self.layers, self.memory, selling=False, types=self._types),
            Side(obs, self.parameters, self.layers, self.memory, selling=True, types=self._types),
        )

    def _start_world(self, obs: Observation) -> None:
        self._started = True
        self.parameters = self._all_parameters.at(level_name(obs.level, obs.n_levels))
        self.memory = Memory(
            obs.horizon + 1, assume_persistent=self.parameters.assume_persistent, rate=self.parameters.fill_rate
        )
        self._goals: GoalLayer = self._goal_layer or HeuristicGoals(self.parameters)

    def propose(self, threads: list[ThreadObservation]) -> dict[str, Offer | None]:
        """Return the first proposal of each thread; None where nothing should be offered."""
        return {partner: decision.offer for partner, decision in self._decide(threads).items()}

    def respond(self, threads: list[ThreadObservation]) -> dict[str, Decision]:
        """Decide on all offers of a round together."""
        return self._decide(threads)

    def contract(self, partner: str, *, buying: bool, offer: Offer) -> None:
        """Update beliefs and outstanding proposals after a thread ended in agreement."""
        self._sides[not buying].on_agreement(partner, offer)

    def thread_failed(self, partner: str) -> None:
        """Update beliefs and outstanding proposals after a thread ended without agreement."""
        for side in self._sides:
            side.on_failure(partner)

    def end_day(self, calendar: Calendar) -> None:
        """Remember the commitments with which the day goes into settlement."""
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
        goals = self._bounded(self._goals.goals(self.obs, calendar, limits, self.memory), calendar, limits)
        agenda = side.agenda
        if agenda is None:
            return {thread.partner: Decision("end") for thread in threads}
        side.on_counter_offers(threads)
        planned = self._plan(side, threads, agenda, limits, goals)
        plan, decisions = planned.plan, {}
        for thread in threads:
            decision = self._safe(thread, plan.accept, plan.offers.get(thread.partner), agenda, limits, side)
            decisions[thread.partner] = decision
            if self.keep_log:
                self._record(thread, decision, planned, goals, limits, side)
        side.commit(threads, {name: decision.offer for name, decision in decisions.items()})
        return decisions

    def _bounded(self, goals: Goals, calendar: Calendar, limits: Bounds) -> Goals:
        """Clip the goals of a layer that was plugged in to L1's bounds."""
        if self._goal_layer is None:
            return goals
        facts = (self.obs, calendar, limits, self.memory, self.parameters)
        return bounded_goals(goals, self.obs, sale_caps(*facts), purchase_cap(*facts))

    def _plan(
        self, side: Side, threads: list[ThreadObservation], agenda: Agenda, limits: Bounds, goals: Goals
    ) -> _Planned:
        """Make the heuristic plan, and let the layers that are plugged in revise it under L1's guard."""
        budgets = list(side.budgets)
        plan = side.plan(threads, limits, goals)
        if self._decision_layer is None and self._coordination_layer is None:
            return _Planned(plan, plan.offers, {})
        risked, side.budgets = side.budgets, budgets  # only the final plan consumes the risk budget
        baseline = side.baseline_plan(threads, limits, goals)
        situation = Situation(
            self.obs,
            tuple(threads),
            side.selling,
            agenda,
            goals,
            limits,
            side.outstanding,
            self.memory,
            plan,
            baseline,
        )
        wanted, alpha = self._wanted(side, situation)
        if wanted == plan:  # the heuristic plan keeps to L1's bounds by itself, and the guard is stricter than they are
            side.budgets = risked
            return _Planned(plan, plan.offers, alpha)
        safe = guard(situation, wanted, self._allowance(side, situation))
        self.interventions += sum(
            (thread.partner in wanted.accept) != (thread.partner in safe.accept)
            or (thread.partner not in safe.accept and wanted.offers.get(thread.partner) != safe.offers[thread.partner])
            for thread in threads
        )
        return _Planned(safe, wanted.offers, alpha)

    def _wanted(self, side: Side, situation: Situation) -> tuple[Plan, Mapping[str, float]]:
        """Return the plan of L3 and L4, and L4's weights: α from L4, actions from L3, joint acceptance from L4."""
        l3, l4 = self._decision_layer, self._coordination_layer
        alpha = {thread.partner: NEUTRAL_ALPHA for thread in situation.threads}
        alpha |= {} if l4 is None else l4.weigh(situation)
        wanted = wanted_plan(situation, {} if l3 is None else l3.decide(situation, alpha))
        if l4 is None:
            return wanted, alpha
        offered = {thread.partner for thread in situation.threads if thread.offer is not None}
        accept = frozenset(l4.accept(situation, wanted.accept) & offered)
        left = [thread for thread in situation.threads if thread.partner in wanted.accept - accept]
        return Plan(accept, {**wanted.offers, **side.baseline_proposals(left, situation.goals)}), alpha

    def _allowance(self, side: Side, situation: Situation) -> Allowance:
        facts = (self.obs, situation.threads[0].calendar, situation.bounds, self.memory, self.parameters)
        leads = len(situation.bounds.lines)
        if side.selling:
            caps, total = sale_caps(*facts), None
        else:
            total = min(situation.bounds.buy, max(purchase_cap(*facts), *situation.goals.q_buy))
            caps = (total,) * leads
        return Allowance(caps, total, side.excess_cost(situation.agenda.price_max), side.budgets, side.acceptance)

    def _safe(
        self,
        thread: ThreadObservation,
        accept: frozenset[str],
        proposed: Offer | None,
        agenda: Agenda,
        limits: Bounds,
        side: Side,
    ) -> Decision:
        """Pass one decision through L1's clip, as every decision that leaves the agent."""
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
        planned: _Planned,
        goals: Goals,
        limits: Bounds,
        side: Side,
    ) -> None:
        offer = decision.offer if decision.kind == "reject" else None
        reservation = None
        if thread.offer is not None and side.agenda is not None and side.agenda.legal(thread.offer):
            reservation = side.reservation(thread, thread.offer, goals)
        types = side.types(thread.partner)
        self.log.append(
            DecisionRecord(
                day=self.obs.day,
                round=thread.round,
                partner=thread.partner,
                buying=thread.buying,
                received=thread.offer,
                decision=decision,
                proposed=planned.proposed.get(thread.partner),
                goals=goals,
                bounds=limits,
                reservation=reservation,
                acceptance=None if offer is None else side.acceptance(thread, offer),
                alternatives=side.alternatives(thread, goals, offer, 3),
                alpha=planned.alpha.get(thread.partner),
                types=None if types is None else tuple(types.tolist()),
                urgency=_urgency(goals, side.selling, None if offer is None else offer.time - self.obs.day),
            )
        )


def _urgency(goals: Goals, selling: bool, lead: int | None) -> float:
    """Return a side's urgency for a lead, or its greatest."""
    urgency = goals.urgency(selling=selling)
    if urgency is None:
        return 0.0
    return max(urgency) if lead is None else urgency[lead]
