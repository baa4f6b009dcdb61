"""Native agents' draws against the functions that they replace: the same numbers, the same state after them."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scml.common import distribute as scml_distribute

from litaagent_std.world.native.draws import between, counts, distribute, shuffle, words_of
from litaagent_std.world.reproducible.streams import Stream, switch

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.integers(-5, 50), st.integers(0, 40))
def test_between_is_randint(seed, low, width):
    ours, theirs = random.Random(seed), random.Random(seed)
    assert between(low, low + width, ours.getrandbits) == theirs.randint(low, low + width)
    assert ours.getstate() == theirs.getstate()


@given(SEEDS, st.integers(0, 100))
def test_shuffle_is_shuffle(seed, length):
    ours, theirs = random.Random(seed), random.Random(seed)
    mine, other = list(range(length)), list(range(length))
    shuffle(mine, ours.getrandbits)
    theirs.shuffle(other)
    assert mine == other
    assert ours.getstate() == theirs.getstate()


@given(SEEDS, st.lists(st.tuples(st.integers(1, 12), st.integers(0, 40)), min_size=1, max_size=6))
def test_counts_are_those_of_choice(seed, wanted):
    numpy = np.random.RandomState(seed)
    words = words_of(np.random.RandomState(seed))
    for n, draws in wanted:
        assert counts(n, draws, words) == np.bincount(numpy.choice(n, draws), minlength=n).tolist()


@given(SEEDS, st.integers(0, 90), st.integers(1, 12), st.integers(1, 30), st.booleans(), st.booleans(), st.booleans())
def test_distribute_is_that_of_scml(seed, quantity, n, most, concentrated, equal, allow_zero):
    stream, twin = Stream.from_key(seed, "ours"), Stream.from_key(seed, "ours")
    words = words_of(stream.numpy)
    ours = distribute(quantity, n, most, concentrated, equal, allow_zero, stream.python.getrandbits, words)
    previous = switch(twin)
    try:
        theirs = scml_distribute(quantity, n, mx=most, concentrated=concentrated, equal=equal, allow_zero=allow_zero)
    finally:
        switch(previous)
    assert ours == theirs
    assert stream.python.getstate() == twin.python.getstate()
    assert counts(7, 5, words) == np.bincount(twin.numpy.choice(7, 5), minlength=7).tolist()


def test_a_different_draw_is_noticed():
    numpy, words = np.random.RandomState(1), words_of(np.random.RandomState(2))
    assert counts(5, 30, words) != np.bincount(numpy.choice(5, 30), minlength=5).tolist()
