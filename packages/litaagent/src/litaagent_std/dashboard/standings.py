"""Standings and paired differences of the seats that a filter leaves.

The statistics are those of `litaagent_std.tournament.standings`, from the same resamples, computed by the fast
bootstrap: a filter on a thousand worlds answers at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from apexrl.statistics import fast_bootstrap_interval, mean, truncated_mean
from litaagent_std.tournament.standings import Paired

__all__ = ["Played", "Rank", "length_names", "pairs_of", "ranks_of"]

_FEW_LENGTHS: Final = 4
_CLASSES: Final = ((100, "under 100 days"), (150, "100–149 days"), (10**9, "150 days or more"))


@dataclass(frozen=True, slots=True)
class Played:
    """One competitor's seat in one world, with the score and what it is compared by."""

    world: int
    config: int
    run: int
    factory: int
    level: str
    length: str
    competitor: str
    score: float


@dataclass(frozen=True, slots=True)
class Rank:
    """A competitor's result: seats played, the official metric with its interval, mean, 5 % quantile and worst."""

    competitor: str
    worlds: int
    score: float
    low: float | None
    high: float | None
    mean: float
    low_tail: float
    worst: float


def length_names(days: Iterable[int]) -> dict[int, str]:
    """Names for lengths of worlds: their own when there are few, classes of lengths otherwise."""
    known = sorted(set(days))
    if len(known) <= _FEW_LENGTHS:
        return {one: f"{one} days" for one in known}
    return {one: next(name for limit, name in _CLASSES if one < limit) for one in known}


def ranks_of(played: Sequence[Played]) -> list[Rank]:
    """Every competitor's result, the best first."""
    own: dict[str, list[Played]] = {}
    for one in played:
        own.setdefault(one.competitor, []).append(one)
    return sorted((_rank(name, some) for name, some in own.items()), key=lambda rank: -rank.score)


def _rank(name: str, own: Sequence[Played]) -> Rank:
    values = np.array([one.score for one in own])
    low, high = fast_bootstrap_interval(values, [one.config for one in own], truncated_mean)
    tail, worst = float(np.quantile(values, 0.05)), float(values.min())
    return Rank(name, len(own), truncated_mean(values), low, high, float(values.mean()), tail, worst)


def pairs_of(played: Sequence[Played], order: Sequence[str]) -> list[Paired]:
    """Every pair of competitors that played the same seat of the same market under the same luck."""
    seats: dict[str, dict[tuple[int, int, int], list[float]]] = {}
    for one in played:
        own = seats.setdefault(one.competitor, {})
        own.setdefault((one.config, one.run, one.factory), []).append(one.score)
    means = {name: {seat: float(np.mean(some)) for seat, some in own.items()} for name, own in seats.items()}
    found = []
    for place, first in enumerate(order):
        for second in order[place + 1 :]:
            shared = sorted(means[first].keys() & means[second].keys())
            if shared:
                gaps = np.array([means[first][seat] - means[second][seat] for seat in shared])
                low, high = fast_bootstrap_interval(gaps, [seat[0] for seat in shared], mean)
                found.append(Paired(first, second, len(shared), float(gaps.mean()), low, high))
    return found
