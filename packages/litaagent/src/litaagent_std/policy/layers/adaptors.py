"""Layers that are written for one factory, called for each factory of a batch."""

from __future__ import annotations

from typing import Final

import numpy as np

from ..arrays import Bools, Floats, Ints, true_rows
from ..observation import Agenda, Offer
from ..plan import Goals, GoalsBatch, Plan, PlanBatch
from .protocols import (
    ACCEPT,
    COUNTER,
    END,
    KEEP,
    NEUTRAL_ALPHA,
    ActionBatch,
    BatchCoordination,
    BatchDecisions,
    BatchGoals,
    CoordinationLayer,
    DayBatch,
    DecisionLayer,
    GoalLayer,
    Situation,
    SituationBatch,
)

__all__ = ["coordination_for_all", "decisions_for_all", "goals_for_all", "situations", "stacked"]

_KINDS: Final = {"keep": KEEP, "accept": ACCEPT, "counter": COUNTER, "end": END}


class _Goals:
    def __init__(self, layer: GoalLayer) -> None:
        self._layer = layer

    def goals_of(self, day: DayBatch) -> GoalsBatch:
        """Set the goals of each factory; see `BatchGoals`."""
        width = day.calendar.sold.shape[1]
        rows = []
        for index, (obs, calendar) in enumerate(zip(day.live, day.calendars, strict=True)):
            leads = obs.horizon + 1
            limits, memory = day.bounds.row(index, leads), day.memory.row(index, leads)
            rows.append(_checked(self._layer.goals(obs, calendar, limits, memory), leads))
        return stacked(rows, width)


class _Decisions:
    def __init__(self, layer: DecisionLayer) -> None:
        self._layer = layer

    def decide_all(self, situation: SituationBatch, alpha: Floats) -> ActionBatch:
        """Decide the threads of each factory; see `BatchDecisions`."""
        count = len(situation.threads)
        kind, offers = np.full(count, KEEP), np.zeros((count, 3), np.int64)
        for one, rows in situations(situation):
            weights = {thread.partner: float(alpha[row]) for thread, row in zip(one.threads, rows, strict=True)}
            actions = self._layer.decide(one, weights)
            for thread, row in zip(one.threads, rows, strict=True):
                action = actions.get(thread.partner)
                if action is None:
                    continue
                kind[row] = _KINDS[action.kind]
                if action.kind == "counter":
                    kind[row] = END if action.offer is None else COUNTER
                    offers[row] = (0, 0, 0) if action.offer is None else tuple(int(x) for x in action.offer)
        return ActionBatch(kind, offers)


class _Coordination:
    def __init__(self, layer: CoordinationLayer) -> None:
        self._layer = layer

    def weigh_all(self, situation: SituationBatch) -> Floats:
        """Return α of the threads of each factory; see `BatchCoordination`."""
        alpha = np.full(len(situation.threads), NEUTRAL_ALPHA)
        for one, rows in situations(situation):
            weights = self._layer.weigh(one)
            alpha[rows] = [weights.get(thread.partner, NEUTRAL_ALPHA) for thread in one.threads]
        return alpha

    def accept_all(self, situation: SituationBatch, wanted: Bools) -> Bools:
        """Return the offers of each factory that are accepted together; see `BatchCoordination`."""
        accept = np.zeros(len(situation.threads), np.bool_)
        for one, rows in situations(situation):
            names = [thread.partner for thread in one.threads]
            chosen = self._layer.accept(
                one, frozenset(name for name, row in zip(names, rows, strict=True) if wanted[row])
            )
            accept[rows] = [name in chosen for name in names]
        return accept


def goals_for_all(layer: GoalLayer | BatchGoals) -> BatchGoals:
    """Return an L2 for batches."""
    return layer if isinstance(layer, BatchGoals) else _Goals(layer)


def decisions_for_all(layer: DecisionLayer | BatchDecisions) -> BatchDecisions:
    """Return an L3 for batches."""
    return layer if isinstance(layer, BatchDecisions) else _Decisions(layer)


def coordination_for_all(layer: CoordinationLayer | BatchCoordination) -> BatchCoordination:
    """Return an L4 for batches."""
    return layer if isinstance(layer, BatchCoordination) else _Coordination(layer)


def _checked(goals: Goals, leads: int) -> Goals:
    """Make sure that goals are for every lead; urgency may be empty."""
    lengths = {name: len(getattr(goals, name)) for name in ("q_buy", "p_buy", "q_sell", "p_sell", "hold")}
    lengths |= {name: len(column) for name in ("u_buy", "u_sell") if (column := getattr(goals, name))}
    wrong = {name: length for name, length in lengths.items() if length != leads}
    if wrong:
        raise ValueError(f"goals need {leads} entries, one for each day of the horizon, but have {wrong}")
    return goals


def stacked(rows: list[Goals], width: int) -> GoalsBatch:
    """Stack one factory's goals each; those of shorter horizons are padded with zeros."""

    def column(name: str) -> Floats:
        out = np.zeros((len(rows), width))
        for index, goals in enumerate(rows):
            values = getattr(goals, name)
            out[index, : len(values)] = values
        return out

    names = ("q_buy", "p_buy", "q_sell", "p_sell", "hold")
    return GoalsBatch(
        **{name: column(name) for name in names},  # type: ignore[arg-type]  # L1 makes whole numbers of quantities
        unit_value=np.array([goals.unit_value for goals in rows]),
        u_buy=column("u_buy"),
        u_sell=column("u_sell"),
    )


def situations(batch: SituationBatch) -> list[tuple[Situation, Ints]]:
    """Return each factory's situation, and the rows of its threads."""
    made = []
    for index in range(len(batch.seats)):
        rows = true_rows(batch.threads.seat == index)
        if not len(rows):
            continue
        obs = batch.day.live[index]
        leads, partners = obs.horizon + 1, obs.consumers if batch.selling else obs.suppliers
        threads = tuple(batch.rows[row] for row in rows.tolist())
        outstanding = {
            partners[column].name: Offer(*batch.outstanding[index, column].tolist())
            for column in true_rows(batch.pending[index]).tolist()
        }
        names = [thread.partner for thread in threads]
        assert batch.plan is not None  # the brain makes both before it asks the layers
        assert batch.baseline is not None
        one = Situation(
            obs,
            threads,
            batch.selling,
            Agenda(*batch.agenda[index].tolist()),
            batch.goals.row(index, leads),
            batch.day.bounds.row(index, leads),
            outstanding,
            batch.day.memory.row(index, leads),
            _plan(batch.plan, rows, names),
            _plan(batch.baseline, rows, names),
        )
        made.append((one, rows))
    return made


def _plan(plan: PlanBatch, rows: Ints, names: list[str]) -> Plan:
    accept, offers = set(), {}
    for name, row in zip(names, rows.tolist(), strict=True):
        if plan.accept[row]:
            accept.add(name)
        else:
            offers[name] = Offer(*plan.offer[row].tolist()) if plan.propose[row] else None
    return Plan(frozenset(accept), offers)
