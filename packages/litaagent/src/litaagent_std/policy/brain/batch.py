"""The brain of n factories: joins the layers and turns columns of observations into decisions.

With ``keep_log`` a `DecisionRecord` tells why each decision was taken.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Array, Bools, Floats, Ints, true_rows
from ..columns import (
    BUY,
    SELL,
    CalendarBatch,
    Histories,
    ObservationBatch,
    ThreadBatch,
    ranks,
)
from ..l1.baseline import baseline_proposals
from ..l1.guard import Allowance, guard, wanted_plan
from ..l1.risk import bounded_goals, purchase_cap, sale_caps
from ..l1.safety import bounds, clip, legal
from ..l2.heuristic import heuristic_goals
from ..l4.heuristic import Subsets, accept_offers, excess_cost
from ..l4.spread import spread
from ..l4.view import SideView, free_room
from ..layers import (
    ACCEPT,
    KEEP,
    NEUTRAL_ALPHA,
    ActionBatch,
    BatchCoordination,
    BatchDecisions,
    BatchGoals,
    DayBatch,
    Layers,
    RoundBatch,
    RoundLayer,
    SituationBatch,
)
from ..memory import Memory
from ..observation import Calendar, Observation, Offer, ThreadObservation
from ..parameters import ParameterColumns, Parameters, level_name
from ..partners.types import PartnerTypes
from ..plan import GoalsBatch, PlanBatch, best_subsets, greedy_subsets
from .reasons import DecisionRecord, record_round
from .sides import Side

__all__ = ["BatchBrain", "End"]

End = tuple[int, int, int, Offer | None]
"""The end of a thread: its factory, its side, the index of its partner, and the agreement if there is one."""


class BatchBrain:
    """Decide for n factories, each in its world.

    Args:
        obs: Observations of their first days, n rows.
        parameters: Of each factory, its level's overrides not yet applied.
        layers: Which version of each layer plays.
        goal_layer: Another L2, learned or the user's own.
        decision_layer: Another L3, which sees the heuristic plan.
        coordination_layer: Another L4, likewise.
        types: The network that names types of partners for ``l3="types"``.
        keep_log: Whether to keep a `DecisionRecord` of every decision in `log`.

    Attributes:
        parameters: The parameters at the factories' levels, n rows.
        goals: L2's latest goals of each factory, before L1's bounds, n rows; zeros before the first.
        interventions: How often L1 changed a decision.
    """

    def __init__(
        self,
        obs: ObservationBatch,
        parameters: Sequence[Parameters],
        layers: Layers,
        *,
        goal_layer: BatchGoals | None = None,
        decision_layer: BatchDecisions | None = None,
        coordination_layer: BatchCoordination | None = None,
        types: PartnerTypes | None = None,
        keep_log: bool = False,
    ) -> None:
        self.n = len(obs)
        levels = [level_name(*pair) for pair in zip(obs.level.tolist(), obs.n_levels.tolist(), strict=True)]
        self.parameters = ParameterColumns.of([own.at(level) for own, level in zip(parameters, levels, strict=True)])
        self.memory = Memory(self.n, obs.calendar.sold.shape[1], self.parameters)
        self.obs, self._calendar, self._everybody = obs, obs.calendar, np.arange(self.n)
        named = types if layers.typed else None
        model = layers.l3 != "baseline"
        self.sides = tuple(Side(obs, self.parameters, side, model=model, types=named) for side in (BUY, SELL))
        self._choose: Subsets = greedy_subsets if layers.l4 == "greedy" else best_subsets
        self._overbooks = layers.l4 != "greedy"
        self.plug(goal_layer, decision_layer, coordination_layer)
        self.goals = GoalsBatch.zeros(*obs.calendar.sold.shape)
        self.keep_log = keep_log
        self.log: list[DecisionRecord] = []
        self.interventions = 0

    def plug(
        self, goal: BatchGoals | None, decision: BatchDecisions | None, coordination: BatchCoordination | None
    ) -> None:
        """Set the layers that play; None leaves a layer to its heuristic."""
        self._goal_layer, self._decision_layer, self._coordination_layer = goal, decision, coordination
        # Each layer takes a round once, also one that is both L3 and L4.
        plugged: dict[int, RoundLayer] = {}
        given: tuple[object, ...] = (decision, coordination)
        for layer in given:
            if isinstance(layer, RoundLayer):
                plugged[id(layer)] = layer
        self._round_layers = tuple(plugged.values())
        self._heuristic = goal is None and decision is None and coordination is None
        self._known: tuple[DayBatch, GoalsBatch] | None = None  # the latest goals, valid while nothing is agreed

    @property
    def needs_histories(self) -> bool:
        """Whether a layer reads the offers that were made in threads so far."""
        return bool(self._round_layers)

    def start_day(self, obs: ObservationBatch, seats: Ints | None = None) -> None:
        """Start a day of some factories.

        Args:
            obs: The observations, a row for each of `seats`.
            seats: The factories, rising; default: all.
        """
        rows: Array | slice = slice(None) if seats is None else seats
        self.obs = self.obs.with_rows(rows, obs)
        self._calendar = self._calendar.with_rows(rows, obs.calendar)
        self.memory.start_day(obs, rows)
        for side in self.sides:
            side.start_day(obs, rows)
        self._known = None

    def end_threads(self, ends: Sequence[End]) -> None:
        """Update beliefs and outstanding proposals after threads ended, each partner at most once."""
        for side in self.sides:
            agreed = [(row, partner, *offer) for row, of, partner, offer in ends if of == side.side and offer]
            failed = [(row, partner) for row, of, partner, offer in ends if of == side.side and not offer]
            if agreed:
                table = np.array(agreed)
                side.on_agreements(table[:, 0], table[:, 1], table[:, 2:])
            if failed:
                table = np.array(failed)
                side.on_failures(table[:, 0], table[:, 1])

    def decide(
        self,
        threads: ThreadBatch,
        calendar: CalendarBatch,
        seats: Ints,
        *,
        made: Histories | None = None,
        live: Sequence[Observation] = (),
        calendars: Sequence[Calendar] = (),
        rows: Sequence[ThreadObservation] = (),
        acted: PlanBatch | None = None,
    ) -> PlanBatch:
        """Decide threads of some factories, all of each factory's round together.

        Args:
            threads: The threads, those of a factory in the order in which it was asked; their seats are indices of
                `seats`.
            calendar: Commitments of this moment, a row for each of `seats`.
            seats: The factories, rising, ``[S]``.
            made: The offers made in the threads so far, if `needs_histories`.
            live: Their observations as live agents made them; for layers that are written for one factory and the log.
            calendars: Their calendars, likewise.
            rows: The threads, likewise.
            acted: What was done in the threads, as a record shows it: it is remembered instead of the decisions.
        """
        if len(seats) < self.n and self._heuristic and not self.keep_log:
            # Heuristics decide among the rows of all factories: nothing is copied, and goals are kept until a deal.
            calendar, rest = self._all_calendars(calendar, seats), threads
            threads = ThreadBatch(seats[rest.seat], *[getattr(rest, name) for name in ThreadBatch.__slots__[1:]])
            seats = self._everybody
        day, goals = self._goals(calendar, seats, live, calendars)
        if self._round_layers:
            assert made is not None  # see `needs_histories`
            round_batch = RoundBatch(day, goals, threads, made)
            for layer in self._round_layers:
                layer.start_round(round_batch)
        plan, everybody = None, len(seats) == self.n
        selling = np.count_nonzero(threads.selling)
        for side in self.sides:
            number = selling if side.selling else len(threads) - selling
            if not number:
                continue
            trades = day.obs.trades[:, side.side]
            whole = number == len(threads) and np.count_nonzero(trades) == len(trades)
            own = np.arange(number) if whole else true_rows((threads.selling == side.selling) & trades[threads.seat])
            if not len(own):
                continue
            situation = SituationBatch(
                selling=side.selling,
                seats=seats,
                day=day,
                goals=goals,
                agenda=day.obs.agenda[:, side.side],
                threads=threads if whole else threads.take(own),
                pending=side.pending if everybody else side.pending[seats],
                outstanding=side.outstanding if everybody else side.outstanding[seats],
                rows=rows if whole or not rows else [rows[row] for row in own.tolist()],
                index=own,
            )
            decided = self._decide_side(side, situation, None if acted is None else acted.take(own))
            if whole:
                return decided
            plan = plan or PlanBatch.none(len(threads))
            plan.put(own, decided)
        return plan or PlanBatch.none(len(threads))

    def _all_calendars(self, calendar: CalendarBatch, seats: Ints) -> CalendarBatch:
        """Return the latest commitments of all factories, given those of some; the same object if nothing changed."""
        if not _same(self._calendar.take(seats), calendar):
            self._calendar = self._calendar.with_rows(seats, calendar)
        return self._calendar

    def _goals(
        self, calendar: CalendarBatch, seats: Ints, live: Sequence[Observation], calendars: Sequence[Calendar]
    ) -> tuple[DayBatch, GoalsBatch]:
        """Return the days at this moment and the goals, within L1's bounds."""
        whole, known = len(seats) == self.n, self._known
        if whole and known is not None and (known[0].calendar is calendar or _same(known[0].calendar, calendar)):
            return known
        obs = self.obs if whole else self.obs.take(seats)
        memory = self.memory.now if whole else self.memory.now.take(seats)
        p = self.parameters if whole else self.parameters.take(seats)
        limits = bounds(obs, calendar, memory.persistent)
        day = DayBatch(obs, calendar, limits, memory, p, live, calendars, seats)
        facts = (obs, calendar, limits, memory, p)
        if self._goal_layer is None:
            goals = wanted = heuristic_goals(*facts)
        else:
            wanted = self._goal_layer.goals_of(day)
            goals = bounded_goals(wanted, obs, sale_caps(*facts), purchase_cap(*facts))
        self._known = (day, goals) if whole else None
        self.goals.put(slice(None) if whole else seats, wanted)
        return day, goals

    def _decide_side(self, side: Side, situation: SituationBatch, acted: PlanBatch | None) -> PlanBatch:
        view = side.view(situation)
        side.on_round(situation, view.partner)
        if len(situation.seats) < self.n:  # a copy
            situation.pending = side.pending[situation.seats]
        plain = self._decision_layer is None and self._coordination_layer is None
        whole = plain and len(situation.seats) == self.n
        budgets = side.budgets if whole else side.budgets[situation.seats]
        plan = self._plan(situation, view, budgets)
        proposed, alpha = plan, None
        if not plain:
            plan, proposed, alpha = self._revised(side, situation, view, plan, budgets)
        elif not whole:
            side.budgets[situation.seats] = budgets
        final = self._safe(situation, plan)
        if self.keep_log:
            self.log += record_round(situation, side, view, final, proposed, alpha)
        done = final if acted is None else acted
        side.commit(situation, view, done.propose & ~done.accept, done.offer)
        return final

    def _plan(self, situation: SituationBatch, view: SideView, budgets: Floats) -> PlanBatch:
        """Make the heuristic plan; the risk budgets ``[S, H + 1]`` are reduced in place."""
        threads, room = situation.threads, free_room(situation)
        if not np.count_nonzero(room > 0):  # nothing to agree on
            return PlanBatch.none(len(threads))
        accept = accept_offers(situation, view, room, self._choose)
        if view.acceptance is None:
            return self._baseline(situation, accept, room)
        taken = None
        if np.count_nonzero(accept):
            taken = np.zeros(room.shape, np.int64)
            seat, offer = threads.seat[accept], threads.offer[accept]
            np.add.at(taken, (seat, offer[:, 1] - situation.day.obs.day[seat]), offer[:, 0])
        risked = budgets if self._overbooks else np.zeros(budgets.shape)
        plan = spread(situation, view, ~accept, taken, room, risked)
        return PlanBatch(accept, plan.propose, plan.offer)

    @staticmethod
    def _baseline(situation: SituationBatch, accept: Bools, room: Ints) -> PlanBatch:
        """Return what L1's baseline proposes where nothing is accepted."""
        threads = situation.threads
        plan = PlanBatch(accept, np.zeros(len(threads), np.bool_), np.zeros((len(threads), 3), np.int64))
        rest = true_rows(~accept)
        if len(rest):
            day, own = situation.day, threads.take(rest)
            proposals = baseline_proposals(
                own,
                ranks(own.seat),
                room,
                situation.goals,
                day.obs.day,
                situation.agenda,
                day.parameters,
                selling=situation.selling,
            )
            plan.propose[rest], plan.offer[rest] = proposals.propose, proposals.offer
        return plan

    def _revised(
        self, side: Side, situation: SituationBatch, view: SideView, plan: PlanBatch, risked: Floats
    ) -> tuple[PlanBatch, PlanBatch, Floats]:
        """Let the layers that are plugged in revise the heuristic plan under L1's guard.

        Returns:
            The plan, the proposals before the guard, and L4's weights.
        """
        situation.plan = plan
        room = free_room(situation)
        situation.baseline = self._baseline(situation, accept_offers(situation, view, room, greedy_subsets), room)
        plan, risked, alpha = self._weighed(side, situation, view, plan, risked)
        wanted, other = self._wanted(situation, alpha)
        threads, seats = situation.threads, situation.seats
        # The heuristic plan keeps to L1's bounds by itself, and the guard is stricter than they are.
        changed = np.bincount(threads.seat, other, len(seats)) > 0  # [S]
        if not changed.any():
            side.budgets[seats] = risked
            return plan, plan, alpha
        budgets = side.budgets[seats]  # only the final plan consumes the risk budget
        safe = guard(situation, wanted, self._allowance(side, situation, view, budgets))
        side.budgets[seats] = np.where(changed[:, None], budgets, risked)
        rows = changed[threads.seat]
        moved = ~safe.accept & ((wanted.propose != safe.propose) | (wanted.offer != safe.offer).any(1) & safe.propose)
        self.interventions += int((rows & ((wanted.accept != safe.accept) | moved)).sum())
        final = PlanBatch(
            np.where(rows, safe.accept, plan.accept),
            np.where(rows, safe.propose, plan.propose),
            np.where(rows[:, None], safe.offer, plan.offer),
        )
        return final, wanted, alpha

    def _weighed(
        self, side: Side, situation: SituationBatch, view: SideView, plan: PlanBatch, risked: Floats
    ) -> tuple[PlanBatch, Floats, Floats]:
        """Let L4 weigh the threads; return the heuristic plan and the risk budgets with these weights, and the weights.

        Args:
            side: The side.
            situation: The round, with the neutral plan.
            view: The side in this round.
            plan: The neutral plan.
            risked: The risk budgets after it.
        """
        alpha = np.full(len(situation.threads), NEUTRAL_ALPHA)
        if self._coordination_layer is not None:
            alpha = np.asarray(self._coordination_layer.weigh_all(situation), np.float64)
            if (alpha != NEUTRAL_ALPHA).any():
                situation.alpha = np.where(np.isfinite(alpha) & (alpha > 0.0), alpha, NEUTRAL_ALPHA)
                risked = side.budgets[situation.seats]
                plan = situation.plan = self._plan(situation, view, risked)
        return plan, risked, alpha

    def _wanted(self, situation: SituationBatch, alpha: Floats) -> tuple[PlanBatch, Bools]:
        """Return the plan of L3 and L4, and where it differs from the heuristic plan, ``[M]``.

        Actions come from L3, joint acceptance from L4.
        """
        l3, l4, plan, threads = self._decision_layer, self._coordination_layer, situation.plan, situation.threads
        assert plan is not None  # made before
        keep = ActionBatch(np.full(len(threads), KEEP), plan.offer)
        actions = keep if l3 is None else l3.decide_all(situation, alpha)
        wanted = wanted_plan(situation, actions)
        if l4 is not None:
            accept = l4.accept_all(situation, wanted.accept) & threads.answers
            left = wanted.accept & ~accept
            base = self._baseline(situation, ~left, free_room(situation))
            wanted = PlanBatch(
                accept,
                np.where(left, base.propose, wanted.propose),
                np.where(left[:, None], base.offer, wanted.offer),
            )
        # An explicit acceptance is checked by the guard, also where the plan accepts.
        other = (wanted.accept != plan.accept) | (plan.accept & (actions.kind == ACCEPT))
        other |= ~plan.accept & (wanted.propose != plan.propose)
        other |= ~plan.accept & plan.propose & (wanted.offer != plan.offer).any(1)
        return wanted, other

    @staticmethod
    def _allowance(side: Side, situation: SituationBatch, view: SideView, budgets: Floats) -> Allowance:
        day, goals = situation.day, situation.goals
        facts = (day.obs, day.calendar, day.bounds, day.memory, day.parameters)
        if side.selling:
            caps, total = sale_caps(*facts), None
        else:
            total = np.minimum(day.bounds.buy, np.maximum(purchase_cap(*facts), goals.q_buy.max(1)))
            caps = np.repeat(total[:, None], goals.q_buy.shape[1], axis=1)

        def chance(row: Ints, lead: Ints, quantity: Ints, price: Ints) -> Floats:
            known = side.chance(situation, view, row, lead, quantity, price)
            return np.where(np.isnan(known), 1.0, known)

        cost = excess_cost(day.obs, situation.agenda[:, 5], selling=side.selling)
        return Allowance(caps, total, cost, budgets, chance)

    def _safe(self, situation: SituationBatch, plan: PlanBatch) -> PlanBatch:
        """Pass decisions through L1's clip, as every decision that leaves the agent."""
        proposes = plan.propose & ~plan.accept
        if not np.count_nonzero(proposes):
            return PlanBatch(plan.accept, proposes, plan.offer)
        day, seat, offer = situation.day, situation.threads.seat, plan.offer
        agenda, lead = situation.agenda[seat], (offer[:, 1] - day.obs.day[seat]) * proposes
        most = day.bounds.lines[seat, lead] if situation.selling else day.bounds.buy[seat]
        if np.count_nonzero(proposes & legal(offer, agenda) & (offer[:, 0] <= most)) == len(offer):
            return PlanBatch(plan.accept, proposes, offer)  # nothing to clip
        clipped, left = clip(offer, agenda, most)
        self.interventions += int(np.count_nonzero(proposes & ((clipped != offer).any(1) | ~left)))
        return PlanBatch(plan.accept, proposes & left, clipped)


def _same(one: CalendarBatch, other: CalendarBatch) -> bool:
    return (
        np.array_equal(one.sold, other.sold)
        and np.array_equal(one.bought, other.bought)
        and np.array_equal(one.bought_value, other.bought_value)
        and np.array_equal(one.sold_value, other.sold_value)
    )
