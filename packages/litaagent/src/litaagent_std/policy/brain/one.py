"""The brain of one factory: a `BatchBrain` of one row.

An agent gives it one `Observation` at the start of each day and one `ThreadObservation` per thread and round, and
notifies it of the ends of threads. It does not depend on scml: offers are plain tuples.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from ..columns import BUY, SELL, CalendarBatch, ObservationBatch, ThreadBatch, histories
from ..layers import (
    BatchCoordination,
    BatchDecisions,
    BatchGoals,
    CoordinationLayer,
    DecisionLayer,
    GoalLayer,
    Layers,
    LayerSet,
)
from ..layers.adaptors import coordination_for_all, decisions_for_all, goals_for_all
from ..memory import MemoryRow
from ..observation import Calendar, Observation, Offer, ThreadObservation
from ..parameters import LEVELS, Parameters, level_name
from ..partners.types import PartnerTypes, shipped_types
from ..plan import Goals
from .batch import BatchBrain, End
from .reasons import Decision, DecisionRecord, decisions_of, plan_of

__all__ = ["Brain", "Decision", "DecisionRecord"]

_HEURISTICS: Final = {"l2": "heuristic", "l3": "types", "l4": "joint"}
"""What plays where a learned layer was not trained for the factory's level."""


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
        goal_layer: GoalLayer | BatchGoals | None = None,
        decision_layer: DecisionLayer | BatchDecisions | None = None,
        coordination_layer: CoordinationLayer | BatchCoordination | None = None,
        types: PartnerTypes | None = None,
    ) -> None:
        self.all_parameters = parameters or Parameters()
        self.layers = layers or Layers()
        self.keep_log = keep_log
        given = {"l2": goal_layer, "l3": decision_layer, "l4": coordination_layer}
        for name in self.layers.learned:
            if given[name] is None:
                raise ValueError(f"{name}='learned' but no such layer is given; pass one, or weights that hold it")
        self._goal_layer = None if goal_layer is None else goals_for_all(goal_layer)
        self._decision_layer = None if decision_layer is None else decisions_for_all(decision_layer)
        self._coordination_layer = None if coordination_layer is None else coordination_for_all(coordination_layer)
        self._types = (types or shipped_types()) if self.layers.typed else None
        self._batch: BatchBrain | None = None
        self._calendar: Calendar | None = None  # the latest, and its columns
        self._seat = np.zeros(1, np.int64)
        self._ends: list[End] = []  # not taken yet

    def start_day(self, obs: Observation) -> None:
        """Start a day with its observation."""
        self._end_threads()
        self.obs = obs
        batch = ObservationBatch.of([obs])
        if self._batch is None:
            self._batch = BatchBrain(
                batch,
                [self.all_parameters],
                self.layers,
                goal_layer=self._goal_layer,
                decision_layer=self._decision_layer,
                coordination_layer=self._coordination_layer,
                types=self._types,
                keep_log=self.keep_log,
            )
        groups = (obs.suppliers, obs.consumers)
        self._index = [{partner.name: index for index, partner in enumerate(partners)} for partners in groups]
        self._batch.start_day(batch)

    def copy_with(self, layers: LayerSet) -> Brain:
        """Return a copy that decides with other layers from now on, as of the start of the day."""
        assert self._batch is not None  # the day has started
        kept = (self.obs, self._types, self._goal_layer, self._decision_layer, self._coordination_layer)
        brain = copy.deepcopy(self, {id(shared): shared for shared in kept})
        goal = None if layers.goal is None else goals_for_all(layers.goal)
        decision = None if layers.decision is None else decisions_for_all(layers.decision)
        coordination = None if layers.coordination is None else coordination_for_all(layers.coordination)
        assert brain._batch is not None  # as ours
        brain._batch.plug(goal, decision, coordination)
        return brain

    @property
    def playing(self) -> Layers:
        """The versions that decide at this factory's level: learned layers only where they were trained for it."""
        level = level_name(self.obs.level, self.obs.n_levels)
        given = {"l2": self._goal_layer, "l3": self._decision_layer, "l4": self._coordination_layer}
        untrained = [name for name in self.layers.learned if level not in getattr(given[name], "levels", LEVELS)]
        return replace(self.layers, **{name: _HEURISTICS[name] for name in untrained})

    @property
    def log(self) -> list[DecisionRecord]:
        """Records of the decisions so far."""
        return [] if self._batch is None else self._batch.log

    @property
    def interventions(self) -> int:
        """How often L1 changed a decision."""
        return 0 if self._batch is None else self._batch.interventions

    @property
    def parameters(self) -> Parameters:
        """The parameters at the factory's level."""
        return self.all_parameters.at(level_name(self.obs.level, self.obs.n_levels))

    @property
    def memory(self) -> MemoryRow:
        """What is remembered across days, as of now."""
        assert self._batch is not None  # there is a day
        return self._batch.memory.now.row(0, self.obs.horizon + 1)

    @property
    def goals(self) -> Goals:
        """L2's latest goals, before L1's bounds."""
        assert self._batch is not None  # there is a day
        return self._batch.goals.row(0, self.obs.horizon + 1)

    def propose(self, threads: Sequence[ThreadObservation]) -> dict[str, Offer | None]:
        """Return the first proposal of each thread; None where nothing should be offered."""
        return {partner: decision.offer for partner, decision in self.respond(threads).items()}

    def respond(
        self, threads: Sequence[ThreadObservation], acted: Mapping[str, Decision] | None = None
    ) -> dict[str, Decision]:
        """Decide on all offers of a round together.

        Args:
            threads: The threads.
            acted: What is done in them by partner, if that is decided elsewhere: it is remembered instead of the
                decisions.
        """
        if not threads:
            return {}
        assert self._batch is not None  # the day has started
        self._end_threads()
        threads = sorted(threads, key=lambda thread: not thread.buying)  # purchases first
        partners = [self._index[not thread.buying][thread.partner] for thread in threads]
        batch = ThreadBatch.of(threads, partners, [0] * len(threads))
        calendar = threads[0].calendar
        if calendar != self._calendar:
            self._calendar, self._columns = calendar, CalendarBatch.of([calendar])
        plan = self._batch.decide(
            batch,
            self._columns,
            self._seat,
            made=histories(threads, [0] * len(threads)) if self._batch.needs_histories else None,
            live=(self.obs,),
            calendars=(calendar,),
            rows=threads,
            acted=None if acted is None else plan_of([acted[thread.partner] for thread in threads]),
        )
        return {thread.partner: made for thread, made in zip(threads, decisions_of(plan, threads), strict=True)}

    def contract(self, partner: str, *, buying: bool, offer: Offer) -> None:
        """Update beliefs and outstanding proposals after a thread ended in agreement."""
        side = BUY if buying else SELL
        self._ends.append((0, side, self._index[side][partner], offer))

    def thread_failed(self, partner: str) -> None:
        """Update beliefs and outstanding proposals after a thread ended without agreement."""
        self._ends += [(0, side, names[partner], None) for side, names in enumerate(self._index) if partner in names]

    def _end_threads(self) -> None:
        """Take the threads that ended since the latest decision, all at once."""
        if self._ends:
            assert self._batch is not None  # the day has started
            ends, self._ends = self._ends, []
            self._batch.end_threads(ends)

    def end_day(self, calendar: Calendar) -> None:
        """Remember the commitments with which the day goes into settlement."""
        assert self._batch is not None  # the day has started
        self._batch.memory.note_due(calendar.bought[0], calendar.sold[0])
