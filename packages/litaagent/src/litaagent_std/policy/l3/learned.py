"""L3, learned: the network's decision in each thread of a round.

The network's inputs are those of its training: the features of thread and day, the learned goals of the day's start,
and L1's baseline of the thread alone (`l1.thread`).
"""

from __future__ import annotations

import numpy as np

from ..arrays import Floats, Ints
from ..columns import ObservationBatch, histories
from ..features import thread_features
from ..l1.safety import bounds
from ..l1.thread import DayPlan, day_start_plan, thread_baseline
from ..l2.heuristic import heuristic_goals
from ..l2.learned import LearnedGoals
from ..layers import ACCEPT, COUNTER, END, ActionBatch, SituationBatch
from ..networks.inference import DayInputs, DecisionNetwork, ThreadInputs
from ..networks.inputs import baseline_inputs, goal_inputs
from ..parameters import ParameterColumns, Parameters, level_name

__all__ = ["LearnedDecisions"]

_KINDS = np.array([ACCEPT, COUNTER, END])  # the network's operations


class LearnedDecisions:
    """An L3 (`layers.BatchDecisions`) from trained weights.

    Args:
        network: The trained network.
        goals: The learned L2 whose goals it was trained with.
    """

    def __init__(self, network: DecisionNetwork, goals: LearnedGoals) -> None:
        self._network, self._goals = network, goals
        self._obs: ObservationBatch | None = None
        self._days = np.zeros(0, np.int64)

    def decide_all(self, situation: SituationBatch, alpha: Floats) -> ActionBatch:
        """Decide the threads of a round; see `layers.BatchDecisions`."""
        threads = situation.threads
        agenda, day = situation.agenda[threads.seat], situation.day.obs.day[threads.seat]
        # [M, 3] the least and the greatest legal quantity, lead and unit price
        low, high = agenda[:, 0::2].copy(), agenda[:, 1::2].copy()
        low[:, 1] -= day
        high[:, 1] -= day
        plan, parameters = self._plan(situation)
        op, base = thread_baseline(threads, situation.day.obs, plan, parameters)
        batch = self._inputs(situation, op, base, low, high)
        # [M] operations and [M, 3] counter-offers (quantity, lead, price)
        ops, offers = self._network.decide(batch, low, high)
        if self._network.residual:
            offers = np.rint(base + alpha[:, None] * (offers - base)).astype(np.int64)
        offers = offers.copy()
        offers[:, 1] += day
        return ActionBatch(_KINDS[ops], offers)

    def _inputs(self, situation: SituationBatch, op: Ints, base: Ints, low: Ints, high: Ints) -> ThreadInputs:
        threads, obs = situation.threads, situation.day.obs
        quantity, price, day = self._goals.day_start(obs)
        seat = threads.seat
        features = thread_features(threads, obs, *histories(situation.rows, seat.tolist()))
        history, mask = features.padded(2 * int(threads.n_rounds.max()))
        horizon = int(obs.horizon.max())
        return ThreadInputs(
            _repeated(day, seat),
            history,
            mask,
            features.ranges,
            features.x_thread,
            features.x_partner,
            goal_inputs(quantity, price, day.lines, day.price)[seat],
            baseline_inputs(op, base, low, high, obs.n_lines[seat].astype(np.float64), horizon),
        )

    def _plan(self, situation: SituationBatch) -> tuple[DayPlan, ParameterColumns]:
        """Return L1's plans of the days' starts, made once a day, with the parameters of its training: the default."""
        obs, memory = situation.day.obs, situation.day.memory
        if self._obs is not obs or not np.array_equal(self._days, obs.day):
            levels = zip(obs.level.tolist(), obs.n_levels.tolist(), strict=True)
            parameters = ParameterColumns.of([Parameters().at(level_name(*level)) for level in levels])
            limits = bounds(obs, obs.calendar, memory.persistent)
            goals = heuristic_goals(obs, obs.calendar, limits, memory, parameters)
            self._obs, self._days = obs, obs.day.copy()
            self._made = (day_start_plan(obs, limits, goals), parameters)
        return self._made


def _repeated(day: DayInputs, seat: Ints) -> DayInputs:
    """Return the inputs of days for each of their threads, ``[M, …]``."""
    return DayInputs(
        day.x_static[seat], day.x_temporal[seat], day.x_role[seat], day.mask[seat], day.lines[seat], day.price[seat]
    )
