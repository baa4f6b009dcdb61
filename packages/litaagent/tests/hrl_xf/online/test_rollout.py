import numpy as np
import pytest

from litaagent_std.hrl_xf.online.hierarchy.play import play_worlds
from litaagent_std.hrl_xf.online.hierarchy.policies import LAYERS, Hierarchy
from litaagent_std.hrl_xf.online.rollout import reference_of
from litaagent_std.hrl_xf.online.worlds import WorldPlan, draw_world, training_seed
from litaagent_std.hrl_xf.rewards import DayWeights, day_reward

PLAN = WorldPlan(seed=training_seed(1, 0), days=(5,), levels=2, seats=2)
WEIGHTS = DayWeights()


def play(policies, rng_seed, plan=PLAN):
    return play_worlds([draw_world(plan)], policies, WEIGHTS, [rng_seed])[0]


@pytest.fixture(scope="module")
def explored(random_networks):
    return play(random_networks(version=7), 3)


def test_every_transition_has_one_version_and_the_days_sum_to_the_score(explored):
    assert explored.version == 7
    assert len(explored.seats) == 2
    for seat in explored.seats:
        assert list(seat.days.day) == sorted(set(seat.days.day))
        assert seat.days.terms["cash"].sum() == pytest.approx(seat.score - 1.0)
        assert seat.days.terms["potential"].sum() == pytest.approx(0.0, abs=1e-12)
        assert seat.days.views.shape[0] == seat.days.actions.shape[0] == len(seat.days.day)


def test_trajectories_are_threads_of_one_day_in_the_order_of_rounds(explored):
    for seat in explored.seats:
        rows = seat.rounds
        assert list(rows.thread) == sorted(rows.thread)
        assert set(rows.thread) == set(range(len(rows.day)))
        assert len({*zip(rows.day, rows.partner, strict=True)}) == len(rows.day)  # one trajectory per negotiation
        for thread in range(len(rows.day)):
            steps = rows.state_of[rows.thread == thread]
            assert len(set(steps.tolist())) == len(steps)  # another round each
        assert rows.terms["liquidity"].shape == rows.day.shape
        assert rows.actions["l3"].shape == (len(rows.thread), 4)
        assert rows.actions["l4"].shape == (len(rows.thread), 1)
        assert rows.views.keys() == rows.log_probs.keys() == {"l3", "l4"}


def test_the_same_rng_seed_gives_the_same_rollout_and_another_seed_another(explored, random_networks):
    again, other = (play(random_networks(version=7), seed) for seed in (3, 4))
    for first, same, different in zip(explored.seats, again.seats, other.seats, strict=True):
        assert first.score == same.score
        np.testing.assert_array_equal(first.rounds.actions["l3"], same.rounds.actions["l3"])
        assert not np.array_equal(first.days.actions, different.days.actions)


def test_the_reference_has_a_reward_for_every_day():
    rollout = play(Hierarchy(), None)
    reference = reference_of(rollout, WEIGHTS)
    for seat in rollout.seats:
        terms = seat.days.terms
        total = sum(day_reward({n: float(v[i]) for n, v in terms.items()}, WEIGHTS) for i in range(len(seat.days.day)))
        assert len(reference[seat.seat]) == rollout.n_days
        assert sum(reference[seat.seat]) == pytest.approx(total)


@pytest.mark.parametrize("size", [0.1, 0.4])
def test_a_rollout_does_not_depend_on_the_worlds_beside_it(random_networks, size):
    policies = random_networks(LAYERS, size)
    worlds = [
        draw_world(WorldPlan(seed=training_seed(1, world), days=(4 + world,), levels=2 + world, seats=2))
        for world in range(3)
    ]
    seeds = [3, 4, None]
    together = play_worlds(worlds, policies, WEIGHTS, seeds)
    for world, seed, rollout in zip(worlds, seeds, together, strict=True):
        [alone] = play_worlds([world], policies, WEIGHTS, [seed])
        assert len(alone.seats) == len(rollout.seats) == 2
        for expected, seat in zip(alone.seats, rollout.seats, strict=True):
            assert expected.score == seat.score
            if seed is not None:
                assert_same(expected.days, seat.days)
                assert_same(expected.rounds, seat.rounds)


def assert_same(one, other):
    """Compare all fields of two structs of arrays, bit by bit; rounds have numbers of their own in each batch."""
    for name in one.__slots__:
        if name in ("states", "state_of"):
            continue
        ours, theirs = getattr(one, name), getattr(other, name)
        assert ours.keys() == theirs.keys() if isinstance(ours, dict) else True
        pairs = [(ours[key], theirs[key]) for key in ours] if isinstance(ours, dict) else [(ours, theirs)]
        for first, second in pairs:
            np.testing.assert_array_equal(first, second)
    if hasattr(one, "states"):
        np.testing.assert_array_equal(one.states[one.state_of], other.states[other.state_of])


def test_training_seeds_are_none_of_the_arena_s():
    from litaagent_std.arena.seeds import SeedBlock

    ours = {training_seed(run, world) for run in (0, 5, (1 << 20) - 1) for world in (0, 9, (1 << 32) - 1)}
    assert len(ours) == 9
    for block in ("tuning", "verdict", "gate:a", "gate:b"):
        low, high = SeedBlock(block).seed(0), SeedBlock(block).seed((1 << 24) - 1)
        assert not any(low <= seed <= high for seed in ours)
    with pytest.raises(ValueError, match="run_seed"):
        training_seed(1 << 20, 0)
