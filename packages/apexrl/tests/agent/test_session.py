import pytest
from hypothesis import given
from hypothesis import strategies as st

from apexrl.agent.session import make_goal


@given(st.integers(0, 10_000), st.integers(1, 500), st.integers(1, 20_000))
def test_the_goal_is_the_first_whole_rollout_at_or_after_the_asked_total(start, rollout, asked):
    reached = make_goal(start, rollout, asked, None).reached_at
    assert reached >= min(asked, reached)
    assert (reached - start) % rollout == 0
    if asked > start:
        assert asked <= reached < asked + rollout
    else:
        assert reached == start


def test_progress_runs_from_zero_to_one():
    goal = make_goal(0, 10, 35, None)
    assert [goal.progress(total) for total in (0, 20, 40)] == [0.0, 0.5, 1.0]


def test_iterations_are_counted_from_where_the_run_stands():
    assert make_goal(30, 10, None, 2).reached_at == 50
    with pytest.raises(ValueError, match="total_timesteps=0"):
        make_goal(0, 10, 0, None)
