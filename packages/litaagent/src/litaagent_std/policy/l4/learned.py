"""L4, learned: attention over the threads of a round gives each a weight α."""

from __future__ import annotations

from typing import Final

import numpy as np

from ..arrays import Bools, Floats, Floats32, Ints, true_rows
from ..layers import NEUTRAL_ALPHA, SituationBatch
from ..networks.inference import CoordinatorNetwork
from ..networks.inputs import coordinator_inputs
from .heuristic import free_room

__all__ = ["LearnedCoordination"]

ACCEPT_FROM: Final = 0.5
"""The least α of an offer that is accepted."""


class LearnedCoordination:
    """An L4 (`layers.BatchCoordination`) from trained weights.

    Args:
        network: The trained network.
    """

    def __init__(self, network: CoordinatorNetwork) -> None:
        self._network = network

    def weigh_all(self, situation: SituationBatch) -> Floats:
        """Return α of the threads that have an offer on the table; see `layers.BatchCoordination`."""
        threads = situation.threads
        alpha = np.full(len(threads), NEUTRAL_ALPHA)
        rows = true_rows(threads.answers)
        if not len(rows):
            return alpha
        inputs = _inputs(situation, rows)
        # [S, K, …] the threads of each factory side by side
        seat = threads.seat[rows]
        count = np.bincount(seat, minlength=len(situation.seats))
        place = np.arange(len(rows)) - (np.cumsum(count) - count)[seat]
        padded = np.zeros((len(count), int(count.max()), inputs.shape[1]), np.float32)
        mask = np.arange(int(count.max())) < count[:, None]
        padded[seat, place] = inputs
        some = true_rows(count > 0)
        weights = np.zeros(mask.shape, np.float32)
        weights[some] = self._network(padded[some], mask[some])
        alpha[rows] = weights[seat, place]
        return alpha

    def accept_all(self, situation: SituationBatch, wanted: Bools) -> Bools:
        """Accept wanted offers in the order of α, as long as α is large enough and they fit."""
        threads, alpha, room = situation.threads, self.weigh_all(situation), _room(situation)
        accept = np.zeros(len(threads), np.bool_)
        rows = true_rows(wanted & threads.answers & (alpha >= ACCEPT_FROM))
        names = [thread.partner for thread in situation.rows]
        for row in sorted(rows.tolist(), key=lambda row: (-alpha[row], names[row])):
            seat, quantity = int(threads.seat[row]), int(threads.offer[row, 0])
            lead = int(threads.offer[row, 1] - situation.day.obs.day[seat])
            if 0 <= lead < room.shape[1] and quantity <= room[seat, lead]:
                accept[row] = True
                room[seat, lead] -= quantity
        return accept


def _room(situation: SituationBatch) -> Ints:
    """Return the units that may still be agreed by lead, within L1's bounds, ``[S, H + 1]``."""
    bounds = situation.day.bounds
    most = bounds.lines if situation.selling else bounds.buy[:, None]
    return np.maximum(0, np.minimum(free_room(situation), most))


def _inputs(situation: SituationBatch, rows: Ints) -> Floats32:
    """Return the network's inputs of threads that have an offer on the table, ``[K, L4_SIZE]``."""
    threads, obs = situation.threads.take(rows), situation.day.obs
    seat, offer, room = threads.seat, threads.offer, _room(situation)
    lead = np.clip(offer[:, 1] - obs.day[seat], 0, room.shape[1] - 1)
    limit = situation.goals.side(selling=situation.selling)[1][seat, lead]
    gain = offer[:, 2] - limit if situation.selling else limit - offer[:, 2]
    return coordinator_inputs(
        np.stack([offer[:, 0], lead, offer[:, 2]], axis=1).astype(np.float64),
        gain,
        room[seat, lead].astype(np.float64),
        (threads.round + 1) / (threads.n_rounds + 1),
        obs.n_lines[seat].astype(np.float64),
        obs.price[seat, int(situation.selling)],
        obs.horizon[seat],
    )
