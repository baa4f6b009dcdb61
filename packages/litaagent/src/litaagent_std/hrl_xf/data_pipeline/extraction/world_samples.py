"""All samples of one world: the arrays of a dataset before they are gathered."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np

from litaagent_std.hrl_xf.data_pipeline.errors import BadSampleError
from litaagent_std.hrl_xf.data_pipeline.extraction.baseline import baselines, plans_of
from litaagent_std.hrl_xf.data_pipeline.extraction.columns import REJECT, WorldColumns
from litaagent_std.hrl_xf.data_pipeline.extraction.day_arrays import DayArrays, day_arrays
from litaagent_std.hrl_xf.data_pipeline.extraction.days import WorldDays
from litaagent_std.hrl_xf.data_pipeline.extraction.labels import day_goals
from litaagent_std.hrl_xf.data_pipeline.extraction.thread_arrays import expand_history, thread_arrays
from litaagent_std.hrl_xf.data_pipeline.options import Labels
from litaagent_std.policy.arrays import Array, Bools, Floats32, Ints
from litaagent_std.policy.observation import Observation
from litaagent_std.records.world import WorldRecord

__all__ = ["MACRO", "MICRO", "Arrays", "WorldSamples", "whole_histories", "world_samples"]

Arrays = dict[str, Array]

_FEATURES: Final = ("x_static", "x_temporal", "x_role", "mask")
_CHECKED: Final = {"goal_q", "goal_p", "lines", "price", "return_to_go"}
"""Arrays that must be finite; features are checked where they are made."""

MACRO: Final[dict[str, str]] = {
    "x_static": "f4",
    "x_temporal": "f4",
    "x_role": "f4",
    "mask": "?",
    "goal_q": "f4",
    "goal_p": "f4",
    "goal_p_mask": "?",
    "lines": "f4",
    "price": "f4",
    "return_to_go": "f4",
    "factory": "i2",
    "day": "i2",
}
"""Types of the arrays of a world's mornings; a dataset adds ``return_norm``, ``config`` and ``world``."""

MICRO: Final[dict[str, str]] = {
    "history_start": "i4",
    "history_count": "i2",
    "ranges": "f4",
    "x_thread": "f4",
    "x_partner": "f4",
    "day_row": "i8",
    "op": "i1",
    "offer": "i4",
    "received": "i4",
    "baseline_op": "i1",
    "baseline": "i4",
    "issue_low": "i4",
    "issue_high": "i4",
    "taken": "i1",
    "side": "i1",
    "thread": "i4",
    "round": "i2",
    "return_to_go": "f4",
}
"""Types of the arrays of a world's turns; a dataset adds ``return_norm``, ``config`` and ``world``, and has whole
histories in place of ``history_start`` and ``history_count``."""


@dataclass(frozen=True, slots=True)
class WorldSamples:
    """Samples of a world.

    Attributes:
        macro: Arrays of `MACRO`, a row for each morning of a chosen factory that has somebody to trade with.
        micro: Arrays of `MICRO`, a row for each turn of a chosen factory; ``day_row`` counts from this world's
            first morning.
        offers: History rows that ``history_start`` counts from, and a last row of zeros.
        skipped: Mornings left out: the factory is bankrupt, or all its partners are.
    """

    macro: Arrays
    micro: Arrays
    offers: Floats32
    skipped: int


def whole_histories(micro: Arrays, offers: Floats32, n_rounds: int) -> Arrays:
    """Return a world's turns with the history of each in place of where it begins and how long it is."""
    rest = {name: values for name, values in micro.items() if not name.startswith("history_")}
    history, mask = expand_history(offers, micro["history_start"], micro["history_count"], 2 * n_rounds)
    return {"history": history, "history_mask": mask, **rest}


def world_samples(
    record: WorldRecord, seats: Sequence[int], *, labels: Labels = "intention", horizon: int | None = None
) -> WorldSamples:
    """Make the samples of some factories of a world.

    Args:
        record: The world.
        seats: The factories.
        labels: What counts as L2's goal.
        horizon: Delivery days after today to make room for; the league's own when None.

    Raises:
        BadSampleError: If a value is not finite.
    """
    with _collector_paused():
        return _samples(record, seats, labels, horizon)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep the collector of cycles from walking over all mornings of a world again and again: they have none."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _samples(record: WorldRecord, seats: Sequence[int], labels: Labels, horizon: int | None) -> WorldSamples:
    world, days = WorldColumns.of(record), WorldDays.of(record)
    features, partners = day_arrays(days, seats, horizon), days.partners()
    issues = _issues(days)
    macros, micros, offers, skipped, first, n_offers = [], [], [], 0, 0, 0
    for place, seat in enumerate(seats):
        mornings = days.observations(seat, partners)
        of_seat = DayArrays(*(getattr(features, name)[:, place] for name in _FEATURES))
        macro, rows = _mornings(record, world, seat, mornings, of_seat, labels)
        macros.append(macro)
        micro, made = _turns(record, world, days, seat, mornings, rows + first, issues)
        micro["return_to_go"] = macro["return_to_go"][micro["day_row"] - first]
        micro["history_start"] = micro["history_start"] + n_offers
        micros.append(micro)
        offers.append(made[:-1])
        n_offers += len(made) - 1
        skipped += int((rows < 0).sum())
        first += len(macro["day"])
    offers.append(np.zeros((1, offers[0].shape[1]), np.float32))
    return WorldSamples(_join(macros, MACRO, record), _join(micros, MICRO, record), np.concatenate(offers), skipped)


def _mornings(
    record: WorldRecord,
    world: WorldColumns,
    seat: int,
    mornings: Sequence[Observation],
    features: DayArrays,
    labels: Labels,
) -> tuple[Arrays, Ints]:
    """Return the arrays of a factory's mornings, and the row of each day (-1 for a day that is left out)."""
    role = features.x_role
    kept = np.flatnonzero(role.any(axis=1) & ~world.bankrupt[:, seat])
    goals = day_goals(record, world, seat, mornings, labels)
    traded = role[kept][:, :, None] > 0
    quantity = np.where(traded, goals.quantity[kept], 0.0)
    score, initial = float(record.factories[seat]["score"]), mornings[0].initial_balance
    cash = np.array([obs.cash for obs in mornings])
    rows = np.full(len(mornings), -(10**9))
    rows[kept] = np.arange(len(kept))
    return {
        "x_static": features.x_static[kept],
        "x_temporal": features.x_temporal[kept],
        "x_role": role[kept],
        "mask": features.mask[kept],
        "goal_q": quantity,
        "goal_p": np.where(quantity > 0, goals.price[kept], 0.0),
        "goal_p_mask": quantity > 0,
        "lines": np.full(len(kept), mornings[0].n_lines),
        "price": np.array([(obs.price_in, obs.price_out) for obs in mornings])[kept],
        "return_to_go": (score - cash / initial)[kept] if initial else np.zeros(len(kept)),
        "factory": np.full(len(kept), seat),
        "day": kept,
    }, rows


def _turns(
    record: WorldRecord,
    world: WorldColumns,
    days: WorldDays,
    seat: int,
    mornings: Sequence[Observation],
    rows: Ints,
    issues: tuple[Ints, Ints],
) -> tuple[Arrays, Floats32]:
    """Return the arrays of a factory's turns, in the order of negotiations, and the rows of its histories."""
    turns = np.flatnonzero(world.factory == seat)
    turns = turns[rows[world.day[world.thread[turns]]] >= 0]
    thread = world.thread[turns]
    day = world.day[thread]
    features = thread_arrays(world, days, seat, turns)
    plain = baselines(world, seat, record.names, plans_of(record, world, seat, mornings), turns)
    low, high = issues
    at = (day, world.product[thread])
    op = world.op[turns]
    return {
        "history_start": features.start,
        "history_count": features.count,
        "ranges": features.ranges,
        "x_thread": features.x_thread,
        "x_partner": features.x_partner,
        "day_row": rows[day],
        "op": op,
        "offer": _offers(world, world.own_offer[turns], op == REJECT, day),
        "received": _offers(world, world.received[turns], world.answers[turns], day),
        "baseline_op": plain.op,
        "baseline": plain.counter,
        "issue_low": low[at],
        "issue_high": high[at],
        "taken": world.taken[turns],
        "side": np.where(world.buyer[thread] == seat, 0, 1),
        "thread": thread,
        "round": world.round[turns],
    }, features.rows


def _offers(world: WorldColumns, place: Ints, known: Bools, day: Ints) -> Ints:
    """Return offers as quantity, lead and unit price, -1 where there is none."""
    found = np.full((len(place), 3), -1)
    found[known] = world.offers[place[known]]
    found[known, 1] -= day[known]
    return found


def _issues(days: WorldDays) -> tuple[Ints, Ints]:
    """Return the legal ranges of quantity, lead and unit price, [day, product, issue]."""
    low, high = days.ends[:, :, 0::2].copy(), days.ends[:, :, 1::2].copy()
    for ends in (low, high):
        ends[:, :, 1] -= np.arange(days.n_days)[:, None]
    return low, high


def _join(parts: Sequence[Arrays], types: dict[str, str], record: WorldRecord) -> Arrays:
    joined = {
        name: np.concatenate([part[name] for part in parts]).astype(kind, copy=False) for name, kind in types.items()
    }
    for name in _CHECKED & joined.keys():
        values = joined[name]
        if not np.isfinite(values).all():
            row = int(np.argwhere(~np.isfinite(values))[0][0])
            raise BadSampleError(
                f"{name!r} of sample {row} of world {record.facts['world']} is not finite",
                "samples are made of finite numbers",
                "look for NaN in that world's tables days, markets and factories, and leave the world out",
            )
    return joined
