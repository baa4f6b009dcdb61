"""Explaining a world again: the log of the second run is what the first run did."""

from dataclasses import replace

import pytest

from apexrl.runs.errors import ConfigurationError
from litaagent_std.agents.explain import explain, from_seed, from_source, goal_of, reason, types_text
from litaagent_std.policy.brain import Decision, DecisionRecord
from litaagent_std.policy.observation import Offer
from litaagent_std.policy.plan import Bounds, Goals
from litaagent_std.records.reader import WorldKey, open_records

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


def record(*, kind="reject", buying=False, received=None, proposed=None, offer=None, q=(5, 0), limit=20.0):
    decision = Decision(kind, offer)
    goals = Goals(
        (5, 0) if not buying else q, (20.0, 20.0), q if not buying else (5, 0), (20.0, 20.0), (0.0, 0.0), 30.0
    )
    bounds = Bounds((10, 10), (10, 10), (10, 10), 9)
    reservation = None if received is None else limit
    return DecisionRecord(2, 1, "p", buying, received, decision, proposed, goals, bounds, reservation, 0.25, ())


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (record(received=Offer(3, 2, 18), proposed=Offer(4, 2, 21), offer=Offer(4, 2, 21)),
         "its price 18 misses our limit of at least 20; the best proposal is 4 at 21 for day 2, taken with "
         "probability 0.25"),
        (record(buying=True, received=Offer(3, 2, 22), proposed=Offer(9, 2, 19), offer=Offer(4, 2, 19)),
         "its price 22 misses our limit of at most 20; the best proposal is 4 at 19 for day 2 (L1 made it out of "
         "9 at 19 for day 2), taken with probability 0.25"),
        (record(received=Offer(6, 2, 21), proposed=Offer(5, 2, 22), offer=Offer(5, 2, 22)),
         "6 units are more than the goal of 5 for day 2; the best proposal is 5 at 22 for day 2, taken with "
         "probability 0.25"),
        (record(received=Offer(4, 2, 21), proposed=Offer(5, 2, 22), offer=Offer(5, 2, 22)),
         "other offers are worth more together, or the same units are already on a table; the best proposal is "
         "5 at 22 for day 2, taken with probability 0.25"),
        (record(proposed=Offer(5, 2, 22), offer=Offer(5, 2, 22)),
         "it is ours to open; the best proposal is 5 at 22 for day 2, taken with probability 0.25"),
        (record(kind="accept", received=Offer(4, 2, 21), offer=Offer(4, 2, 21)),
         "its price 21 keeps our limit of at least 20; it is among the offers that are worth most together"),
        (record(kind="end", buying=True, q=(0, 0)), "there is nothing to buy, so the thread ends"),
        (record(kind="end"),
         "nothing that may be offered here gains by it, though 5 units are still to sell, so the thread ends"),
        (record(kind="end", proposed=Offer(4, 2, 21)), "L1 leaves nothing of 4 at 21 for day 2, so the thread ends"),
    ],
)  # fmt: skip
def test_reasons_name_limit_goal_clip_and_chance(made, expected):
    assert reason(made) == expected


def test_a_learned_layers_weight_is_named():
    weighed = replace(record(proposed=Offer(5, 2, 22), offer=Offer(5, 2, 22)), alpha=0.5)
    assert reason(weighed).endswith("taken with probability 0.25, α 0.50")


def test_goals_beyond_the_horizon_are_none():
    assert goal_of(record(), 2) == (5, 20.0)
    assert goal_of(record(), 99) == (0, 0.0)


def test_other_proposals_are_within_the_goal():
    found = explain(from_seed(3, days=6, levels=2), 2, "09Gr@1")
    others = [(one, offer) for one in found.records for offer, _ in one.alternatives]
    assert others
    assert all(offer.quantity <= goal_of(one, offer.time)[0] for one, offer in others)
    assert all(offer != one.decision.offer for one, offer in others)


def test_types_and_urgency_are_named():
    known = replace(record(proposed=Offer(5, 2, 22), offer=Offer(5, 2, 22)), types=(0.02, 0.9, 0.08, 0.0), urgency=0.4)
    assert types_text(known) == "greedy 0.90, sharing 0.08"
    assert reason(known).endswith("taken with probability 0.25, urgency 0.40")
    assert types_text(record()) == "–"
