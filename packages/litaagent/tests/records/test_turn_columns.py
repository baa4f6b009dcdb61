"""Turns in order of negotiation, with the moment at which each was decided."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from litaagent_std.records.turn_columns import turn_columns

TURN = st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 4))  # does the seat decide now, negotiation, seat


def _plain(days):
    """The same, told one by one: rows of day, negotiation, place, decided, seat."""
    rows = []
    for day, turns in enumerate(days):
        latest = {}
        for place, (decides, negotiation, seat) in enumerate(turns):
            if decides:
                latest[seat] = place
            rows.append((day, negotiation, place, latest.get(seat, place), seat))
    return sorted(rows)


@given(st.lists(st.lists(TURN, max_size=12), min_size=1, max_size=4))
def test_columns_equal_a_plain_account(days):
    flat, starts, decisions = [], [], []
    for turns in days:
        starts.append(len(flat))
        for decides, negotiation, seat in turns:
            if decides:
                decisions.extend((len(flat), seat))
            flat.extend((negotiation, 0, seat, 1, 1, 2, 3))
    columns = turn_columns(flat, starts, decisions)
    made = np.column_stack([columns.day, columns.rows[:, 0], columns.index, columns.decided, columns.rows[:, 2]])
    expected = _plain(days)
    assert [tuple(row) for row in made.tolist()] == expected
    threads = sorted({(day, negotiation) for day in range(len(days)) for negotiation in range(4)})
    counts = columns.counts(*np.array(threads, np.int32).T)
    assert counts.tolist() == [sum(row[:2] == thread for row in expected) for thread in threads]
