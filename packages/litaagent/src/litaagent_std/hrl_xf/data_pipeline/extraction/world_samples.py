"""All samples of one world: the arrays of a dataset before they are gathered."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np

from litaagent_std.hrl_xf.data_pipeline.errors import BadSampleError
from litaagent_std.hrl_xf.data_pipeline.extraction.heuristic import Heuristic, History, fold_heuristic
from litaagent_std.hrl_xf.data_pipeline.extraction.labels import day_goals
from litaagent_std.hrl_xf.data_pipeline.options import Decisions, Labels
from litaagent_std.policy.arrays import Array, Bools, Floats32, Ints
from litaagent_std.policy.columns import ObservationBatch
from litaagent_std.policy.features import ThreadFeatures, WiderHorizonWarning, day_features, thread_features
from litaagent_std.policy.l1.thread import thread_baseline
from litaagent_std.records.columns import REJECT, WorldColumns
from litaagent_std.records.observations import WorldDays
from litaagent_std.records.reasons import TURN_REASONS, turn_decisions, turn_reasons
from litaagent_std.records.threads import recorded_threads
from litaagent_std.records.world import WorldRecord

__all__ = ["MACRO", "MICRO", "REASONS", "Arrays", "WorldSamples", "pad_histories", "samples_of_worlds", "world_samples"]

Arrays = dict[str, Array]

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
    "base": "f4",
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
    "base_op": "i1",
    "base_offer": "i4",
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

REASONS: Final[dict[str, str]] = {f"reason_{name}": "f4" for name in TURN_REASONS}
"""Further arrays of a world's turns, if reasons are asked for; NaN where the record has none."""


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
    features = (micro[name] for name in ("history_start", "history_count", "ranges", "x_thread", "x_partner"))
    history, mask = ThreadFeatures(offers, *features).padded(2 * n_rounds)
    return {"history": history, "history_mask": mask, **rest}


def world_samples(
    record: WorldRecord,
    seats: Sequence[int],
    *,
    labels: Labels = "intention",
    decisions: Decisions = "taken",
    horizon: int | None = None,
    reasons: bool = False,
) -> WorldSamples:
    """Make the samples of some factories of a world; see `samples_of_worlds`."""
    return samples_of_worlds([(record, seats)], labels=labels, decisions=decisions, horizon=horizon, reasons=reasons)[0]


def samples_of_worlds(
    worlds: Sequence[tuple[WorldRecord, Sequence[int]]],
    *,
    labels: Labels = "intention",
    decisions: Decisions = "taken",
    horizon: int | None = None,
    reasons: bool = False,
) -> list[WorldSamples]:
    """Make the samples of some factories of each of some worlds.

    The heuristic is folded over all worlds as one batch, which takes a fraction of the time of one after the other; a
    world's samples do not depend on the worlds beside it.

    Args:
        worlds: The worlds, and the factories of each.
        labels: What counts as L2's goal.
        decisions: What counts as L3's decision: the one that was taken, or the one that the reasons name.
        horizon: Delivery days after today that the arrays hold; default: the league's horizon.
        reasons: Whether turns have the arrays of `REASONS`, too.

    Raises:
        BadSampleError: If a value is not finite, or no decision has reasons that are asked for.
    """
    with _collector_paused():
        read = [_read(record, seats, labels, horizon) for record, seats in worlds]
        folded = fold_heuristic([world.history for world in read])
        samples = [_samples(world, heuristic) for world, heuristic in zip(read, folded, strict=True)]
    for world, made in zip(read, samples, strict=True):
        record, turns = world.history.record, world.history.turns
        if decisions == "reasons":
            _relabel(made.micro, record, turns)
        if reasons:
            known = turn_reasons(record.tables, record.columns)
            made.micro.update({f"reason_{name}": values[turns].astype("f4") for name, values in known.items()})
    return samples


def _relabel(micro: Arrays, record: WorldRecord, turns: Ints) -> None:
    """Replace the decisions at turns by those that the recorded reasons name, where there are any.

    Whether a partner would have taken another counter-offer is not known.

    Raises:
        BadSampleError: If there are none.
    """
    op, offer = (values[turns] for values in turn_decisions(record.tables, record.columns))
    known = op >= 0
    if len(turns) and not known.any():
        raise BadSampleError(
            f"world {record.facts['world']} has no reasons of these factories",
            "decisions of reasons need a record that holds them",
            "collect with --reasons, or use --decisions taken",
        )
    counters = op == REJECT
    day = record.columns.day[record.columns.thread[turns]]
    offer[counters, 1] -= day[counters]  # from delivery day to lead
    same = (op == micro["op"]) & (offer == micro["offer"]).all(1)
    micro["taken"] = np.where(known & ~same, -1, micro["taken"]).astype(MICRO["taken"])
    micro["op"] = np.where(known, op, micro["op"]).astype(MICRO["op"])
    micro["offer"] = np.where(known[:, None], offer, micro["offer"]).astype(MICRO["offer"])


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


@dataclass(frozen=True, slots=True)
class _Read:
    """A world before the heuristic is folded over it.

    Attributes:
        history: What its factories knew and did.
        macro: Arrays of their days, without the heuristic's.
        rows: The row of each day, [seat, day]; -1 for a day that is left out.
        turns: The turns of each factory.
        features: Features of the turns.
    """

    history: History
    macro: Arrays
    rows: Ints
    turns: Sequence[Ints]
    features: ThreadFeatures


def _read(record: WorldRecord, seats: Sequence[int], labels: Labels, horizon: int | None) -> _Read:
    world, days = record.columns, record.days
    obs = days.batch(seats)  # [B] all days of the first factory, then of the second, …
    macro, rows = _days(record, seats, obs, labels, horizon)
    turns = [_own_turns(world, seat, macro) for seat in seats]
    known = recorded_threads(world, days, seats, turns)
    with _named_features():
        features = thread_features(known.threads, obs, known.offers, known.start, known.count)
    return _Read(History(record, seats, obs, known.threads, np.concatenate(turns)), macro, rows, turns, features)


def _samples(read: _Read, heuristic: Heuristic) -> WorldSamples:
    history, macro, rows, features = read.history, read.macro, read.rows, read.features
    record = history.record
    macro["base"] = heuristic.goals[(rows >= 0).ravel()]
    baseline = thread_baseline(history.threads, history.obs, heuristic.plans, heuristic.parameters)
    micro = _turns(record, history.seats, read.turns, rows, features, baseline, heuristic)
    micro["return_to_go"] = macro["return_to_go"][micro["day_row"]]
    skipped = int((rows < 0).sum())
    return WorldSamples(_checked(macro, MACRO, record), _checked(micro, MICRO, record), features.rows, skipped)


def _own_turns(world: WorldColumns, seat: int, macro: Arrays) -> Ints:
    """Return a factory's turns on days that are kept."""
    own = np.flatnonzero(world.factory == seat)
    return own[np.isin(world.day[world.thread[own]], macro["day"][macro["factory"] == seat])]


@contextmanager
def _named_features() -> Iterator[None]:
    """Report a feature that is not finite as a bad sample."""
    try:
        yield
    except ValueError as error:
        raise BadSampleError(
            str(error), "features are finite", "look for NaN in that world's tables, and leave the world out"
        ) from error


def _days(
    record: WorldRecord, seats: Sequence[int], obs: ObservationBatch, labels: Labels, horizon: int | None
) -> tuple[Arrays, Ints]:
    """Return the arrays of the factories' days, and the row of each day, [seat, day]; -1 for a day that is left out."""
    world, n_days = record.columns, record.days.n_days
    with _named_features(), warnings.catch_warnings():
        warnings.simplefilter("ignore", WiderHorizonWarning)  # a build says so once
        features = day_features(obs, horizon)
    role = features.x_role
    kept = role.any(axis=1) & ~world.bankrupt[:, seats].T.ravel()  # [B]
    rows = np.where(kept, np.cumsum(kept) - 1, -1).reshape(len(seats), n_days)
    own = [slice(index * n_days, (index + 1) * n_days) for index in range(len(seats))]
    goals = [day_goals(record, seat, obs.take(days), labels) for seat, days in zip(seats, own, strict=True)]
    traded = role[kept][:, :, None] > 0  # [day, side, 1]
    quantity = np.where(traded, np.concatenate([goal.quantity for goal in goals])[kept], 0.0)
    score = np.repeat([float(record.factories[seat]["score"]) for seat in seats], n_days)
    initial = obs.initial_balance
    return_to_go = np.where(initial != 0, score - np.divide(obs.cash, np.where(initial != 0, initial, 1.0)), 0.0)
    return {
        "x_static": features.x_static[kept],
        "x_temporal": features.x_temporal[kept],
        "x_role": role[kept],
        "mask": features.mask[kept],
        "goal_q": quantity,
        "goal_p": np.where(quantity > 0, np.concatenate([goal.price for goal in goals])[kept], 0.0),
        "goal_p_mask": quantity > 0,
        "lines": obs.n_lines[kept],
        "price": obs.price[kept],
        "return_to_go": return_to_go[kept],
        "factory": np.repeat(seats, n_days)[kept],
        "day": obs.day[kept],
    }, rows


def _turns(
    record: WorldRecord,
    seats: Sequence[int],
    turns: Sequence[Ints],
    rows: Ints,
    features: ThreadFeatures,
    baseline: tuple[Ints, Ints],
    heuristic: Heuristic,
) -> Arrays:
    """Return the arrays of the factories' turns, those of the first factory first, in the order of negotiations."""
    world = record.columns
    index = np.repeat(np.arange(len(seats)), [len(own) for own in turns])
    turn, seat = np.concatenate(turns), np.asarray(seats)[index]
    thread = world.thread[turn]
    day = world.day[thread]
    low, high = _issues(record.days)
    at = (day, world.product[thread])  # each turn's index in [day, product]
    op = world.op[turn]
    return {
        "history_start": features.start,
        "history_count": features.count,
        "ranges": features.ranges,
        "x_thread": features.x_thread,
        "x_partner": features.x_partner,
        "day_row": rows[index, day],
        "op": op,
        "offer": _offers(world, world.own_offer[turn], op == REJECT, day),
        "received": _offers(world, world.received[turn], world.answers[turn], day),
        "baseline_op": baseline[0],
        "baseline": baseline[1],
        "base_op": heuristic.op,
        "base_offer": heuristic.offer,
        "issue_low": low[at],
        "issue_high": high[at],
        "taken": world.taken[turn],
        "side": np.where(world.buyer[thread] == seat, 0, 1),
        "thread": thread,
        "round": world.round[turn],
    }


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


def _checked(arrays: Arrays, types: dict[str, str], record: WorldRecord) -> Arrays:
    """Return arrays of the promised types.

    Raises:
        BadSampleError: If a value is not finite.
    """
    checked = {name: arrays[name].astype(kind, copy=False) for name, kind in types.items()}
    for name in _CHECKED & checked.keys():
        values = checked[name]
        if not np.isfinite(values).all():
            row = int(np.argwhere(~np.isfinite(values))[0][0])
            raise BadSampleError(
                f"{name!r} of sample {row} of world {record.facts['world']} is not finite",
                "samples are made of finite numbers",
                "look for NaN in that world's tables days, markets and factories, and leave the world out",
            )
    return checked
