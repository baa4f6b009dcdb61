"""Seed blocks: pure, disjoint, and the verdict's closed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apexrl.runs.errors import ConfigurationError
from litaagent_std.arena.seeds import MAX_INDEX, SeedBlock, seed_block

NAMES = ["tuning", "verdict", "verdict:a", "verdict:b", "gate:a", "gate:b", "gate:verdict:a", "gate:april 2027"]


@given(st.sampled_from(NAMES), st.integers(0, MAX_INDEX), st.sampled_from(NAMES), st.integers(0, MAX_INDEX))
def test_no_seed_belongs_to_two_places(name, index, other_name, other_index):
    same_place = (name, index) == (other_name, other_index)
    assert (SeedBlock(name).seed(index) == SeedBlock(other_name).seed(other_index)) == same_place


@given(st.text(min_size=1), st.integers(0, MAX_INDEX))
def test_seeds_of_gates_fit_into_63_bits_and_meet_no_other_kind(gate, index):
    seed = SeedBlock(f"gate:{gate}").seed(index)
    assert SeedBlock("verdict").seed(MAX_INDEX) < seed < 2**63


def test_seeds_are_the_same_for_ever():
    assert [SeedBlock(name).seed(7) for name in ("tuning", "verdict", "gate:a")] == [
        16777223,
        33554439,
        5782102463871975431,
    ]


@pytest.mark.parametrize("name", ["verdict", "verdict:partners"])
def test_a_verdict_opens_with_the_flag_only(name):
    with pytest.raises(ConfigurationError, match="--open-verdict"):
        seed_block(name)
    assert seed_block(name, open_verdict=True).seed(0) == SeedBlock(name).seed(0)


@pytest.mark.parametrize("name", ["gate", "gate:", "tunning", ""])
def test_other_blocks_are_refused(name):
    with pytest.raises(ConfigurationError, match="gate:NAME"):
        seed_block(name)


@pytest.mark.parametrize("index", [-1, MAX_INDEX + 1])
def test_an_index_outside_of_the_block_is_refused(index):
    with pytest.raises(ValueError, match=str(MAX_INDEX)):
        SeedBlock("tuning").seed(index)
