"""A decision in words."""

from dataclasses import replace

import pytest

from litaagent_std.policy.brain import Decision, DecisionRecord
from litaagent_std.policy.observation import Offer
from litaagent_std.policy.plan import Bounds, Goals
from litaagent_std.records.reasons import goal_of, reason, types_text


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


def test_types_and_urgency_are_named():
    known = replace(record(proposed=Offer(5, 2, 22), offer=Offer(5, 2, 22)), types=(0.02, 0.9, 0.08, 0.0), urgency=0.4)
    assert types_text(known) == "greedy 0.90, sharing 0.08"
    assert reason(known).endswith("taken with probability 0.25, urgency 0.40")
    assert types_text(record()) == "–"
