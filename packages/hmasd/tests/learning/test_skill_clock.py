import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmasd.learning.skill_clock import (
    SkillClock,
    cut_chunks,
    cut_intervals,
    ever_within,
    finished_rewards,
    interval_advantages,
)


def drive(n_steps, episode_ends, k):
    """Assignments of one environment whose episodes end after the given steps."""
    clock = SkillClock(1, k)
    assigned = np.zeros((n_steps, 1), dtype=bool)
    dones = np.zeros((n_steps, 1), dtype=bool)
    for step in range(n_steps):
        due = clock.due()
        assigned[step] = due
        clock.assign(due)
        dones[step] = step in episode_ends
        clock.tick(dones[step])
    return assigned, dones


@pytest.mark.parametrize(
    ("n_steps", "ends", "k", "lengths"),
    [
        (100, {99}, 50, [50, 50]),
        (100, set(), 50, [50, 50]),
        (100, {36, 79}, 50, [37, 43, 20]),
        (100, {69}, 50, [50, 20, 30]),
        (32, set(), 10, [10, 10, 10, 2]),
        (32, {4, 31}, 10, [5, 10, 10, 7]),
        (10, set(range(10)), 5, [1] * 10),
    ],
)
def test_exact_intervals_for_known_episode_lengths(n_steps, ends, k, lengths):
    assigned, dones = drive(n_steps, ends, k)
    rewards = np.zeros((n_steps, 1))
    intervals = cut_intervals(assigned, rewards, dones, np.zeros_like(dones), 0.99, skill_steps=k)
    assert intervals.length.tolist() == lengths
    assert intervals.terminated.tolist() == [bool(dones[end, 0]) for end in np.cumsum(lengths) - 1]


@settings(max_examples=80)
@given(
    st.integers(1, 40),
    st.integers(1, 4),
    st.integers(1, 15),
    st.integers(0, 2**32 - 1),
    st.floats(0.0, 0.5),
)
def test_intervals_partition_every_environment_and_never_cross_an_episode(n_steps, n_envs, k, seed, rate):
    rng = np.random.default_rng(seed)
    clock = SkillClock(n_envs, k)
    assigned, dones = np.zeros((2, n_steps, n_envs), dtype=bool)
    for step in range(n_steps):
        assigned[step] = clock.due()
        clock.assign(assigned[step])
        dones[step] = rng.random(n_envs) < rate
        clock.tick(dones[step])
    rewards = rng.normal(size=(n_steps, n_envs))
    intervals = cut_intervals(assigned, rewards, dones, np.zeros_like(dones), 1.0, skill_steps=k)
    for env in range(n_envs):
        mine = intervals.env == env
        assert intervals.length[mine].sum() == n_steps
        assert (intervals.length[mine] <= k).all()
        ends = np.flatnonzero(np.append(dones[:-1, env], True)) if n_steps > 1 else np.array([0])
        episode_lengths = np.diff(np.concatenate([[-1], ends]))
        assert mine.sum() == np.ceil(episode_lengths / k).sum(), "one sample per started k steps of each episode"
        assert intervals.reward[mine].sum() == pytest.approx(rewards[:, env].sum())


def test_rewards_are_discounted_from_the_start_of_their_interval():
    assigned, dones = drive(4, set(), 2)
    rewards = np.array([[1.0], [2.0], [4.0], [8.0]])
    intervals = cut_intervals(assigned, rewards, dones, np.zeros_like(dones), 0.5, skill_steps=2)
    assert intervals.reward.tolist() == [2.0, 8.0]


def test_flags_are_gathered_over_the_steps_of_an_interval():
    assigned = np.array([[True, True], [False, False], [True, False], [False, True]])
    none = np.zeros((4, 2), dtype=bool)
    intervals = cut_intervals(assigned, np.zeros((4, 2)), none, none, 0.9, skill_steps=9)
    assert list(zip(intervals.env, intervals.start, strict=True)) == [(0, 0), (0, 2), (1, 0), (1, 3)]
    flags = np.zeros((4, 2, 2), dtype=bool)
    flags[1, 0, 0] = flags[2, 1, 1] = True  # inside the first interval of each environment
    assert ever_within(flags, intervals).tolist() == [[True, False], [False, False], [False, True], [False, False]]


def test_skills_from_before_a_reset_are_refused():
    assigned = np.array([[True], [False]])
    dones = np.array([[True], [False]])
    with pytest.raises(ValueError, match="began an episode at step 1"):
        cut_intervals(assigned, np.zeros((2, 1)), dones, np.zeros_like(dones), 0.9, skill_steps=2)
    for first, age in ((~assigned, None), (assigned, np.array([1]))):
        with pytest.raises(ValueError, match=r"\[0\] start the rollout without skills of any age"):
            cut_intervals(first, np.zeros((2, 1)), ~dones, np.zeros_like(dones), 0.9, skill_steps=2, age=age)


def test_advantages_by_hand():
    # Three intervals of one episode, then one of the next, which was cut by the barrier.
    assigned, dones = drive(7, {4}, 2)
    rewards = np.array([[0.0], [1.0], [0.0], [0.0], [3.0], [0.0], [2.0]])
    intervals = cut_intervals(assigned, rewards, dones, np.zeros_like(dones), 1.0, skill_steps=2)
    assert intervals.length.tolist() == [2, 2, 1, 2]
    values = np.array([[1.0], [2.0], [4.0], [5.0]])
    following = np.array([[2.0], [4.0], [0.0], [6.0]])
    discount = 0.5 ** intervals.length.astype(float)
    advantages = interval_advantages(intervals, values, following, discount, 0.5)
    last = 2.0 + 0.25 * 6.0 - 5.0
    third = 3.0 - 4.0
    second = (0.0 + 0.25 * 4.0 - 2.0) + 0.25 * 0.5 * third
    first = (1.0 + 0.25 * 2.0 - 1.0) + 0.25 * 0.5 * second
    assert advantages[:, 0] == pytest.approx([first, second, third, last])


def test_cutting_an_interval_in_two_changes_no_return():
    """With λ = 1, what the first decision earns does not depend on where later intervals are cut."""
    rng = np.random.default_rng(0)
    rewards = rng.normal(size=(12, 1))
    dones = np.zeros((12, 1), dtype=bool)
    earned = []
    for starts in ([0, 6], [0, 2, 6, 9]):
        assigned = np.zeros((12, 1), dtype=bool)
        assigned[starts] = True
        intervals = cut_intervals(assigned, rewards, dones, dones, 0.9, skill_steps=6)
        values = rng.normal(size=(len(starts), 1))
        following = np.vstack([values[1:], [[7.0]]])
        advantages = interval_advantages(intervals, values, following, 0.9 ** intervals.length.astype(float), 1.0)
        earned.append(advantages[0, 0] + values[0, 0])
    assert earned[0] == pytest.approx(earned[1])


@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=6),
    st.integers(1, 12),
    st.integers(0, 2**32 - 1),
    st.floats(0, 0.3),
)
def test_barriers_change_neither_skills_nor_advantages_nor_rewards(batches, k, seed, rate):
    """A run cut into batches has the intervals of one long batch.

    With the true value of continuing at every barrier, and λ = 1, so have the choices' advantages: the bootstrap is
    exact.
    """
    rng = np.random.default_rng(seed)
    n_steps, n_envs, gamma = sum(batches), 3, 0.9
    clock = SkillClock(n_envs, k)
    assigned, dones = np.zeros((2, n_steps, n_envs), dtype=bool)
    ages = np.zeros((n_steps, n_envs), dtype=np.int64)
    for step in range(n_steps):
        assigned[step] = clock.due()
        clock.assign(assigned[step])
        ages[step] = clock.age
        dones[step] = rng.random(n_envs) < rate
        clock.tick(dones[step])
    none, rewards = np.zeros_like(dones), rng.normal(size=dones.shape)
    # the true return from each step on, 0 after a termination, something arbitrary after the last step
    returns = np.zeros((n_steps + 1, n_envs))
    returns[-1] = rng.normal(size=n_envs)
    for step in reversed(range(n_steps)):
        returns[step] = rewards[step] + gamma * np.where(dones[step], 0.0, returns[step + 1])
    values = rng.normal(size=dones.shape)  # V_h, as wrong as it may be

    def samples(first, last, age):
        """Choices of the steps first ≤ t < last: (env, step) → advantage; and the intervals."""
        part = slice(first, last)
        cut = cut_intervals(assigned[part], rewards[part], dones[part], none[part], gamma, skill_steps=k, age=age)
        start, end = cut.start + first, cut.end + first
        at_start = np.where(cut.chosen, values[start, cut.env], returns[start, cut.env])  # U_h is true
        inner = np.append(at_start[1:], 0.0)
        after = np.where(cut.continues, inner, np.where(cut.terminated, 0.0, returns[end + 1, cut.env]))
        discount = gamma ** cut.length.astype(float)
        advantages = interval_advantages(cut, at_start[:, None], after[:, None], discount, 1.0)[:, 0]
        rows = zip(cut.env.tolist(), start.tolist(), advantages.tolist(), cut.chosen.tolist(), strict=True)
        return {(env, step): advantage for env, step, advantage, chosen in rows if chosen}, cut

    whole, cut_once = samples(0, n_steps, None)
    expected_rewards, _ = finished_rewards(cut_once, np.zeros(n_envs), gamma)
    parts, ended, carried, first = {}, [], np.zeros(n_envs), 0
    for size in batches:
        mine, cut = samples(first, first + size, ages[first])
        parts |= mine
        rewards_here, carried = finished_rewards(cut, carried, gamma)
        ended += rewards_here.tolist()
        assert (cut.age + cut.length + cut.left <= k).all()
        first += size
    assert parts.keys() == whole.keys(), "every choice is a sample of exactly one batch"
    assert [parts[key] for key in whole] == pytest.approx(list(whole.values()))
    assert sorted(ended) == pytest.approx(sorted(expected_rewards))


@settings(max_examples=60)
@given(st.integers(1, 30), st.integers(1, 4), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_chunks_hold_every_step_once_and_begin_at_episode_starts(n_steps, n_envs, length, seed):
    starts = np.random.default_rng(seed).random((n_steps, n_envs)) < 0.2
    chunks = cut_chunks(starts, length)
    seen = np.zeros((n_steps, n_envs), dtype=int)
    for position, row in zip(*np.nonzero(chunks.valid), strict=True):
        seen[chunks.step[position, row], chunks.env[row]] += 1
        if position > 0:
            assert not starts[chunks.step[position, row], chunks.env[row]]
    assert (seen == 1).all()
    assert chunks.valid.shape[0] <= length
