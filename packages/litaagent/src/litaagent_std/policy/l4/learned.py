"""L4, learned: attention over the threads of a round gives each a weight α."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from ..arrays import Floats32
from ..layers import Situation
from ..networks.inference import CoordinatorNetwork
from ..networks.inputs import coordinator_inputs
from ..observation import ThreadObservation

__all__ = ["LearnedCoordination"]

ACCEPT_FROM: Final = 0.5
"""The least α of an offer that is accepted."""


class LearnedCoordination:
    """A `CoordinationLayer` from trained weights.

    Args:
        network: The trained network.
    """

    def __init__(self, network: CoordinatorNetwork) -> None:
        self._network = network

    def weigh(self, situation: Situation) -> Mapping[str, float]:
        """Return α of the threads that have an offer on the table; see `CoordinationLayer`."""
        threads = [thread for thread in situation.threads if thread.offer is not None]
        if not threads:
            return {}
        inputs = _inputs(situation, threads)
        alpha = self._network(inputs[None], np.ones((1, len(threads)), np.bool_))[0]
        return {thread.partner: float(value) for thread, value in zip(threads, alpha, strict=True)}

    def accept(self, situation: Situation, wanted: frozenset[str]) -> frozenset[str]:
        """Accept wanted offers in the order of α, as long as α is large enough and they fit."""
        alpha = self.weigh(situation)
        room = _room(situation)
        offers = {thread.partner: thread.offer for thread in situation.threads if thread.offer is not None}
        taken: set[str] = set()
        for partner in sorted(wanted & offers.keys(), key=lambda name: (-alpha[name], name)):
            offer = offers[partner]
            lead = offer.time - situation.obs.day
            if alpha[partner] >= ACCEPT_FROM and 0 <= lead < len(room) and offer.quantity <= room[lead]:
                taken.add(partner)
                room[lead] -= offer.quantity
        return frozenset(taken)


def _room(situation: Situation) -> list[int]:
    """Return the units that may still be agreed by lead: the goal less outstanding proposals, within L1's bounds."""
    goals, bounds = situation.goals, situation.bounds
    room = list(goals.q_sell if situation.selling else goals.q_buy)
    for offer in situation.outstanding.values():
        lead = offer.time - situation.obs.day
        if 0 <= lead < len(room):
            room[lead] -= offer.quantity
    most = bounds.lines if situation.selling else (bounds.buy,) * len(room)
    return [max(0, min(units, limit)) for units, limit in zip(room, most, strict=True)]


def _inputs(situation: Situation, threads: list[ThreadObservation]) -> Floats32:
    """Return the network's inputs of threads that have an offer on the table, ``[K, L4_SIZE]``."""
    obs, goals = situation.obs, situation.goals
    room = _room(situation)
    limits = goals.p_sell if situation.selling else goals.p_buy
    rows, surplus, free = [], [], []
    for thread in threads:
        assert thread.offer is not None  # only such threads are given
        lead = min(max(thread.offer.time - obs.day, 0), len(room) - 1)
        gain = thread.offer.price - limits[lead]
        rows.append((thread.offer.quantity, lead, thread.offer.price))
        surplus.append(gain if situation.selling else -gain)
        free.append(room[lead])
    return coordinator_inputs(
        np.array(rows, np.float64),
        np.array(surplus),
        np.array(free, np.float64),
        np.array([(thread.round + 1) / (thread.n_rounds + 1) for thread in threads]),
        obs.n_lines,
        obs.price_out if situation.selling else obs.price_in,
        obs.horizon,
    )
