"""A sequential test of a paired difference: test after every world, stop as soon as the answer is clear.

It is the t-test made valid at any time. With the effect size δ = μ/σ of the alternative drawn from N(0, g) and the
scale σ given the right Haar prior, the Bayes factor of n differences against mean μ₀ is

    B_n = (1 + n g)^(-1/2) · [ (1 + t²/ν) / (1 + t²/((1 + n g) ν)) ]^(n/2),   ν = n - 1,  t = √n (x̄ - μ₀) / s.

Under mean μ₀ it is a non-negative martingale of the scale-invariant observations, so by Ville's inequality it ever
exceeds 1/α with probability at most α. The means that it does not reject form a confidence sequence: an interval for
every n, all of which hold together with probability 1 - α, however often one looks.

Assumptions: worlds are drawn independently (they are: seeds and lengths are), and differences are normal. They are
not exactly, so no decision is taken before `FEWEST` worlds, nor while all differences are equal. Simulated over 1,000
worlds without a difference, the rate of false alarms is 3 % for normal and for heavy-tailed differences (Student's t
with 3 degrees of freedom), 6 % for exponential ones, and 9 % when everything hangs on a disaster in every fiftieth
world (-1.0 beside a deviation of 0.1): where disasters decide, ask for more worlds with ``--no-stop-early``, or wait
for more by ``fewest``. Who asks to wait need not wait for what is plain: from `EARLY` worlds on an answer counts before
``fewest`` if a sequence at the level `EARLY_ALPHA` gives it. With ``fewest=200`` all four rates stay below 5 %, early
looks included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from litaagent_std.policy.arrays import Floats

__all__ = [
    "ALPHA",
    "EARLY",
    "EARLY_ALPHA",
    "EFFECT_VARIANCE",
    "FEWEST",
    "Verdict",
    "comparison_title",
    "confidence_sequence",
    "decide",
    "half_widths",
    "worlds_needed",
]

ALPHA: Final = 0.05
"""Probability that the interval ever misses the true difference."""
FEWEST: Final = 30
"""Worlds before which nothing is decided."""
EARLY: Final = 40
"""Worlds from which a very clear answer counts although more were asked for."""
EARLY_ALPHA: Final = 0.001
"""Level of such an answer."""
EFFECT_VARIANCE: Final = 0.03
"""g: intervals are about as short as they can be at 200 to 500 worlds."""
_HORIZON: Final = 1 << 20

Answer = Literal["better", "not better", "open"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the differences say so far.

    Attributes:
        answer: ``better`` if the difference is above the lead that was asked for, ``not better`` if below, or ``open``.
        worlds: Worlds that were used: up to the first at which the answer was clear, or all.
        mean: Mean difference of them.
        low: Lower end of the confidence sequence there.
        high: Upper end.
        needed: About how many further worlds an open answer needs, if things go on as they are; None if too many to
            say, 0 if the answer is clear.
    """

    answer: Answer
    worlds: int
    mean: float
    low: float
    high: float
    needed: int | None


def half_widths(counts: Floats, alpha: float = ALPHA, variance: float = EFFECT_VARIANCE) -> Floats:
    """Half widths of the confidence sequence in units of the standard deviation (n - 1 in its denominator).

    Args:
        counts: Numbers of worlds n, float64 array of any shape.
        alpha: Probability that the sequence ever misses.
        variance: Prior variance g of the effect size.

    Returns:
        An array of the same shape; infinite where n is too small to exclude anything.
    """
    inflation = 1.0 + counts * variance
    ratio = np.exp(2.0 / counts * (np.log(1.0 / alpha) + 0.5 * np.log(inflation)))
    widths = np.full(counts.shape, np.inf)
    finite = (ratio < inflation) & (counts > 1)
    n, r, k = counts[finite], ratio[finite], inflation[finite]
    widths[finite] = np.sqrt((n - 1) * (r - 1) / (1 - r / k) / n)
    return widths


def decide(
    differences: Sequence[float] | Floats,
    lead: float = 0.0,
    *,
    alpha: float = ALPHA,
    stop: bool = True,
    fewest: int = FEWEST,
    precision: float = math.inf,
) -> Verdict:
    """Judge whether the mean difference is above ``lead``.

    Args:
        differences: Paired differences in the order of the worlds.
        lead: What the difference is compared with.
        alpha: Probability of a wrong answer, over all looks together.
        stop: Whether to stop at the first world at which the answer is clear; else all are used.
        fewest: Worlds before which nothing is decided, but what is very clear: from `EARLY` worlds on and at the level
            `EARLY_ALPHA`.
        precision: Half width of the interval up to which a clear answer is measured further, where its size matters. It
            follows from the spread alone, so the mean at which it stops is not a flattered one.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.size == 0:
        return Verdict("open", 0, math.nan, -math.inf, math.inf, None)
    means, lows, highs = _ends(values, alpha, fewest)
    clear = np.flatnonzero(((lows > lead) | (highs < lead)) & (highs - means <= precision))
    last = int(clear[0]) if stop and clear.size else values.size - 1
    mean, low, high = float(means[last]), float(lows[last]), float(highs[last])
    answer: Answer = "better" if low > lead else "not better" if high < lead else "open"
    used = values[: last + 1]
    spread = float(used.std(ddof=1)) if used.size > 1 else math.inf
    needed = 0 if answer != "open" else worlds_needed(mean - lead, spread, used.size, alpha)
    return Verdict(answer, last + 1, mean, low, high, needed)


def _ends(values: Floats, alpha: float, fewest: int) -> tuple[Floats, Floats, Floats]:
    """Return the confidence sequence from ``fewest`` values on, a stricter one before; infinite where none counts."""
    means, lows, highs = confidence_sequence(values, alpha)
    _, strict_lows, strict_highs = confidence_sequence(values, min(alpha, EARLY_ALPHA))
    counts = np.arange(1, values.size + 1)
    early, none = counts < fewest, counts < min(fewest, EARLY)
    lows, highs = np.where(early, strict_lows, lows), np.where(early, strict_highs, highs)
    return means, np.where(none, -np.inf, lows), np.where(none, np.inf, highs)


def confidence_sequence(values: Floats, alpha: float = ALPHA) -> tuple[Floats, Floats, Floats]:
    """Return running mean, lower and upper ends after 1, 2, … values, each of shape [values]."""
    # [N] values so far, running means, and running standard deviations
    counts = np.arange(1, values.size + 1, dtype=np.float64)
    means = np.cumsum(values) / counts
    centred = values - values[0]  # against cancellation in the sum of squares
    squares = np.cumsum(centred**2) - np.cumsum(centred) ** 2 / counts
    deviations = np.sqrt(np.maximum(squares, 0.0) / np.maximum(counts - 1, 1))
    # [N] half widths of the intervals; infinite until something can be excluded
    widths = half_widths(counts, alpha)
    reach = np.full(values.size, np.inf)
    known = np.isfinite(widths) & (deviations > 0)
    reach[known] = widths[known] * deviations[known]
    return means, means - reach, means + reach


def worlds_needed(distance: float, spread: float, played: int, alpha: float = ALPHA) -> int | None:
    """About how many further worlds make the answer clear, if mean and spread stay what they are.

    Args:
        distance: Mean difference minus the lead that is asked for.
        spread: Standard deviation of the differences.
        played: Worlds so far.
        alpha: Probability that the sequence ever misses.

    Returns:
        The number, or None when more than a million would be needed.
    """
    counts = np.unique(np.geomspace(FEWEST, _HORIZON, 400).astype(np.int64)).astype(np.float64)
    if not math.isfinite(spread):
        return None
    enough = counts[half_widths(counts, alpha) * spread < abs(distance)]
    return None if enough.size == 0 else max(1, int(enough[0]) - played)


def comparison_title(report: Mapping[str, Any]) -> str:
    """Return the title of the comparisons, which says if their intervals hold for all of them together."""
    count = len(report["comparisons"])
    together = f" (at any time: all {count} hold together)" if count > 1 and report.get("alpha", ALPHA) < ALPHA else ""
    return f"{report['focal']} minus the other, in the same worlds{together}"
