"""Statistics of scores: robust means, bootstrap intervals, paired differences, several comparisons.

All functions are pure and deterministic: resampling starts from a fixed seed. Intervals are percentile bootstrap
intervals. Observations that belong together (runs of one configuration, episodes of one seed) form a group, and whole
groups are resampled (cluster bootstrap).

    >>> import numpy as np
    >>> low, high = bootstrap_interval(np.array([1.0, 2.0, 3.0, 4.0]), groups=["a", "a", "b", "c"])
    >>> low < 2.5 < high
    True
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from apexrl.arrays import Floats, Indices, Ints

__all__ = [
    "RESAMPLES",
    "Interval",
    "PairedDifference",
    "Statistic",
    "Summary",
    "bootstrap_estimates",
    "bootstrap_interval",
    "cluster_p_value",
    "fast_bootstrap_interval",
    "holm_adjusted",
    "interquartile_mean",
    "interval_over_seeds",
    "mean",
    "paired_difference",
    "percentile_interval",
    "resample",
    "summarize",
    "truncated_mean",
]

RESAMPLES: Final = 1000
"""Resamples of a bootstrap by default."""

_UPPER_FENCE: Final = 2.0
_BATCH: Final = 200  # resamples held in memory at once

Statistic = Callable[[Floats], float]
"""A function of observations [n] to one number."""

Interval = tuple[float, float] | tuple[None, None]
"""Lower and upper end; ``(None, None)`` where a single group says nothing about others."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Description of a sample.

    Attributes:
        count: Number of observations.
        mean: Their mean.
        truncated: Their mean without the highest outliers (:func:`truncated_mean`).
        low_tail: Their 5 % quantile.
        worst: The lowest.
    """

    count: int
    mean: float
    truncated: float
    low_tail: float
    worst: float


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """First minus second, observation by observation.

    Attributes:
        count: Number of pairs.
        mean: Mean difference.
        low: Lower end of its 95 % bootstrap interval; None with a single pair.
        high: Upper end.
        deviation: Standard deviation of the differences; None with a single pair.
        won: Share of the pairs in which the first is higher; ties count half.
    """

    count: int
    mean: float
    low: float | None
    high: float | None
    deviation: float | None
    won: float


def mean(values: Floats) -> float:
    """Return the arithmetic mean."""
    return float(values.mean())


def truncated_mean(values: Floats) -> float:
    """Return the mean without values above Q3 + 2 (Q3 - Q1); the low tail counts in full."""
    q1, q3 = np.quantile(values, 0.25), np.quantile(values, 0.75)
    return float(values[values <= q3 + _UPPER_FENCE * (q3 - q1)].mean())


def interquartile_mean(values: Floats) -> float:
    """Return the mean of the middle half: ⌊n/4⌋ values are cut off at each end."""
    cut = int(0.25 * values.size)
    stop = values.size - cut
    return float(np.partition(values, (cut, stop - 1))[cut:stop].mean())


def summarize(values: Sequence[float] | Floats) -> Summary:
    """Describe a sample.

    Raises:
        ValueError: If it is empty.
    """
    sample = _sample(values)
    low_tail = float(np.quantile(sample, 0.05))
    return Summary(sample.size, mean(sample), truncated_mean(sample), low_tail, float(sample.min()))


def paired_difference(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> PairedDifference:
    """Compare two samples of the same units (seeds, tasks, episodes), unit by unit.

    Raises:
        ValueError: If they are empty or of different sizes.
    """
    left, right = _sample(first), _sample(second)
    if left.shape != right.shape:
        raise ValueError(f"got {left.size} values to pair with {right.size}; give both for the same units")
    gaps = left - right
    low, high = bootstrap_interval(gaps)
    deviation = float(gaps.std(ddof=1)) if gaps.size > 1 else None
    won = float(np.mean((gaps > 0) + 0.5 * (gaps == 0)))
    return PairedDifference(gaps.size, mean(gaps), low, high, deviation, won)


def cluster_p_value(values: Sequence[float] | Floats, groups: Sequence[Hashable] | None = None) -> float | None:
    """Return the two-sided p-value of the hypothesis that the mean is zero, for observations in groups.

    A t-test with the standard error of the mean over groups, SE² = G/(G−1) · Σ_g (Σ_{i∈g} (x_i − x̄))² / n², and G − 1
    degrees of freedom. Unlike shares of resamples it has no smallest value, so it can be corrected for many
    comparisons (:func:`holm_adjusted`).

    Args:
        values: Observations [n].
        groups: Group of each observation, sortable [n]; if None, each observation is its own group.

    Returns:
        The p-value; None with fewer than two groups, and 1 if all groups agree exactly: the spread is unknown then.
    """
    sample = _sample(values)
    owners = np.arange(sample.size) if groups is None else _codes(groups)[1]
    sums = np.bincount(owners, sample - sample.mean())  # [G] residuals of each group
    if sums.size < 2:
        return None
    error = float(np.sqrt(sums.size / (sums.size - 1) * (sums**2).sum())) / sample.size
    if error <= 1e-12 * max(1.0, abs(float(sample.mean()))):
        return 1.0
    from scipy.special import stdtr  # slow to import

    return 2.0 * float(stdtr(sums.size - 1, -abs(float(sample.mean())) / error))


def holm_adjusted(p_values: Sequence[float] | Floats) -> Floats:
    """Return p-values corrected for several comparisons by Holm's step-down method.

    Rejecting every hypothesis whose adjusted p-value is at most α keeps the probability of any false rejection at
    most α, whatever the dependence between the tests.

    Args:
        p_values: One per comparison, in any order [n].

    Returns:
        The adjusted p-values in the same order [n], each at most 1.
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    # The k-th smallest of n is multiplied by n - k (k from 0); a running maximum keeps the order.
    steps = np.maximum.accumulate(values[order] * np.arange(values.size, 0, -1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def resample(groups: int, resamples: int = RESAMPLES, seed: int = 0) -> Ints:
    """Draw groups with replacement: indices [resamples, groups]."""
    return np.random.default_rng(seed).integers(groups, size=(resamples, groups))


def bootstrap_estimates(
    values: Floats,
    groups: Sequence[Hashable] | None = None,
    statistic: Statistic = mean,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Floats:
    """Compute a statistic of every resample.

    Args:
        values: Observations [n].
        groups: Group of each observation, sortable [n]; if None, each observation is its own group.
        statistic: What is computed from the observations of a resample.
        resamples: Number of resamples.
        seed: Seed of the resampling.

    Returns:
        The estimates [resamples].
    """
    if groups is None:
        drawn = values[resample(values.size, resamples, seed)]  # [resamples, n]
        return drawn.mean(axis=1) if statistic is mean else np.array([statistic(row) for row in drawn])
    members = _members(groups)
    chosen = resample(len(members), resamples, seed)
    return np.array([statistic(values[np.concatenate([members[index] for index in row])]) for row in chosen])


def bootstrap_interval(
    values: Floats,
    groups: Sequence[Hashable] | None = None,
    statistic: Statistic = mean,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Return the 95 % percentile interval of a statistic, by resampling groups.

    The arguments are those of :func:`bootstrap_estimates`. With fewer than two groups the ends are None.
    """
    if (values.size if groups is None else len(set(groups))) < 2:
        return None, None
    return percentile_interval(bootstrap_estimates(values, groups, statistic, resamples=resamples, seed=seed))


def fast_bootstrap_interval(
    values: Floats, groups: Sequence[Hashable], statistic: Statistic, *, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Return :func:`bootstrap_interval` up to rounding, for all resamples at once.

    It uses the same resamples, but only how often each value is in each of them, so that thousands of observations
    take milliseconds.

    Args:
        values: Observations [n].
        groups: Group of each observation, sortable [n].
        statistic: :func:`mean` or :func:`truncated_mean`.
        resamples: Number of resamples.
        seed: Seed of the resampling.

    Raises:
        ValueError: If the statistic is another one.
    """
    names, owners = _codes(groups)
    if len(names) < 2:
        return None, None
    counts = np.zeros((resamples, len(names)), np.int64)  # how often each resample has each group
    np.add.at(counts, (np.arange(resamples)[:, None], resample(len(names), resamples, seed)), 1)
    if statistic is mean:
        sums = np.bincount(owners, values)  # [groups]
        return percentile_interval((counts @ sums) / (counts @ np.bincount(owners)))
    if statistic is truncated_mean:
        order = np.argsort(values, kind="stable")
        rising, owners = values[order], owners[order]
        starts = range(0, resamples, _BATCH)
        parts = [_truncated_means(rising, counts[start : start + _BATCH][:, owners]) for start in starts]
        return percentile_interval(np.concatenate(parts))
    raise ValueError(f"got the statistic {statistic!r}; expected mean or truncated_mean; use bootstrap_interval")


def interval_over_seeds(values: Floats) -> tuple[float, float]:
    """Return the 95 % interval of the mean over seeds, for learning curves; a single seed gives its own value twice.

    Args:
        values: One value per seed [seeds].
    """
    return percentile_interval(bootstrap_estimates(values, resamples=2 * RESAMPLES))


def percentile_interval(estimates: Floats) -> tuple[float, float]:
    """Return the middle 95 % of estimates."""
    low, high = np.quantile(estimates, [0.025, 0.975])
    return float(low), float(high)


def _sample(values: Sequence[float] | Floats) -> Floats:
    sample = np.asarray(values, dtype=np.float64)
    if sample.size == 0:
        raise ValueError("got no values; expected at least one")
    return sample


def _codes(groups: Sequence[Hashable]) -> tuple[list[Hashable], Indices]:
    """Return the groups in ascending order, and the index among them of each observation's group [n]."""
    names: list[Hashable] = sorted(set(groups))  # type: ignore[type-var]  # groups are of one sortable type
    index = {name: position for position, name in enumerate(names)}
    return names, np.array([index[group] for group in groups], np.intp)


def _members(groups: Sequence[Hashable]) -> list[Indices]:
    """Return the indices of each group's observations, groups in ascending order."""
    names, owners = _codes(groups)
    sizes = np.bincount(owners, minlength=len(names))
    return np.split(np.argsort(owners, kind="stable"), np.cumsum(sizes)[:-1])


def _truncated_means(rising: Floats, weights: Ints) -> Floats:
    """Compute truncated means of resamples.

    Args:
        rising: Observations in ascending order [n].
        weights: How often each resample has each of them [resamples, n].
    """
    ends = np.cumsum(weights, axis=1)  # [resamples, n] values of the resample up to and including this one
    q1, q3 = _quantiles(rising, ends, 0.25), _quantiles(rising, ends, 0.75)
    kept = weights * (rising <= (q3 + _UPPER_FENCE * (q3 - q1))[:, None])
    means: Floats = (kept @ rising) / kept.sum(axis=1)
    return means


def _quantiles(rising: Floats, ends: Ints, share: float) -> Floats:
    """Compute the quantile of every resample [resamples], interpolated between neighbours as numpy does."""
    position = (ends[:, -1] - 1) * share
    below = np.floor(position)
    # The value at rank r is the first whose cumulative count exceeds r.
    lower = rising[np.argmax(ends > below[:, None], axis=1)]
    upper = rising[np.argmax(ends > np.ceil(position)[:, None], axis=1)]
    quantiles: Floats = lower + (upper - lower) * (position - below)
    return quantiles
