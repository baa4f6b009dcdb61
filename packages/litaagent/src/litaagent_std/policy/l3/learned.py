"""L3, learned: the network's decision in each thread of a round.

The network's inputs are those of its training: the features of thread and day, the learned goals of the day's start,
and L1's baseline of the thread alone (`l1.thread`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..arrays import Ints
from ..columns import ObservationBatch, histories, live_threads
from ..features import thread_features
from ..l1.safety import bounds
from ..l1.thread import SidePlan, day_start_plans, thread_baseline
from ..l2.heuristic import HeuristicGoals
from ..l2.learned import LearnedGoals
from ..layers import Action, Situation, residual
from ..networks.inference import DayInputs, DecisionNetwork, ThreadInputs
from ..networks.inputs import OPERATIONS, baseline_inputs, goal_inputs
from ..observation import Agenda, Observation, Offer
from ..parameters import Parameters, level_name

__all__ = ["LearnedDecisions"]


class LearnedDecisions:
    """A `DecisionLayer` from trained weights.

    Args:
        network: The trained network.
        goals: The learned L2 whose goals it was trained with.
        parameters: Parameters of L1's baseline.
    """

    def __init__(self, network: DecisionNetwork, goals: LearnedGoals, parameters: Parameters | None = None) -> None:
        self._network, self._goals = network, goals
        self._parameters = parameters or Parameters()
        self._obs: Observation | None = None
        self._plans: tuple[SidePlan | None, SidePlan | None] = (None, None)

    def decide(self, situation: Situation, alpha: Mapping[str, float]) -> Mapping[str, Action]:
        """Decide the threads of a round; see `DecisionLayer`."""
        obs, agenda = situation.obs, situation.agenda
        batch, counters = self._inputs(situation)
        low, high = legal_range(agenda, obs.day)
        count = len(situation.threads)
        # [M] operations and [M, 3] counter-offers (quantity, lead, price)
        ops, offers = self._network.decide(batch, np.tile(low, (count, 1)), np.tile(high, (count, 1)))
        actions: dict[str, Action] = {}
        for thread, op, (quantity, lead, price), base in zip(
            situation.threads, ops.tolist(), offers.tolist(), counters, strict=True
        ):
            offer = Offer(quantity, obs.day + lead, price)
            if base is not None and self._network.residual:
                change = (offer.quantity - base.quantity, offer.time - base.time, offer.price - base.price)
                offer = residual(base, change, alpha[thread.partner])
            actions[thread.partner] = (Action("accept"), Action("counter", offer), Action("end"))[op]
        return actions

    def _inputs(self, situation: Situation) -> tuple[ThreadInputs, list[Offer | None]]:
        obs = situation.obs
        quantity, price, day = self._goals.day_start(obs)
        plan = self._plan(situation)
        seats = [0] * len(situation.threads)
        features = thread_features(
            live_threads(situation.threads, [obs], seats),
            ObservationBatch.of([obs]),
            *histories(situation.threads, seats),
        )
        history, mask = features.padded(2 * max(thread.n_rounds for thread in situation.threads))
        decisions = [("end", None) if plan is None else thread_baseline(thread, plan) for thread in situation.threads]
        count = len(seats)
        low, high = legal_range(situation.agenda, obs.day)
        counters = [offer for _, offer in decisions]
        base = baseline_inputs(
            np.array([OPERATIONS.index(kind) for kind, _ in decisions]),
            np.array([(-1, -1, -1) if o is None else (o.quantity, o.time - obs.day, o.price) for o in counters]),
            np.tile(low, (count, 1)),
            np.tile(high, (count, 1)),
            np.full(count, float(obs.n_lines)),
            obs.horizon,
        )
        # [1, 4·B] goals of the day, the same for all its threads
        goal = goal_inputs(quantity[None], price[None], day.lines, day.price)
        batch = ThreadInputs(
            _repeated(day, count),
            history,
            mask,
            features.ranges,
            features.x_thread,
            features.x_partner,
            np.tile(goal, (count, 1)),
            base,
        )
        return batch, counters

    def _plan(self, situation: Situation) -> SidePlan | None:
        """Return L1's plan of the side, made once a day."""
        obs = situation.obs
        if self._obs is not obs:
            level = self._parameters.at(level_name(obs.level, obs.n_levels))
            limits = bounds(obs, obs.calendar, situation.memory.regime)
            goals = HeuristicGoals(level).goals(obs, obs.calendar, limits, situation.memory)
            self._obs, self._plans = obs, day_start_plans(obs, limits, goals, level)
        return self._plans[situation.selling]


def legal_range(agenda: Agenda, day: int) -> tuple[Ints, Ints]:
    """Return the least and the greatest legal quantity, lead and unit price, each ``[3]``."""
    low = np.array([agenda.quantity_min, agenda.time_min - day, agenda.price_min])
    return low, np.array([agenda.quantity_max, agenda.time_max - day, agenda.price_max])


def _repeated(day: DayInputs, count: int) -> DayInputs:
    """Return the inputs of one day, ``[1, …]``, repeated for each of its threads, ``[count, …]``."""
    return DayInputs(
        np.repeat(day.x_static, count, 0),
        np.repeat(day.x_temporal, count, 0),
        np.repeat(day.x_role, count, 0),
        np.repeat(day.mask, count, 0),
        np.repeat(day.lines, count, 0),
        np.repeat(day.price, count, 0),
    )
