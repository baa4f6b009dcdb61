"""The results of a tournament: scores by the official metric, by level, with intervals, and paired comparisons.

Everything is computed from the records alone, so they work for any folder of records, also while it grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from apexrl.statistics import bootstrap_interval, cluster_p_value, holm_adjusted, truncated_mean
from litaagent_std.records.reader import Records

__all__ = ["Paired", "Results", "Score", "Standing", "corrected", "results_of"]

_ALPHA: Final = 0.05


@dataclass(frozen=True, slots=True)
class Score:
    """One competitor's score in one world."""

    source: int
    world: int
    config: int
    run: int
    factory: int
    level: str
    competitor: str
    agent_type: str
    score: float
    errors: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """One competitor's result.

    Attributes:
        competitor: Its name.
        worlds: Seats that it played.
        score: Truncated mean of its scores, the official metric.
        low: Lower end of the 95 % interval of the metric, by resampling configurations; None with a single one.
        high: Upper end.
        mean: Plain mean.
        levels: Mean by level: ``first``, ``middle``, ``last``; levels that it never played are absent.
        errors: Exceptions that came out of it, in all its worlds.
    """

    competitor: str
    worlds: int
    score: float
    low: float | None
    high: float | None
    mean: float
    levels: dict[str, float]
    errors: int = 0


@dataclass(frozen=True, slots=True)
class Paired:
    """Two competitors in the same seats of the same configurations with the same randomness.

    Attributes:
        first: One of them.
        second: The other.
        pairs: Seats that both played.
        difference: Mean of first minus second.
        low: Lower end of its 95 % interval, by resampling configurations; None with a single one.
        high: Upper end.
        p_value: Two-sided p-value of no difference, by configurations; None with a single one.
        p_holm: The same, corrected for all pairs of the table by Holm's method.
    """

    first: str
    second: str
    pairs: int
    difference: float
    low: float | None
    high: float | None
    p_value: float | None = None
    p_holm: float | None = None

    @property
    def is_clear(self) -> bool:
        """Whether the difference survives the correction for the number of pairs, at 5 %."""
        return self.p_holm is not None and self.p_holm <= _ALPHA


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that came out.

    Attributes:
        scores: Every competitor's score in every world.
        standings: From the best on.
        paired: Every pair that met in the same seat, better one first.
        failed: Worlds that failed for good, with the reason.
    """

    scores: tuple[Score, ...]
    standings: tuple[Standing, ...]
    paired: tuple[Paired, ...]
    failed: dict[str, str]

    def to_plain(self) -> dict[str, Any]:
        """Plain values for JSON, without the single scores."""
        return {
            "standings": [
                {"competitor": s.competitor, "worlds": s.worlds, "score": s.score, "interval_95": [s.low, s.high]}
                | {"mean": s.mean, "levels": s.levels, "errors": s.errors}
                for s in self.standings
            ],
            "paired": [
                {"first": p.first, "second": p.second, "pairs": p.pairs, "difference": p.difference}
                | {"interval_95": [p.low, p.high], "p_value": p.p_value, "p_holm": p.p_holm}
                for p in self.paired
            ],
            "failed": self.failed,
        }


def results_of(records: Records) -> Results:
    """Compute the results of all finished worlds; worlds in which a wall-clock limit fired are left out."""
    scores = _scores(records)
    by_name: dict[str, list[Score]] = {}
    for score in scores:
        by_name.setdefault(score.competitor, []).append(score)
    standings = sorted((_standing(name, own) for name, own in by_name.items()), key=lambda s: -s.score)
    order = [standing.competitor for standing in standings]
    pairs = [_pair(by_name[a], by_name[b]) for i, a in enumerate(order) for b in order[i + 1 :]]
    failed = {
        f"{source.folder.parent.name}/{world}": reason
        for source in records.sources
        for world, reason in source.manifest.failed.items()
    }
    met = corrected([pair for pair in pairs if pair is not None])
    return Results(tuple(scores), tuple(standings), tuple(met), failed)


def corrected(pairs: Sequence[Paired]) -> list[Paired]:
    """Return pairs with their p-values corrected for the number of pairs that have one."""
    tested = [index for index, pair in enumerate(pairs) if pair.p_value is not None]
    adjusted = holm_adjusted([pairs[index].p_value or 0.0 for index in tested])
    by_index = dict(zip(tested, adjusted.tolist(), strict=True))
    return [replace(pair, p_holm=by_index.get(index)) for index, pair in enumerate(pairs)]


def _scores(records: Records) -> list[Score]:
    facts = ["config", "run", "n_levels", "limit_fired"]
    worlds = {(w["source"], w["world"]): w for w in records.table("worlds", columns=facts).to_pylist()}
    columns = ["factory", "level", "competitor", "agent_type", "score", "n_errors"]
    scores = []
    for row in records.table("factories", columns=columns).to_pylist():
        world = worlds[row["source"], row["world"]]
        if row["competitor"] is None or world["limit_fired"]:
            continue
        last = world["n_levels"] - 1
        level = "first" if row["level"] == 0 else "last" if row["level"] == last else "middle"
        where = (row["source"], row["world"], world["config"], world["run"], row["factory"], level)
        scores.append(Score(*where, row["competitor"], row["agent_type"], row["score"], row["n_errors"]))
    return scores


def _standing(name: str, own: Sequence[Score]) -> Standing:
    values = np.array([score.score for score in own])
    low, high = bootstrap_interval(values, [(score.source, score.config) for score in own], truncated_mean)
    by_level = {
        level: float(np.mean([score.score for score in own if score.level == level]))
        for level in ("first", "middle", "last")
        if any(score.level == level for score in own)
    }
    errors = sum(score.errors for score in own)
    return Standing(name, len(own), truncated_mean(values), low, high, float(values.mean()), by_level, errors)


def _pair(first: Sequence[Score], second: Sequence[Score]) -> Paired | None:
    """Compare two competitors in the seats that both played, mean by mean."""
    seats: list[dict[tuple[int, int, int, int], list[float]]] = [{}, {}]
    for seen, own in zip(seats, (first, second), strict=True):
        for score in own:
            seen.setdefault((score.source, score.config, score.run, score.factory), []).append(score.score)
    shared = sorted(seats[0].keys() & seats[1].keys())
    if not shared:
        return None
    gaps = np.array([float(np.mean(seats[0][seat])) - float(np.mean(seats[1][seat])) for seat in shared])
    configs = [seat[:2] for seat in shared]
    low, high = bootstrap_interval(gaps, configs)
    names = (first[0].competitor, second[0].competitor)
    return Paired(*names, len(shared), float(gaps.mean()), low, high, cluster_p_value(gaps, configs))
