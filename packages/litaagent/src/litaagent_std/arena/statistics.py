"""What scores say: pure functions of numbers. The official metric and the bootstrap are the tournament's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from litaagent_std.policy.arrays import Floats
from litaagent_std.tournament.standings import bootstrap_interval, truncated_mean

__all__ = ["Difference", "Summary", "paired_difference", "strata", "summarize"]


@dataclass(frozen=True, slots=True)
class Summary:
    """One agent's scores.

    Attributes:
        worlds: Their number.
        mean: Their mean.
        truncated: The official metric: the mean without the highest outliers.
        low_tail: Their 5 % quantile.
        worst: The lowest.
    """

    worlds: int
    mean: float
    truncated: float
    low_tail: float
    worst: float


@dataclass(frozen=True, slots=True)
class Difference:
    """First minus second in the same worlds.

    Attributes:
        worlds: Pairs.
        mean: Mean difference.
        low: Lower end of its 95 % bootstrap interval; None with a single pair.
        high: Upper end.
        deviation: Standard deviation of the differences; None with a single pair.
        won: Share of the worlds in which the first was ahead, ties by half.
    """

    worlds: int
    mean: float
    low: float | None
    high: float | None
    deviation: float | None
    won: float


def summarize(scores: Sequence[float] | Floats) -> Summary:
    """Describe scores.

    Raises:
        ValueError: If there are none.
    """
    values = _values(scores)
    low_tail = float(np.quantile(values, 0.05))
    return Summary(values.size, float(values.mean()), truncated_mean(values), low_tail, float(values.min()))


def paired_difference(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> Difference:
    """Compare the scores of two agents, world by world.

    Raises:
        ValueError: If there are none, or not as many of each.
    """
    one, other = _values(first), _values(second)
    if one.shape != other.shape:
        raise ValueError(f"{one.size} scores cannot be paired with {other.size}; give both agents' in the same worlds")
    gaps = one - other
    groups = [np.array([place]) for place in range(gaps.size)]
    low, high = bootstrap_interval(gaps, groups, lambda some: float(some.mean()))
    deviation = float(gaps.std(ddof=1)) if gaps.size > 1 else None
    won = float(np.mean((gaps > 0) + 0.5 * (gaps == 0)))
    return Difference(gaps.size, float(gaps.mean()), low, high, deviation, won)


def strata(units: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    """Places of the units in every stratum: all, each level, each length; in this order, empty ones left out."""
    found: dict[str, list[int]] = {"all": list(range(len(units)))}
    for level in ("first", "middle", "last"):
        found[level] = [place for place, unit in enumerate(units) if unit["level"] == level]
    for days in sorted({int(unit["n_days"]) for unit in units}):
        found[f"{days} days"] = [place for place, unit in enumerate(units) if unit["n_days"] == days]
    return {name: places for name, places in found.items() if places}


def _values(scores: Sequence[float] | Floats) -> Floats:
    values = np.asarray(scores, dtype=np.float64)
    if values.size == 0:
        raise ValueError("no scores were given; statistics need at least one world")
    return values
