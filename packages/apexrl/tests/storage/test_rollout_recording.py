import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from apexrl.storage.rollout import EpisodeTracker, StepBuffers


def by_hand(rewards, dones):
    """Step by step, as a definition; returns (time, env, return, length) in order of ending."""
    total, length, ended = np.zeros(rewards.shape[1]), np.zeros(rewards.shape[1], int), []
    for t in range(len(rewards)):
        total += rewards[t]
        length += 1
        for env in np.nonzero(dones[t])[0]:
            ended.append((total[env], length[env]))
            total[env], length[env] = 0.0, 0
    return ended


@settings(max_examples=60)
@given(st.integers(1, 5), st.lists(st.integers(1, 7), min_size=1, max_size=4), st.floats(0, 1), st.integers(0, 999))
def test_episodes_run_on_across_rollouts_of_any_length(num_envs, rollouts, rate, seed):
    random = np.random.default_rng(seed)
    rewards = random.normal(size=(sum(rollouts), num_envs))
    dones = random.random(rewards.shape) < rate
    tracker, tables, start = EpisodeTracker(num_envs), [], 0
    for steps in rollouts:
        part = slice(start, start + steps)
        tables.append(tracker.advance(torch.tensor(rewards[part]), torch.tensor(dones[part]), None, {}))
        start += steps
    expected = by_hand(rewards, dones)
    np.testing.assert_allclose(np.concatenate([t.returns for t in tables]), [e[0] for e in expected], atol=1e-9)
    np.testing.assert_array_equal(np.concatenate([t.lengths for t in tables]), [e[1] for e in expected])


def test_an_episode_of_200_steps_is_reported_as_200_with_rollouts_of_8():
    tracker, lengths = EpisodeTracker(1), []
    for rollout in range(25):
        dones = torch.zeros(8, 1, dtype=torch.bool)
        dones[-1] = rollout == 24
        lengths += tracker.advance(torch.ones(8, 1), dones, None, {}).lengths.tolist()
    assert lengths == [200]


def test_components_are_summed_per_episode_and_reset_steps_do_not_count():
    tracker = EpisodeTracker(1)
    dones = torch.tensor([[False], [True], [False], [True]])
    counted = torch.tensor([[True], [True], [False], [True]])
    values = torch.tensor([[1.0], [2.0], [9.0], [4.0]])
    table = tracker.advance(torch.ones(4, 1), dones, counted, {"speed": (values, np.ones(4, bool))})
    assert table.lengths.tolist() == [2, 1]
    assert table.returns.tolist() == [2.0, 1.0]
    assert table.components["speed"].tolist() == [3.0, 4.0]


def test_state_round_trip_goes_on_with_the_same_sums():
    first, second = EpisodeTracker(2), EpisodeTracker(2)
    first.advance(torch.ones(3, 2), torch.zeros(3, 2, dtype=torch.bool), None, {})
    second.load_state_dict(first.state_dict())
    table = second.advance(torch.ones(1, 2), torch.ones(1, 2, dtype=torch.bool), None, {})
    assert table.returns.tolist() == [4.0, 4.0]


def test_components_that_some_rollouts_lack_are_summed_where_they_are():
    tracker = EpisodeTracker(1)
    running, ending = torch.zeros(2, 1, dtype=torch.bool), torch.tensor([[True], [True]])
    tracker.advance(torch.ones(2, 1), running, None, {"speed": (torch.full((2, 1), 3.0), np.array([True, True]))})
    table = tracker.advance(torch.ones(2, 1), ending, None, {})
    # The first episode had it in its first two steps; the second one never had it.
    assert table.components["speed"][0] == 6.0
    assert np.isnan(table.components["speed"][1])
    assert "speed" not in tracker.advance(torch.ones(2, 1), ending, None, {}).components


def test_optional_fields_hold_their_default_in_steps_that_do_not_bring_them():
    buffers = StepBuffers(3)
    for step in range(3):
        buffers.put("rewards", step, torch.ones(2))
        buffers.put_optional("part/a", step, torch.full((2,), 5.0), 0.0)
    buffers.begin()
    for step in range(3):
        buffers.put("rewards", step, torch.ones(2))
    buffers.put_optional("part/a", 1, torch.full((2,), 7.0), 0.0)
    fields = buffers.take(("rewards",))
    assert fields["part/a"][:, 0].tolist() == [0.0, 7.0, 0.0]
    assert buffers.brought("part/a").tolist() == [False, True, False]
    buffers.begin()
    assert buffers.take(("rewards",)).keys() == {"rewards"}
