"""Races give few worlds to the bad and rank everyone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litaagent_std.arena.tuning.race import race, stages


def played_by(table):
    """A play function by a table of scores, and how many worlds each candidate was asked to play."""
    counts = [0] * len(table)

    def play(pairs):
        for one, _ in pairs:
            counts[one] += 1
        return [table[one][place] for one, place in pairs]

    return play, counts


@pytest.mark.parametrize(
    ("worlds", "rungs", "expected"), [(24, 3, [6, 12, 24]), (5, 3, [2, 3, 5]), (2, 4, [1, 2]), (7, 1, [7])]
)
def test_stages_double_up_to_all_worlds(worlds, rungs, expected):
    assert stages(worlds, rungs) == expected


def test_the_better_half_goes_on_and_the_others_play_little():
    play, counts = played_by([[float(one)] * 8 for one in (3, 0, 2, 1)])
    ranks, scores = race(4, 8, 3, play)
    assert ranks == [0, 3, 1, 2]
    assert counts == [8, 2, 4, 2]
    assert [len(own) for own in scores] == counts


def test_who_left_early_is_behind_whatever_it_scored_then():
    table = [[5.0, -9.0], [4.0, -9.0], [3.0, 9.0], [2.0, 9.0]]
    ranks, _ = race(4, 2, 2, played_by(table)[0])
    assert ranks == [0, 1, 2, 3]


@given(st.integers(1, 9), st.integers(1, 12), st.integers(1, 4), st.integers(0, 99))
def test_ranks_are_a_permutation_and_everyone_plays(candidates, worlds, rungs, seed):
    table = np.random.default_rng(seed).normal(size=(candidates, worlds)).tolist()
    play, counts = played_by(table)
    ranks, scores = race(candidates, worlds, rungs, play)
    assert sorted(ranks) == list(range(candidates))
    assert min(counts) >= 1
    assert counts[ranks.index(0)] == worlds
    assert all(own == row[: len(own)] for own, row in zip(scores, table, strict=True))
