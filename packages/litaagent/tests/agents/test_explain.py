"""Explaining a world: by its record, or again, where the log of the second run is what the first run did."""

import dataclasses

import pytest

from apexrl.runs.errors import ConfigurationError
from litaagent_std.agents.explain import explain, from_record, from_seed, from_source
from litaagent_std.records.reader import WorldKey, open_records
from litaagent_std.records.reasons import goal_of, reason

PATH = "litaagent_std.agents.hrl.LitaAgentHRL"
RESPONSES = {"accept": 0, "reject": 1, "end": 2}


@pytest.fixture(scope="module")
def tournament(collect, tmp_path_factory):
    """Two worlds, with our agent in one seat of each."""
    return collect(tmp_path_factory.mktemp("tournament") / "run", competitors=(PATH, "RandomStd"), csv=False)


@pytest.mark.parametrize("world", [0, 1])
def test_the_log_of_a_replay_is_what_the_records_hold(tournament, world):
    record = open_records(tournament).world(WorldKey(0, world))
    replay = from_source(tournament, world)
    [seat] = replay.seats
    day = 3
    threads = {}
    for thread, turn in record.decisions(seat):
        if thread.day == day:
            threads.setdefault(thread.partner, []).append((thread, turn))
    assert threads
    for partner, turns in threads.items():
        found = explain(replay, day, partner)
        assert found.agent == record.names[seat]
        assert [r.round for r in found.records] == [thread.round for thread, _ in turns]
        for one, (thread, turn) in zip(found.records, turns, strict=True):
            assert one.received == thread.offer
            if turn.response is not None:
                assert RESPONSES[one.decision.kind] == turn.response
            if one.decision.kind == "reject":
                assert one.decision.offer == turn.offer
            assert reason(one)


def test_a_record_with_reasons_says_what_a_replay_says(collect, tmp_path):
    folder = collect(tmp_path / "run", competitors=(PATH, "RandomStd"), csv=False, reasons=True)
    record = open_records(folder).world(WorldKey(0, 1))
    replay = from_source(folder, 1)
    [seat] = replay.seats
    partners = sorted({thread.partner for thread, _ in record.decisions(seat) if thread.day == 3})
    assert partners
    for partner in partners:
        recorded, played = from_record(folder, 1, 3, partner), explain(replay, 3, partner)
        assert recorded == dataclasses.replace(played, origin=recorded.origin)
        assert recorded.origin.endswith("as recorded")
    with pytest.raises(ConfigurationError, match="days 0 to 5"):
        from_record(folder, 1, 6, "anybody")
    with pytest.raises(ConfigurationError, match=r"with 'anybody' on day 2.*by seat: seat"):
        from_record(folder, 1, 2, "anybody")
    with pytest.raises(ConfigurationError, match=f"seat {seat + 1} is not ours"):
        from_record(folder, 1, 2, "anybody", seat + 1)


def test_records_without_reasons_are_played_again(tournament, tmp_path):
    assert from_record(tournament, 0, 3, "anybody") is None
    assert from_record(tournament, 9, 3, "anybody") is None
    assert from_record(tmp_path, 0, 3, "anybody") is None


def test_what_does_not_exist_is_named_with_what_does(tournament, tmp_path):
    replay = from_source(tournament, 0)
    with pytest.raises(ConfigurationError, match="days 0 to 5"):
        explain(replay, 6, "anybody")
    with pytest.raises(ConfigurationError, match=r"with 'anybody' on day 2.*by seat: seat"):
        explain(replay, 2, "anybody")
    other = next(seat for seat in range(replay.setup.n_seats) if seat not in replay.seats)
    with pytest.raises(ConfigurationError, match=f"seat {other} is not ours"):
        explain(replay, 2, "anybody", other)
    with pytest.raises(ConfigurationError, match="worlds 0 to 1"):
        from_source(tournament, 2)
    with pytest.raises(ConfigurationError, match="neither a tournament nor an evaluation"):
        from_source(tmp_path, 0)
    with pytest.raises(ConfigurationError, match="no agent of ours plays"):
        explain(from_seed(3, "RandomStd", days=6, levels=2), 2, "anybody")


def test_where_several_of_ours_meet_a_partner_a_seat_is_asked_for():
    replay = from_seed(3, days=6, levels=2)
    with pytest.raises(ConfigurationError, match="seats 6, 7"):
        explain(replay, 2, "00LHR@0")
    assert explain(replay, 2, "00LHR@0", 7).seat == 7


def test_other_proposals_are_within_the_goal():
    found = explain(from_seed(3, days=6, levels=2), 2, "09Gr@1")
    others = [(one, offer) for one in found.records for offer, _ in one.alternatives]
    assert others
    assert all(offer.quantity <= goal_of(one, offer.time)[0] for one, offer in others)
    assert all(offer != one.decision.offer for one, offer in others)
