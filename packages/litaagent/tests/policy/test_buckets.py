"""Every lead of the horizon is in exactly one bucket."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litaagent_std.policy.buckets import bucket_edges, bucket_of, buckets, n_buckets


@given(horizon=st.integers(0, 60))
def test_buckets_cover_the_horizon_once(horizon):
    edges = bucket_edges(horizon)
    assert edges[0] == 0
    assert edges[-1] == horizon + 1
    assert list(edges) == sorted(set(edges))
    assert n_buckets(horizon) == len(buckets(horizon)) == len(edges) - 1
    for lead in range(horizon + 1):
        assert lead in buckets(horizon)[bucket_of(lead, horizon)]


def test_the_leagues_buckets_are_all_reachable():
    assert bucket_edges(10) == (0, 1, 3, 6, 11)


@pytest.mark.parametrize("lead", [-1, 11])
def test_leads_beyond_the_horizon_are_in_none(lead):
    with pytest.raises(ValueError, match="0 to 10 days ahead"):
        bucket_of(lead, 10)


def test_a_negative_horizon_is_refused():
    with pytest.raises(ValueError, match="negative"):
        bucket_edges(-1)
