"""Turns and ends in order of negotiation, with the moment at which each turn was decided."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from litaagent_std.records.negotiation_columns import DECIDED, FAILED, REASONS, negotiation_columns
from litaagent_std.world.events import ACCEPT, AGREEMENT, BROKEN, END, ENDED, ERROR, NOTHING, TIMEDOUT

TURN = st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 4))  # does the seat decide now, negotiation, seat
SILENT = (NOTHING, NOTHING, NOTHING)


def _packed(*days):
    return [np.array([number for row in rows for number in row], np.int32) for rows in days]


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
    emitted = []
    for turns in days:
        rows = []
        for decides, negotiation, seat in turns:
            if decides:
                rows.append((NOTHING, NOTHING, seat, DECIDED, *SILENT))
            rows.append((negotiation, 0, seat, 1, 1, 2, 3))
        rows.extend((negotiation, 1, 0, ENDED + TIMEDOUT, 0, 1, 1) for negotiation in (3, 1, 0, 2))
        emitted.append(rows)
    columns = negotiation_columns(_packed(*emitted))
    turns = columns.turns
    made = np.column_stack([turns.day, turns.rows[:, 0], turns.index, turns.decided, turns.rows[:, 2]])
    expected = _plain(days)
    assert [tuple(row) for row in made.tolist()] == expected
    threads = [(day, negotiation) for day in range(len(days)) for negotiation in range(4)]
    ends = columns.ends
    assert list(zip(ends.day.tolist(), ends.rows[:, 0].tolist(), strict=True)) == threads
    assert ends.n_turns.tolist() == [sum(row[:2] == thread for row in expected) for thread in threads]
    places = [[row[2] for row in expected if row[:2] == thread] for thread in threads]
    assert all(not found or last == found[-1] for last, found in zip(ends.last_turn.tolist(), places, strict=True))


def _ends(*rows):
    ends = negotiation_columns(_packed([], rows)).ends
    return [
        (int(day), REASONS[reason], int(by), tuple(terms))
        for day, reason, by, terms in zip(ends.day, ends.reason, ends.ended_by, ends.terms.tolist(), strict=True)
    ]


def test_the_latest_offer_is_the_agreement_and_the_accepting_seat_ended_it():
    assert _ends(
        (0, 0, 2, NOTHING, 5, 1, 10),
        (1, 0, 2, NOTHING, 9, 9, 99),
        (0, 0, 4, 1, 6, 3, 12),
        (0, 1, 2, ACCEPT, *SILENT),
        (0, 2, 2, ENDED + AGREEMENT, 2, 4, 1),
        (1, 0, 5, END, *SILENT),
        (1, 1, 2, ENDED + BROKEN, 2, 5, 1),
    ) == [(1, "accepted", 2, (6, 3, 12)), (1, "ended", 5, SILENT)]


def test_a_negotiation_without_an_offer_was_ended_by_its_caller():
    assert _ends((0, 1, 3, ENDED + BROKEN, 3, 4, 1)) == [(1, "no_offer", 3, SILENT)]
    answered = (1, 0, 7, END, *SILENT)  # of another negotiation
    assert _ends(answered, (0, 1, 3, ENDED + BROKEN, 3, 4, 1)) == [(1, "no_offer", 3, SILENT)]


def test_rounds_that_are_over_and_exceptions_are_causes_too():
    offer, failed = (0, 0, 2, NOTHING, 5, 1, 10), (NOTHING, NOTHING, 6, FAILED, *SILENT)
    assert _ends(offer, (0, 20, 2, ENDED + TIMEDOUT, 2, 4, 1)) == [(1, "rounds_over", NOTHING, SILENT)]
    assert _ends(offer, failed, (0, 1, 2, ENDED + ERROR, 2, 6, 1)) == [(1, "error", 6, SILENT)]


def test_contracts_keep_the_order_in_which_they_were_concluded():
    rows = [(number, 0, 1, NOTHING, 1, 1, 1) for number in (0, 1, 2)]
    rows += [(number, 1, 0, ENDED + AGREEMENT, 0, 1, 1) for number in (2, 0, 1)]
    ends = negotiation_columns(_packed(rows)).ends
    assert ends.rows[ends.concluded, 0].tolist() == [2, 0, 1]
