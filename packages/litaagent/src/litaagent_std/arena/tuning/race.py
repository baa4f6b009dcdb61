"""Races: many candidates, few worlds for the bad ones (successive halving).

All candidates of a stage play the same worlds. After a stage the better half plays twice as many, the earlier
ones included. Whoever leaves early is ranked behind all who stayed, by the mean score so far: the search uses ranks
only, so scores of different numbers of worlds are never compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

import numpy as np

__all__ = ["Play", "race", "stages"]

Play = Callable[[Sequence[tuple[int, int]]], Sequence[float]]
"""Plays pairs of candidate and world, given by their indices, and returns their scores in the same order."""


def stages(worlds: int, rungs: int) -> list[int]:
    """Return how many worlds a candidate has played after each stage; each number is about twice the one before.

    Stages that would add no world are left out.
    """
    return sorted({max(1, ceil(worlds / 2**left)) for left in range(rungs)})


def race(candidates: int, worlds: int, rungs: int, play: Play) -> tuple[list[int], list[list[float]]]:
    """Rank candidates.

    Args:
        candidates: Their number.
        worlds: Worlds that those who come to the end play.
        rungs: Stages at most.
        play: Plays what is asked for.

    Returns:
        The rank of each candidate, 0 for the best; and each candidate's scores in the order of the worlds. Of equal
        candidates the earlier one goes first.
    """
    scores: list[list[float]] = [[] for _ in range(candidates)]
    running = list(range(candidates))
    left: list[int] = []  # who is out, best first
    before = 0
    counts = stages(worlds, rungs)
    for stage, after in enumerate(counts):
        pairs = [(candidate, world) for world in range(before, after) for candidate in running]
        for (candidate, _), score in zip(pairs, play(pairs), strict=True):
            scores[candidate].append(score)
        running.sort(
            key=lambda candidate: -float(np.mean(scores[candidate]))
        )  # stable: the earlier of equals stays first
        stay = len(running) if stage == len(counts) - 1 else ceil(len(running) / 2)
        left = running[stay:] + left
        running, before = running[:stay], after
    order = running + left
    ranks = [0] * candidates
    for rank, candidate in enumerate(order):
        ranks[candidate] = rank
    return ranks, scores
