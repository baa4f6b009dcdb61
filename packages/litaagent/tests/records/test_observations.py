"""The columns of a record are the observations that live agents had: two builders, one struct."""

from dataclasses import fields

import numpy as np
import pytest

from litaagent_std.policy.columns import ObservationBatch, histories, live_threads
from litaagent_std.records.columns import WorldColumns
from litaagent_std.records.storage.segment import RecordsDamagedError
from litaagent_std.records.threads import recorded_threads


@pytest.fixture(scope="module")
def watched(watched_setup, watching_agents, record_world):
    """A world with bankruptcies, and what its agents noted at the start of their days."""
    watching_agents.DAYS.clear()
    record = record_world(watched_setup(11, poor=True))
    return record, dict(watching_agents.DAYS)


def assert_same(made, expected, name=""):
    for field in fields(expected):
        mine, theirs = getattr(made, field.name), getattr(expected, field.name)
        if hasattr(theirs, "__dataclass_fields__"):
            assert_same(mine, theirs, f"{name}{field.name}.")
        else:
            assert np.array_equal(mine, theirs), f"{name}{field.name}"
            assert mine.dtype.kind == theirs.dtype.kind, f"{name}{field.name}"


def test_a_batch_of_a_record_is_that_of_its_agents_observations(watched):
    record, noted = watched
    assert any(row["bankrupt_day"] is not None for row in record.factories)
    seats = [seat for level in (0, 1) for seat in record.days.seats_at(level).tolist()][::-1]
    live = [obs for seat in seats for obs in noted[record.names[seat]]]
    assert_same(record.days.batch(seats), ObservationBatch.of(live))


def test_threads_of_a_record_are_those_that_factories_knew(watched):
    record, noted = watched
    world, seats = record.columns, [3, 0, len(record.names) - 1]
    turns = [np.flatnonzero(world.factory == seat) for seat in seats]
    known = recorded_threads(world, record.days, seats, turns)
    live, rows = [], []
    for index, seat in enumerate(seats):
        by_turn = sorted(_decisions(record, seat))
        assert [row for row, _ in by_turn] == turns[index].tolist()
        live += [thread for _, thread in by_turn]
        rows += [index * record.days.n_days + thread.day for _, thread in by_turn]
    observations = [obs for seat in seats for obs in noted[record.names[seat]]]
    assert len(live) > 300
    assert_same(known.threads, live_threads(live, observations, rows))
    offers, start, count = histories(live, rows)
    assert np.array_equal(known.count, count)
    for number, (first, length) in enumerate(zip(known.start, count, strict=True)):
        own, theirs = np.arange(first, first + length), np.arange(start[number], start[number] + length)
        assert_same(known.offers.take(own), offers.take(theirs))


def _decisions(record, seat):
    from litaagent_std.records.threads import decisions

    return [(row, thread) for thread, row in decisions(record.tables, record.columns, record.days, seat)]


def test_turns_that_do_not_follow_their_negotiations_are_refused(watched):
    record, _ = watched
    damaged = {**record.tables, "turns": record.tables["turns"].slice(1)}
    with pytest.raises(RecordsDamagedError, match="do not follow its negotiations"):
        WorldColumns.of(damaged)
