"""Exploration: policies sample residual actions for all seats of a batch, and what a learner needs is recorded.

Every seat has its own rng, so that its actions do not depend on the seats beside it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from litaagent_std.agents.online.acting import NAMES, PolicySet
from litaagent_std.agents.online.seat import DayRequests, PolicyLayers, RoundRequests
from litaagent_std.agents.online.steering import Layer
from litaagent_std.policy.arrays import Bools, Floats32, Ints, true_rows
from litaagent_std.policy.layers import LayerSet

__all__ = ["Exploration", "SeatDays", "SeatRounds"]

_ROUND_LAYERS: Final[tuple[Layer, ...]] = ("l3", "l4")
_WIDTHS: Final = tuple(len(NAMES[layer]) for layer in _ROUND_LAYERS)
_PARTS: Final[dict[Layer, slice]] = {"l3": slice(0, _WIDTHS[0]), "l4": slice(_WIDTHS[0], sum(_WIDTHS))}
"""Columns of each layer in the residual of a thread."""


@dataclass(frozen=True, slots=True, eq=False)
class SeatDays:
    """A seat's actions of L2 in order; n of them.

    Attributes:
        views: L2's inputs, ``[n, d]``.
        actions: ``[n, len(DAY_ACTIONS)]``.
        log_probs: ``[n]``; 0 without exploration.
    """

    views: Floats32
    actions: Floats32
    log_probs: Floats32


@dataclass(frozen=True, slots=True, eq=False)
class SeatRounds:
    """A seat's actions of L3 and L4, round by round; m rows, one of each thread, of r rounds.

    Attributes:
        day: ``[m]``.
        selling: ``[m]``.
        partner: Index of the thread's partner among those of its side, ``[m]``.
        round: Which round a row belongs to, rising, ``[m]``.
        views: ``[m, t]``.
        states: What a central critic sees, ``[r, s]``.
        actions: By layer, ``[m, n]``; empty without exploration.
        log_probs: By layer, ``[m]``.
    """

    day: Ints
    selling: Bools
    partner: Ints
    round: Ints
    views: Floats32
    states: Floats32
    actions: dict[Layer, Floats32]
    log_probs: dict[Layer, Floats32]


class Exploration:
    """The policy of a batch (`agents.online.seat.SteeringPolicy`): each seat has its policies and its rng.

    Args:
        seats: Policies and rng of each seat; an rng of None acts without exploration.

    Attributes:
        seconds: CPU seconds of the networks.
    """

    def __init__(self, seats: Sequence[tuple[PolicySet, np.random.Generator | None]]) -> None:
        self._policies, self._rngs = [policies for policies, _ in seats], [rng for _, rng in seats]
        # seats that act alike are asked together: [n] the first seat with the same policies and exploration
        first: dict[tuple[int, bool], int] = {}
        alike = [first.setdefault((id(policies), rng is None), seat) for seat, (policies, rng) in enumerate(seats)]
        self._alike = np.array(alike)
        self._days: list[tuple[DayRequests, Floats32, Floats32]] = []
        self._rounds: list[tuple[RoundRequests, Floats32, Floats32]] = []
        self.seconds = 0.0

    def layers(self, *, rounds: bool) -> LayerSet:
        """Return the layers to plug into the brain; none for the heuristic agent.

        Args:
            rounds: Whether rounds have residual actions.
        """
        if not rounds and not any(policies.nets for policies in self._policies):
            return LayerSet()
        made = PolicyLayers(self, len(self._policies))
        return LayerSet(made, made, made) if rounds else LayerSet(made)

    def act_days(self, requests: DayRequests) -> Floats32:
        """Sample and record the actions of days; see `SteeringPolicy`."""
        began = time.process_time()
        residual = np.zeros((len(requests.seats), len(NAMES["l2"])), np.float32)
        log_probs = np.zeros(len(requests.seats), np.float32)
        for rows, seat in self._groups(requests.seats):
            own = DayRequests(requests.seats[rows], requests.day[rows], requests.level[rows], requests.views[rows])
            policies, rngs = self._policies[seat], self._rngs_of(own.seats)
            if rngs is None:
                residual[rows] = policies.act_days(own)
                continue
            sampled = policies.sample_days(own, rngs)
            residual[rows], log_probs[rows] = sampled.residual, sampled.log_probs.get("l2", 0.0)
        self._days.append((requests, residual, log_probs))
        self.seconds += time.process_time() - began
        return residual

    def act_rounds(self, requests: RoundRequests) -> Floats32:
        """Sample and record the actions of threads; see `SteeringPolicy`."""
        began = time.process_time()
        residual = np.zeros((len(requests.seat), sum(_WIDTHS)), np.float32)
        log_probs = np.zeros((len(requests.seat), len(_ROUND_LAYERS)), np.float32)
        for rows, seat in self._groups(requests.seats):
            own, threads = _some_seats(requests, rows)
            policies, rngs = self._policies[seat], self._rngs_of(own.seats)
            if rngs is None:
                residual[threads] = policies.act_rounds(own)
                continue
            sampled = policies.sample_rounds(own, rngs)
            residual[threads] = sampled.residual
            for column, layer in enumerate(_ROUND_LAYERS):
                log_probs[threads, column] = sampled.log_probs.get(layer, 0.0)
        self._rounds.append((requests, residual, log_probs))
        self.seconds += time.process_time() - began
        return residual

    def _groups(self, seats: Ints) -> list[tuple[Ints | slice, int]]:
        """Return the rows of seats that act alike, and one of these seats."""
        alike = self._alike[seats]
        if (alike == alike[0]).all():
            return [(slice(None), int(alike[0]))]
        return [(true_rows(alike == seat), int(seat)) for seat in np.unique(alike)]

    def _rngs_of(self, seats: Ints) -> list[np.random.Generator] | None:
        rngs = [rng for seat in seats.tolist() if (rng := self._rngs[seat]) is not None]
        return rngs or None

    def days(self) -> list[SeatDays]:
        """Return the recorded actions of L2 of each seat."""
        if not self._days:
            none = np.zeros((0, len(NAMES["l2"])), np.float32)
            return [SeatDays(none[:, :0], none, none[:, 0])] * len(self._policies)
        seat = np.concatenate([requests.seats for requests, _, _ in self._days])
        views = np.concatenate([requests.views for requests, _, _ in self._days])
        actions = np.concatenate([residual for _, residual, _ in self._days])
        log_probs = np.concatenate([values for _, _, values in self._days])
        return [SeatDays(views[rows], actions[rows], log_probs[rows]) for rows in self._rows_of(seat)]

    def rounds(self) -> list[SeatRounds]:
        """Return the recorded actions of L3 and L4 of each seat; rounds must have residual actions."""
        made = [requests for requests, _, _ in self._rounds]
        if not made:
            return []
        # [R] the seat of each round, and [T] the round of each thread
        seat = np.concatenate([requests.seats for requests in made])
        first = np.cumsum([0, *(len(requests.seats) for requests in made)])[:-1].tolist()
        of = np.concatenate([requests.seat + start for requests, start in zip(made, first, strict=True)])
        day = np.concatenate([requests.day for requests in made])
        states = np.concatenate([requests.states for requests in made])
        selling = np.concatenate([requests.selling for requests in made])
        partner = np.concatenate([requests.partner for requests in made])
        views = np.concatenate([requests.views for requests in made])
        residual = np.concatenate([values for _, values, _ in self._rounds])
        log_probs = np.concatenate([values for _, _, values in self._rounds])
        out = []
        threads_of = self._rows_of(seat[of])
        for index, (own, rows) in enumerate(zip(self._rows_of(seat), threads_of, strict=True)):
            explores = self._rngs[index] is not None
            layers = [layer for layer in _ROUND_LAYERS if explores and layer in self._policies[index].nets]
            out.append(
                SeatRounds(
                    day[of[rows]],
                    selling[rows],
                    partner[rows],
                    np.searchsorted(own, of[rows]),
                    views[rows],
                    states[own],
                    {layer: residual[rows, _PARTS[layer]] for layer in layers},
                    {layer: log_probs[rows, _ROUND_LAYERS.index(layer)] for layer in layers},
                )
            )
        return out

    def _rows_of(self, seat: Ints) -> list[Ints]:
        """Return the rows of each seat, rising."""
        order = np.argsort(seat, kind="stable")
        ends = np.searchsorted(seat[order], np.arange(1, len(self._policies)))
        return list(np.split(order, ends))


def _some_seats(requests: RoundRequests, rows: Ints | slice) -> tuple[RoundRequests, Ints | slice]:
    """Return the requests of some seats, and the rows of their threads."""
    if isinstance(rows, slice):
        return requests, rows
    threads = true_rows(np.isin(requests.seat, rows))
    own = replace(
        requests,
        seats=requests.seats[rows],
        day=requests.day[rows],
        level=requests.level[rows],
        states=requests.states[rows],
        seat=np.searchsorted(rows, requests.seat[threads]),
        selling=requests.selling[threads],
        partner=requests.partner[threads],
        views=requests.views[threads],
    )
    return own, threads
