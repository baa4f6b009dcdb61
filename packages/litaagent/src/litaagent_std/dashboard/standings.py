"""Standings and paired differences of a tournament, for all resamples at once.

The statistics are those of `litaagent_std.tournament.standings`, from the same resamples, so the numbers are the
same; computing all resamples together makes a filter on a thousand worlds answer at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from litaagent_std.policy.arrays import Floats, Ints
from litaagent_std.tournament.standings import BOOTSTRAPS, Paired, truncated_mean

__all__ = ["Played", "Rank", "interval_of_mean", "interval_of_truncated_mean", "length_names", "pairs_of", "ranks_of"]

_TOP_LIMIT: Final = 2.0
_TOGETHER: Final = 200  # resamples in memory at once
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
    low, high = interval_of_truncated_mean(values, [one.config for one in own])
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
                low, high = interval_of_mean(gaps, [seat[0] for seat in shared])
                found.append(Paired(first, second, len(shared), float(gaps.mean()), low, high))
    return found


def interval_of_mean(values: Floats, groups: Sequence[Hashable]) -> tuple[float, float] | tuple[None, None]:
    """Return the 95 % interval of the mean by resampling groups; None with a single group."""
    place, chosen = _resamples(groups)
    if chosen is None:
        return None, None
    sums = np.bincount(place, values)
    return _middle((chosen @ sums) / (chosen @ np.bincount(place)))


def interval_of_truncated_mean(values: Floats, groups: Sequence[Hashable]) -> tuple[float, float] | tuple[None, None]:
    """Return the 95 % interval of the official metric by resampling groups; None with a single group."""
    place, chosen = _resamples(groups)
    if chosen is None:
        return None, None
    order = np.argsort(values, kind="stable")
    rising, place = values[order], place[order]
    parts = [_truncated(rising, chosen[at : at + _TOGETHER][:, place]) for at in range(0, BOOTSTRAPS, _TOGETHER)]
    return _middle(np.concatenate(parts))


def _truncated(rising: Floats, weights: Ints) -> Floats:
    """Truncated means of resamples; `weights` says how often each value is in each, (resamples, values)."""
    upto = np.cumsum(weights, axis=1)
    q1, q3 = _quantile(rising, upto, 0.25), _quantile(rising, upto, 0.75)
    kept = weights * (rising <= (q3 + _TOP_LIMIT * (q3 - q1))[:, None])
    means: Floats = (kept @ rising) / kept.sum(axis=1)
    return means


def _quantile(rising: Floats, upto: Ints, share: float) -> Floats:
    """Quantiles with linear interpolation between neighbours, as numpy's."""
    place = (upto[:, -1] - 1) * share
    below = np.floor(place)
    lower = rising[np.argmax(upto > below[:, None], axis=1)]
    upper = rising[np.argmax(upto > np.ceil(place)[:, None], axis=1)]
    found: Floats = lower + (upper - lower) * (place - below)
    return found


def _resamples(groups: Sequence[Hashable]) -> tuple[Any, Ints | None]:
    """Return the number of each value's group, and how often each resample has each group, (resamples, groups)."""
    numbers = {group: index for index, group in enumerate(sorted(set(groups)))}  # type: ignore[type-var]  # of one type
    place = np.array([numbers[group] for group in groups])
    if len(numbers) < 2:
        return place, None
    draw = np.random.Generator(np.random.PCG64(0)).integers(len(numbers), size=(BOOTSTRAPS, len(numbers)))
    chosen = np.zeros((BOOTSTRAPS, len(numbers)), np.int64)
    np.add.at(chosen, (np.arange(BOOTSTRAPS)[:, None], draw), 1)
    return place, chosen


def _middle(estimates: Floats) -> tuple[float, float]:
    low, high = np.quantile(estimates, [0.025, 0.975])
    return float(low), float(high)
