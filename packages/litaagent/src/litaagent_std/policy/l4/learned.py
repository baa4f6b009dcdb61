"""L4, learned: attention over the threads of a round gives each a weight α, 1 being neutral."""

from __future__ import annotations

import numpy as np

from ..arrays import Bools, Floats, Floats32, Ints, true_rows
from ..columns import ranks
from ..l2.learned import at_levels
from ..layers import NEUTRAL_ALPHA, RoundBatch, SituationBatch
from ..networks.exploration import Exploration, WeightSample, gaussian
from ..networks.inference import CoordinatorNetwork
from ..networks.inputs import ALPHA_LIMIT, coordinator_inputs
from ..networks.threads import RoundFeatures, RoundView
from ..parameters import LEVELS, Level
from ..plan import best_subsets
from .view import free_room

__all__ = ["LearnedCoordination"]


class LearnedCoordination:
    """An L4 (`layers.BatchCoordination`) from trained weights.

    Args:
        network: The trained network.
        features: The features of the round, shared with L3.
        levels: Levels of the chain that it was trained for; at the others α is neutral.
        exploration: Random streams for sampled weights; default: the means.
    """

    def __init__(
        self,
        network: CoordinatorNetwork,
        features: RoundFeatures,
        levels: tuple[Level, ...] = LEVELS,
        exploration: Exploration | None = None,
    ) -> None:
        self._network, self._features, self.levels, self._exploration = network, features, levels, exploration

    def start_round(self, round_batch: RoundBatch) -> None:
        """Take the round; see `layers.RoundLayer`."""
        self._features.start_round(round_batch)

    def weigh_all(self, situation: SituationBatch) -> Floats:
        """Return α of each thread; see `layers.BatchCoordination`."""
        threads, obs = situation.threads, situation.day.obs
        seat, place = threads.seat, ranks(threads.seat)
        some = np.unique(seat)
        row = np.searchsorted(some, seat)  # [M] row of each thread's factory below
        # [S, K, …] the threads of each factory side by side
        shape = (len(some), int(place.max()) + 1)
        inputs = _inputs(situation, self._features.of(situation.index))
        padded, mask = np.zeros((*shape, inputs.shape[1]), np.float32), np.zeros(shape, np.bool_)
        padded[row, place], mask[row, place] = inputs, True
        log_alpha = self._network(padded, mask)
        if self._exploration is not None:
            log_alpha = self._sampled(situation, some, (row, place), padded, mask, log_alpha)
        log_alpha = np.clip(np.nan_to_num(log_alpha), -ALPHA_LIMIT, ALPHA_LIMIT)
        alpha = np.exp(log_alpha[row, place].astype(np.float64))
        return np.where(at_levels(obs, self.levels)[seat], alpha, NEUTRAL_ALPHA)

    def _sampled(
        self,
        situation: SituationBatch,
        some: Ints,
        at: tuple[Ints, Ints],
        padded: Floats32,
        mask: Bools,
        mean: Floats32,
    ) -> Floats32:
        """Sample the logarithms of α ``[S, K]`` and keep the samples."""
        assert self._exploration is not None
        seats = situation.seats[some]
        # a stream is asked for the threads that exist, whatever the width of the batch
        noise = np.zeros(mask.shape, np.float32)
        for index in range(len(seats)):
            count = int(mask[index].sum())
            noise[index, :count] = self._exploration.normals(seats[index : index + 1], count)[0]
        action, log_prob = np.zeros(mask.shape, np.float32), np.zeros(mask.shape, np.float32)
        action[mask], log_prob[mask] = _each(mean[mask], self._network.log_std, noise[mask])
        partner, round_ = np.zeros(mask.shape, np.int64), np.zeros(mask.shape, np.int64)
        partner[at], round_[at] = situation.threads.partner, situation.threads.round
        day = situation.day.obs.day[some]
        sample = WeightSample(seats, day, situation.selling, padded, mask, partner, round_, action, log_prob)
        self._exploration.weights.append(sample)
        return action

    def accept_all(self, situation: SituationBatch, wanted: Bools) -> Bools:
        """Return the plan's acceptances where L3 agrees with them, else the set of wanted offers that is worth most.

        The worth of an offer is α times its units times its price's position in the legal band.
        """
        assert situation.plan is not None  # the brain makes it before it asks the layers
        threads, obs = situation.threads, situation.day.obs
        differs = np.bincount(threads.seat, wanted != situation.plan.accept, len(situation.seats)) > 0
        accept = wanted & ~differs[threads.seat]
        room = situation.goals.side(selling=situation.selling)[0]
        lead = threads.offer[:, 1] - obs.day[threads.seat]
        rows = true_rows(wanted & differs[threads.seat] & threads.answers & (lead >= 0) & (lead < room.shape[1]))
        if not len(rows):
            return accept
        # groups of offers of one factory for one day
        key = threads.seat[rows] * room.shape[1] + lead[rows]
        order = np.argsort(key, kind="stable")
        rows, key = rows[order], key[order]
        keys, group = np.unique(key, return_inverse=True)
        free = np.maximum(0, room[keys // room.shape[1], keys % room.shape[1]])
        ends, quantity, price = situation.agenda[threads.seat[rows]], threads.offer[rows, 0], threads.offer[rows, 2]
        gain = price - ends[:, 4] if situation.selling else ends[:, 5] - price
        position = gain / np.maximum(1, ends[:, 5] - ends[:, 4])
        alpha = np.ones(len(rows)) if situation.alpha is None else situation.alpha[rows]
        accept[rows[best_subsets(group, quantity, alpha * quantity * (1.0 + position), free)]] = True
        return accept


def _each(mean: Floats32, log_std: Floats32, noise: Floats32) -> tuple[Floats32, Floats32]:
    """Return samples and log-probabilities of numbers ``[T]``, each on its own."""
    action, log_prob = gaussian(mean[:, None], log_std, noise[:, None])
    return action[:, 0], log_prob


def _room(situation: SituationBatch) -> Ints:
    """Return the units that may still be agreed by lead, within L1's bounds, ``[S, H + 1]``."""
    bounds = situation.day.bounds
    most = bounds.lines if situation.selling else bounds.buy[:, None]
    return np.maximum(0, np.minimum(free_room(situation), most))


def _inputs(situation: SituationBatch, features: RoundView) -> Floats32:
    """Return the network's inputs of threads, ``[M, L4_SIZE]``."""
    threads, obs = situation.threads, situation.day.obs
    seat, offer, room = threads.seat, threads.offer, _room(situation)
    lead = np.clip(offer[:, 1] - obs.day[seat], 0, room.shape[1] - 1)
    limit = situation.goals.side(selling=situation.selling)[1][seat, lead]
    gain = offer[:, 2] - limit if situation.selling else limit - offer[:, 2]
    return coordinator_inputs(
        np.stack([np.where(threads.answers, offer[:, 0], 0), lead, offer[:, 2]], axis=1).astype(np.float64),
        gain,
        room[seat, lead].astype(np.float64),
        (threads.round + 1) / (threads.n_rounds + 1),
        obs.n_lines[seat].astype(np.float64),
        obs.price[seat, int(situation.selling)],
        obs.horizon[seat],
        features.x_thread,
        features.x_partner,
    )
