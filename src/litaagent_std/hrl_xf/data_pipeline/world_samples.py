"""All samples of one world: the arrays of a dataset before they are gathered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from litaagent_std.hrl_xf.data_pipeline.baseline import baselines, plans_of
from litaagent_std.hrl_xf.data_pipeline.columns import REJECT, Ints, WorldColumns
from litaagent_std.hrl_xf.data_pipeline.day_arrays import DayArrays, day_arrays
from litaagent_std.hrl_xf.data_pipeline.days import WorldDays
from litaagent_std.hrl_xf.data_pipeline.errors import BadSampleError
from litaagent_std.hrl_xf.data_pipeline.labels import day_goals
from litaagent_std.hrl_xf.data_pipeline.options import Labels
from litaagent_std.hrl_xf.data_pipeline.thread_arrays import thread_arrays
from litaagent_std.policy.observation import Observation
from litaagent_std.records.world import WorldRecord

__all__ = ["MACRO", "MICRO", "Arrays", "WorldSamples", "world_samples"]

Arrays = dict[str, NDArray[Any]]

_FEATURES: Final = ("x_static", "x_temporal", "x_role", "mask")

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
    "history": "f4",
    "history_mask": "?",
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
"""Types of the arrays of a world's turns; a dataset adds ``return_norm``, ``config`` and ``world``."""


@dataclass(frozen=True, slots=True)
class WorldSamples:
    """Samples of a world.

    Attributes:
        macro: Arrays of `MACRO`, a row for each morning of a chosen factory that has somebody to trade with.
        micro: Arrays of `MICRO`, a row for each turn of a chosen factory; ``day_row`` counts from this world's
            first morning.
        skipped: Mornings left out: the factory is bankrupt, or all its partners are.
    """

    macro: Arrays
    micro: Arrays
    skipped: int


def world_samples(
    record: WorldRecord, seats: Sequence[int], *, labels: Labels = "intention", horizon: int | None = None
) -> WorldSamples:
    """Makes the samples of some factories of a world.

    Args:
        record: The world.
        seats: The factories.
        labels: What counts as L2's goal.
        horizon: Delivery days after today to make room for; the league's own when None.

    Raises:
        BadSampleError: If a value is not finite.
    """
    world, days = WorldColumns.of(record), WorldDays.of(record)
    features, partners = day_arrays(days, seats, horizon), days.partners()
    macros, micros, skipped, first = [], [], 0, 0
    for place, seat in enumerate(seats):
        mornings = days.observations(seat, partners)
        of_seat = DayArrays(*(getattr(features, name)[:, place] for name in _FEATURES))
        macro, rows = _mornings(record, world, seat, mornings, of_seat, labels)
        macros.append(macro)
        micros.append(_turns(record, world, seat, mornings, rows + first, macro["return_to_go"], first))
        skipped += int((rows < 0).sum())
        first += len(macro["day"])
    return WorldSamples(_join(macros, MACRO, record), _join(micros, MICRO, record), skipped)


def _mornings(
    record: WorldRecord,
    world: WorldColumns,
    seat: int,
    mornings: Sequence[Observation],
    features: DayArrays,
    labels: Labels,
) -> tuple[Arrays, Ints]:
    """Returns the arrays of a factory's mornings, and the row of each day (-1 for a day that is left out)."""
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
    seat: int,
    mornings: Sequence[Observation],
    rows: Ints,
    returns: NDArray[Any],
    first: int,
) -> Arrays:
    """Returns the arrays of a factory's turns, in the order of negotiations."""
    turns = np.flatnonzero(world.factory == seat)
    thread = world.thread[turns]
    day = world.day[thread]
    turns = turns[rows[day] >= 0]
    thread, day = world.thread[turns], world.day[world.thread[turns]]
    features = thread_arrays(world, seat, record.names, mornings, turns)
    plain = baselines(world, seat, record.names, plans_of(record, world, seat, mornings), turns)
    buying = world.buyer[thread] == seat
    low, high = _issues(mornings)
    side = np.where(buying, 0, 1)
    op = world.op[turns]
    return {
        "history": features.history,
        "history_mask": features.mask,
        "ranges": features.ranges,
        "x_thread": features.x_thread,
        "x_partner": features.x_partner,
        "day_row": rows[day],
        "op": op,
        "offer": _offers(world, world.own_offer()[turns], op == REJECT, day),
        "received": _offers(world, world.received()[turns], world.answers[turns], day),
        "baseline_op": plain.op,
        "baseline": plain.counter,
        "issue_low": low[day, side],
        "issue_high": high[day, side],
        "taken": world.taken[turns],
        "side": side,
        "thread": thread,
        "round": world.round[turns],
        "return_to_go": returns[rows[day] - first],
    }


def _offers(world: WorldColumns, place: Ints, known: NDArray[np.bool_], day: Ints) -> Ints:
    """Returns offers as quantity, lead and unit price, -1 where there is none."""
    found = np.full((len(place), 3), -1)
    found[known] = world.offers[place[known]]
    found[known, 1] -= day[known]
    return found


def _issues(mornings: Sequence[Observation]) -> tuple[Ints, Ints]:
    """Returns the legal ranges of quantity, lead and unit price, [day, side, issue]; -1 on a side without an agenda."""
    low, high = (np.full((len(mornings), 2, 3), -1) for _ in range(2))
    for day, obs in enumerate(mornings):
        for side, agenda in enumerate((obs.buy_agenda, obs.sell_agenda)):
            if agenda is not None:
                low[day, side] = (agenda.quantity_min, agenda.time_min - day, agenda.price_min)
                high[day, side] = (agenda.quantity_max, agenda.time_max - day, agenda.price_max)
    return low, high


def _join(parts: Sequence[Arrays], types: dict[str, str], record: WorldRecord) -> Arrays:
    joined = {
        name: np.concatenate([part[name] for part in parts]).astype(kind, copy=False) for name, kind in types.items()
    }
    for name, values in joined.items():
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            row = int(np.argwhere(~np.isfinite(values))[0][0])
            raise BadSampleError(
                f"{name!r} of sample {row} of world {record.facts['world']} is not finite",
                "samples are made of finite numbers",
                "look for NaN in that world's tables days, markets and factories, and leave the world out",
            )
    return joined
