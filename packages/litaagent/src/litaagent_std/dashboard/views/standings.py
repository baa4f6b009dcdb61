"""Standings and paired differences of the seats that a filter leaves.

The statistics are those of `litaagent_std.tournament.standings`, from the same resamples, computed by the fast
bootstrap, so that a filter on a thousand worlds responds without delay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from apexrl.statistics import cluster_p_value, fast_bootstrap_interval, mean, truncated_mean
from litaagent_std.tournament.standings import Paired, corrected

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
    errors: int = 0


@dataclass(frozen=True, slots=True)
class Rank:
    """A competitor's result: seats, the official metric with its interval, mean, 5 % quantile, worst, exceptions."""

    competitor: str
    worlds: int
    score: float
    low: float | None
    high: float | None
    mean: float
    low_tail: float
    worst: float
    errors: int = 0


def length_names(days: Iterable[int]) -> dict[int, str]:
    """Return names for lengths of worlds: one each if there are few, classes of lengths otherwise."""
    known = sorted(set(days))
    if len(known) <= _FEW_LENGTHS:
        return {length: f"{length} days" for length in known}
    return {length: next(name for limit, name in _CLASSES if length < limit) for length in known}


def ranks_of(played: Sequence[Played]) -> list[Rank]:
    """Return every competitor's result, the best first."""
    own: dict[str, list[Played]] = {}
    for seat in played:
        own.setdefault(seat.competitor, []).append(seat)
    return sorted((_rank(name, seats) for name, seats in own.items()), key=lambda rank: -rank.score)


def _rank(name: str, own: Sequence[Played]) -> Rank:
    values = np.array([seat.score for seat in own])
    low, high = fast_bootstrap_interval(values, [seat.config for seat in own], truncated_mean)
    tail, worst = float(np.quantile(values, 0.05)), float(values.min())
    errors = sum(seat.errors for seat in own)
    return Rank(name, len(own), truncated_mean(values), low, high, float(values.mean()), tail, worst, errors)


def pairs_of(played: Sequence[Played], order: Sequence[str]) -> list[Paired]:
    """Return every pair of competitors that played the same seat of the same market under the same seeds."""
    seats: dict[str, dict[tuple[int, int, int], list[float]]] = {}
    for seat in played:
        own = seats.setdefault(seat.competitor, {})
        own.setdefault((seat.config, seat.run, seat.factory), []).append(seat.score)
    means = {name: {key: float(np.mean(scores)) for key, scores in own.items()} for name, own in seats.items()}
    pairs = []
    for index, first in enumerate(order):
        for second in order[index + 1 :]:
            shared = sorted(means[first].keys() & means[second].keys())
            if shared:
                differences = np.array([means[first][key] - means[second][key] for key in shared])
                configs = [key[0] for key in shared]
                low, high = fast_bootstrap_interval(differences, configs, mean)
                p_value = cluster_p_value(differences, configs)
                pairs.append(Paired(first, second, len(shared), float(differences.mean()), low, high, p_value))
    return corrected(pairs)
