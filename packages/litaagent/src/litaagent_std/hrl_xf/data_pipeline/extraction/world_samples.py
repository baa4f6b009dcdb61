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

__all__ = ["MACRO", "MICRO", "Arrays", "WorldSamples", "pad_histories", "world_samples"]

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
"""Types of the arrays of a world's days; a dataset adds ``return_norm``, ``config`` and ``world``."""

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
"""Types of the arrays of a world's turns; a dataset adds ``return_norm``, ``config`` and ``world``, and has padded
histories instead of ``history_start`` and ``history_count``."""


@dataclass(frozen=True, slots=True)
class WorldSamples:
    """Samples of a world.

    Attributes:
        macro: Arrays of `MACRO`, a row for each day of a selected factory that has a partner to trade with.
        micro: Arrays of `MICRO`, a row for each turn of a selected factory; ``day_row`` counts from this world's
            first row.
        offers: History rows that ``history_start`` counts from, and a last row of zeros.
        skipped: Days left out: the factory is bankrupt, or all its partners are.
    """

    macro: Arrays
    micro: Arrays
    offers: Floats32
    skipped: int


def pad_histories(micro: Arrays, offers: Floats32, n_rounds: int) -> Arrays:
    """Return a world's turns with padded histories instead of ``history_start`` and ``history_count``."""
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
        horizon: Delivery days after today that the arrays hold; default: the league's horizon.

    Raises:
        BadSampleError: If a value is not finite.
    """
    with _collector_paused():
        return _samples(record, seats, labels, horizon)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause the garbage collector, which would scan all observations of a world again and again for cycles."""
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
    for index, seat in enumerate(seats):
        observations = days.observations(seat, partners)
        of_seat = DayArrays(*(getattr(features, name)[:, index] for name in _FEATURES))
        macro, rows = _days(record, world, seat, observations, of_seat, labels)
        macros.append(macro)
        micro, history = _turns(record, world, days, seat, observations, rows + first, issues)
        micro["return_to_go"] = macro["return_to_go"][micro["day_row"] - first]
        micro["history_start"] = micro["history_start"] + n_offers
        micros.append(micro)
        offers.append(history[:-1])
        n_offers += len(history) - 1
        skipped += int((rows < 0).sum())
        first += len(macro["day"])
    offers.append(np.zeros((1, offers[0].shape[1]), np.float32))
    return WorldSamples(_join(macros, MACRO, record), _join(micros, MICRO, record), np.concatenate(offers), skipped)


def _days(
    record: WorldRecord,
    world: WorldColumns,
    seat: int,
    observations: Sequence[Observation],
    features: DayArrays,
    labels: Labels,
) -> tuple[Arrays, Ints]:
    """Return the arrays of a factory's days, and the row of each day (negative for a day that is left out)."""
    role = features.x_role
    kept = np.flatnonzero(role.any(axis=1) & ~world.bankrupt[:, seat])
    goals = day_goals(record, world, seat, observations, labels)
    traded = role[kept][:, :, None] > 0  # [day, side, 1]
    quantity = np.where(traded, goals.quantity[kept], 0.0)
    score, initial = float(record.factories[seat]["score"]), observations[0].initial_balance
    cash = np.array([obs.cash for obs in observations])
    # row of each day; far below zero for days that are left out, also after an offset is added
    rows = np.full(len(observations), -(10**9))
    rows[kept] = np.arange(len(kept))
    return {
        "x_static": features.x_static[kept],
        "x_temporal": features.x_temporal[kept],
        "x_role": role[kept],
        "mask": features.mask[kept],
        "goal_q": quantity,
        "goal_p": np.where(quantity > 0, goals.price[kept], 0.0),
        "goal_p_mask": quantity > 0,
        "lines": np.full(len(kept), observations[0].n_lines),
        "price": np.array([(obs.price_in, obs.price_out) for obs in observations])[kept],
        "return_to_go": (score - cash / initial)[kept] if initial else np.zeros(len(kept)),
        "factory": np.full(len(kept), seat),
        "day": kept,
    }, rows


def _turns(
    record: WorldRecord,
    world: WorldColumns,
    days: WorldDays,
    seat: int,
    observations: Sequence[Observation],
    rows: Ints,
    issues: tuple[Ints, Ints],
) -> tuple[Arrays, Floats32]:
    """Return the arrays of a factory's turns, in the order of negotiations, and the rows of its histories."""
    turns = np.flatnonzero(world.factory == seat)
    turns = turns[rows[world.day[world.thread[turns]]] >= 0]  # turns of days that are kept
    thread = world.thread[turns]
    day = world.day[thread]
    features = thread_arrays(world, days, seat, turns)
    baseline = baselines(world, seat, record.names, plans_of(record, world, seat, observations), turns)
    low, high = issues
    at = (day, world.product[thread])  # each turn's index in [day, product]
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
        "baseline_op": baseline.op,
        "baseline": baseline.counter,
        "issue_low": low[at],
        "issue_high": high[at],
        "taken": world.taken[turns],
        "side": np.where(world.buyer[thread] == seat, 0, 1),
        "thread": thread,
        "round": world.round[turns],
    }, features.rows


def _offers(world: WorldColumns, index: Ints, valid: Bools, day: Ints) -> Ints:
    """Return offers as quantity, lead and unit price ``[turn, 3]``, -1 where there is none."""
    offers = np.full((len(index), 3), -1)
    offers[valid] = world.offers[index[valid]]
    offers[valid, 1] -= day[valid]
    return offers


def _issues(days: WorldDays) -> tuple[Ints, Ints]:
    """Return the legal ranges of quantity, lead and unit price, [day, product, issue]."""
    low, high = days.ends[:, :, 0::2].copy(), days.ends[:, :, 1::2].copy()
    for ends in (low, high):  # from delivery day to lead
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
