"""Figures of a dataset: counts, and how prices, quantities, delivery and operations are distributed.

Number, range, mean, standard deviation and quantiles, overall and by role and level, for targets and for actions.
Whole numbers are counted value by value and arrays are read in chunks, so the figures are exact and memory stays flat.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from litaagent_std.hrl_xf.data_pipeline.dataset import OfflineData
from litaagent_std.policy.arrays import Array, Ints
from litaagent_std.policy.features import DAY_FEATURES
from litaagent_std.policy.parameters import LEVELS
from litaagent_std.records.columns import ACCEPT, END, REJECT

__all__ = ["QUANTILES", "Distribution", "Operations", "Statistics", "dataset_statistics"]

QUANTILES: Final = (0.01, 0.05, 0.25, 0.50, 0.75, 0.95, 0.99)
ROLES: Final = ("buy", "sell")

_ROWS: Final = 65_536
_LEVEL: Final = DAY_FEATURES["x_static"].index("level")
_CENTS: Final = 100
"""Target prices are means; they are counted to a hundredth."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """How a quantity is distributed.

    Attributes:
        what: The quantity.
        role: ``buy`` or ``sell``; ``all`` for both.
        level: ``first``, ``middle`` or ``last`` level of the chain; ``all`` for all of them.
        n: Number of values.
        mean: Mean.
        std: Standard deviation.
        low: Least value.
        high: Largest value.
        quantiles: At `QUANTILES`: the smallest value that this share does not exceed.
    """

    what: str
    role: str
    level: str
    n: int
    mean: float
    std: float
    low: float
    high: float
    quantiles: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Operations:
    """Operations of a role and level, and the share of answered counter-offers that were accepted."""

    role: str
    level: str
    accept: int
    reject: int
    end: int
    taken: float | None


@dataclass(frozen=True, slots=True)
class Statistics:
    """All figures of a dataset."""

    counts: dict[str, Any]
    distributions: tuple[Distribution, ...]
    operations: tuple[Operations, ...]


class _Tally:
    """Counts of values, by role and level."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int, int], Ints] = {}

    def add(self, what: str, values: Array, role: Array, level: Array) -> None:
        for role_index in range(len(ROLES)):
            for level_index in range(len(LEVELS)):
                selected = values[(role == role_index) & (level == level_index)]
                if len(selected):
                    self._merge((what, role_index, level_index), np.bincount(selected.astype(np.int64)))

    def _merge(self, key: tuple[str, int, int], new: Ints) -> None:
        old = self._counts.get(key, np.zeros(0, np.int64))
        total = np.zeros(max(len(old), len(new)), np.int64)
        total[: len(old)] += old
        total[: len(new)] += new
        self._counts[key] = total

    def counts(self, what: str, role: int, level: int) -> Ints:
        return self._counts.get((what, role, level), np.zeros(0, np.int64))

    def overall(self, what: str) -> Ints:
        """Return the counts of all roles and levels together."""
        parts = [counts for (name, _, _), counts in self._counts.items() if name == what]
        total = np.zeros(max(map(len, parts), default=0), np.int64)
        for counts in parts:
            total[: len(counts)] += counts
        return total

    def distributions(self, what: str, unit: float) -> Iterator[Distribution]:
        """Yield the distribution of all values, and those of each role and level that has some."""
        overall = self.overall(what)
        if overall.sum():
            yield _distribution(what, "all", "all", overall, unit)
        for role, level in itertools.product(range(len(ROLES)), range(len(LEVELS))):
            counts = self.counts(what, role, level)
            if counts.sum():
                yield _distribution(what, ROLES[role], LEVELS[level], counts, unit)


def _distribution(what: str, role: str, level: str, counts: Ints, unit: float) -> Distribution:
    """Describe values that are counted one by one: ``counts[k]`` of the value k / unit."""
    values, n = np.arange(len(counts)) / unit, int(counts.sum())
    seen = np.flatnonzero(counts)
    mean = float((values * counts).sum() / n)
    std = float(np.sqrt((counts * (values - mean) ** 2).sum() / n))
    indices = np.searchsorted(np.cumsum(counts), np.array(QUANTILES) * n)
    quantiles = tuple(float(values[index]) for index in indices)
    ends = float(values[seen[0]]), float(values[seen[-1]])
    return Distribution(what, role, level, n, mean, std, *ends, quantiles)


def dataset_statistics(data: OfflineData) -> Statistics:
    """Compute the figures of a dataset."""
    tally = _Tally()
    for macro in data.macro.chunks(_ROWS, _MACRO):
        _add_goals(tally, macro)
    for micro in data.micro.chunks(_ROWS, _MICRO):
        _add_actions(tally, micro, _levels(data.macro["x_static"][micro["day_row"], _LEVEL]))
    units = {"target price": float(_CENTS), "target quantity": 1.0, "price": 1.0, "quantity": 1.0, "delivery": 1.0}
    distributions = [part for what, unit in units.items() for part in tally.distributions(what, unit)]
    operations = [_operations(tally, role, level) for role in range(len(ROLES)) for level in range(len(LEVELS))]
    return Statistics(
        {**data.manifest["counts"], **{f"worlds_{k}": n for k, n in data.manifest["worlds_by_split"].items()}},
        tuple(distributions),
        tuple(counts for counts in operations if counts is not None),
    )


_MACRO: Final = ("x_static", "goal_q", "goal_p", "goal_p_mask")
_MICRO: Final = ("op", "offer", "taken", "side", "day_row")


def _levels(position: Array) -> Ints:
    """Return the index into `LEVELS`, from the position in the chain (0 first, 1 last)."""
    return np.where(position <= 0, 0, np.where(position >= 1, 2, 1))


def _add_goals(tally: _Tally, macro: dict[str, Array]) -> None:
    level = _levels(macro["x_static"][:, _LEVEL])
    rows, sides, buckets = np.nonzero(macro["goal_p_mask"])
    price = np.rint(macro["goal_p"][rows, sides, buckets].astype(np.float64) * _CENTS)
    tally.add("target price", price, sides, level[rows])
    tally.add("target quantity", np.rint(macro["goal_q"][rows, sides, buckets]), sides, level[rows])


def _add_actions(tally: _Tally, micro: dict[str, Array], level: Ints) -> None:
    side, made = micro["side"], micro["op"] == REJECT
    tally.add("op", micro["op"], side, level)
    answered = made & (micro["taken"] >= 0)
    tally.add("taken", micro["taken"][answered], side[answered], level[answered])
    for column, what in enumerate(("quantity", "delivery", "price")):
        tally.add(what, micro["offer"][made, column], side[made], level[made])


def _operations(tally: _Tally, role: int, level: int) -> Operations | None:
    counts = tally.counts("op", role, level)
    if not counts.sum():
        return None
    accept, reject, end = (int(counts[op]) if op < len(counts) else 0 for op in (ACCEPT, REJECT, END))
    taken = tally.counts("taken", role, level)
    share = float(taken[1:].sum() / taken.sum()) if taken.sum() else None
    return Operations(ROLES[role], LEVELS[level], accept, reject, end, share)
