"""L3, learned: the heuristic's decision in each thread of a round, changed by the network.

The network's inputs are those of its training: the features of thread and day, L2's goals of the day's start, L4's
weight, and the heuristic's decision, which its residuals refer to.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, Bools, Floats, Floats32, Ints
from ..l2.learned import LearnedGoals, at_levels
from ..layers import ACCEPT, COUNTER, END, KEEP, ActionBatch, RoundBatch, SituationBatch
from ..networks.exploration import Exploration, RoundSample, categorical, gaussian
from ..networks.inference import DayInputs, DecisionNetwork, ThreadInputs
from ..networks.inputs import ALPHA_LIMIT, baseline_inputs, goal_inputs
from ..networks.threads import RoundFeatures
from ..parameters import LEVELS, Level
from ..plan import PlanBatch

__all__ = ["LearnedDecisions", "base_decisions"]

_KINDS = np.array([ACCEPT, COUNTER, END])  # the network's operations
_ACCEPT, _REJECT, _END = range(3)


def base_decisions(
    plan: PlanBatch, offers: Ints, agenda: Ints, day: Ints, *, selling: Array | bool
) -> tuple[Ints, Ints]:
    """Return the heuristic's decisions as the base of residuals: operations ``[M]`` and counter-offers ``[M, 3]``.

    There is always a counter-offer (quantity, lead, unit price), because a residual needs something to be added to:
    beside an acceptance it is the partner's own offer, beside an end the least that may be offered, at our best price.

    Args:
        plan: What the heuristic does, M rows.
        offers: Offers on the table, with the delivery day, ``[M, 3]``.
        agenda: Legal ranges, ``[M, 6]``.
        day: Today, ``[M]``.
        selling: Which side the threads are on, one for all or ``[M]``.
    """
    op = np.where(plan.accept, _ACCEPT, np.where(plan.propose, _REJECT, _END))
    best = np.where(selling, agenda[:, 5], agenda[:, 4])
    least = np.stack([np.maximum(1, agenda[:, 0]), agenda[:, 2], best], axis=1)
    counter = np.where(plan.accept[:, None], offers, np.where(plan.propose[:, None], plan.offer, least))
    counter = np.clip(counter, agenda[:, 0::2], agenda[:, 1::2])
    counter[:, 1] -= day
    return op, counter


class LearnedDecisions:
    """An L3 (`layers.BatchDecisions`) from trained weights.

    Args:
        network: The trained network.
        goals: The learned L2 whose goals it was trained with.
        features: The features of the round, shared with L4.
        levels: Levels of the chain that it was trained for; at the others the heuristic plan is kept.
        exploration: Random streams for sampled decisions; default: the most probable ones.
    """

    def __init__(
        self,
        network: DecisionNetwork,
        goals: LearnedGoals,
        features: RoundFeatures,
        levels: tuple[Level, ...] = LEVELS,
        exploration: Exploration | None = None,
    ) -> None:
        self._network, self._goals, self._features = network, goals, features
        self.levels, self._exploration = levels, exploration

    def start_round(self, round_batch: RoundBatch) -> None:
        """Take the round; see `layers.RoundLayer`."""
        self._features.start_round(round_batch)

    def decide_all(self, situation: SituationBatch, alpha: Floats) -> ActionBatch:
        """Decide the threads of a round; see `layers.BatchDecisions`."""
        threads, obs = situation.threads, situation.day.obs
        seat = threads.seat
        agenda, day = situation.agenda[seat], obs.day[seat]
        assert situation.plan is not None  # the brain makes it before it asks the layers
        base_op, base = base_decisions(situation.plan, threads.offer, agenda, day, selling=situation.selling)
        # [M, 3] the least and the greatest legal quantity, lead and unit price
        low, high = agenda[:, 0::2].copy(), agenda[:, 1::2].copy()
        low[:, 1] -= day
        high[:, 1] -= day
        batch = self._inputs(situation, base_op, base, low, high, alpha)
        op, lead, amounts = self._choose(situation, batch)
        offers = self._offers(batch, lead, amounts, base, low, high)
        same = (op == base_op) & ((op != _REJECT) | (offers == base).all(1))
        kind = np.where(same | ~at_levels(obs, self.levels)[seat], KEEP, _KINDS[op])
        offers[:, 1] += day
        return ActionBatch(kind, offers)

    def _choose(self, situation: SituationBatch, batch: ThreadInputs) -> tuple[Ints, Ints, Floats32]:
        """Return operations ``[M]``, leads ``[M]``, and quantities and positions of prices ``[M, 2]``."""
        ops, leads, quantity, position = self._network.outputs(batch)
        mean = np.stack([quantity.mean(1), position.mean(1)], axis=1)
        if self._exploration is None:
            return ops.argmax(1), leads.argmax(1), mean
        threads, explore = situation.threads, self._exploration
        seats = situation.seats[threads.seat]
        race = explore.exponentials(seats, ops.shape[1] + leads.shape[1])
        amounts, density = gaussian(mean, self._network.log_std, explore.normals(seats, 2))
        op, p_op = categorical(ops, race[:, : ops.shape[1]])
        lead, p_lead = categorical(leads, race[:, ops.shape[1] :])
        log_prob = p_op + np.where(op == _REJECT, p_lead + density, np.float32(0.0))
        action = np.concatenate([np.stack([op, lead], axis=1).astype(np.float32), amounts], axis=1)
        day = situation.day.obs.day[threads.seat]
        explore.rounds.append(
            RoundSample(
                seats,
                day,
                situation.selling,
                threads.partner,
                threads.round,
                batch,
                action,
                np.asarray(log_prob, np.float32),
            )
        )
        return op, lead, amounts

    def _offers(self, batch: ThreadInputs, lead: Ints, amounts: Floats32, base: Ints, low: Ints, high: Ints) -> Ints:
        """Return legal counter-offers (quantity, lead, unit price) in raw units, ``[M, 3]``."""
        lines, width = batch.day.lines, high[:, 2] - low[:, 2]
        if self._network.residual:  # what the network adds to the base, in whole units
            change = (amounts - batch.baseline[:, [3, 5]]).astype(np.float64)
            quantity = base[:, 0] + np.rint(change[:, 0] * lines)
            price = base[:, 2] + np.rint(change[:, 1] * width)
        else:
            quantity, price = np.rint(amounts[:, 0] * lines), np.rint(low[:, 2] + amounts[:, 1] * width)
        wanted = np.stack([quantity, lead, price], axis=1)
        return np.asarray(np.clip(np.nan_to_num(wanted), low, high), np.int64)

    def _inputs(
        self, situation: SituationBatch, op: Ints, base: Ints, low: Ints, high: Ints, alpha: Floats
    ) -> ThreadInputs:
        threads, obs = situation.threads, situation.day.obs
        day = self._goals.day_start(situation.day)
        seat = threads.seat
        features = self._features.of(situation.index)
        horizon = int(obs.horizon.max())
        goal = goal_inputs(day.quantity, day.price, day.inputs.lines, day.inputs.price)
        log_alpha = np.clip(np.log(np.maximum(alpha, 1e-9)), -ALPHA_LIMIT, ALPHA_LIMIT)
        return ThreadInputs(
            repeated(day.inputs, seat),
            features.history,
            features.history_mask,
            features.ranges,
            features.x_thread,
            features.x_partner,
            goal[seat],
            baseline_inputs(op, base, low, high, obs.n_lines[seat].astype(np.float64), horizon),
            log_alpha.astype(np.float32),
        )


def repeated(day: DayInputs, seat: Array | Bools) -> DayInputs:
    """Return the inputs of days for each of their threads, ``[M, …]``."""
    return DayInputs(
        day.x_static[seat],
        day.x_temporal[seat],
        day.x_role[seat],
        day.mask[seat],
        day.lines[seat],
        day.price[seat],
        day.base[seat],
    )
