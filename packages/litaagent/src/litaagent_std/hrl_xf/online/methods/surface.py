"""A response surface over L2's action: all worlds so far are fitted together, and noise is shrunk by a prior.

The randomness of a world changes scores ten times as much as one step of evolution does, so a search without memory is
a random walk. Here each level of the chain has a vector x: constants of L2's action, and their slopes over a few
inputs. All worlds so far are fitted by one quadratic (Box and Wilson, 1951), as a Bayesian linear regression:

    score(x) − world = Σ_k g_k x_k − ½ Σ_k (h + d_k) x_k² + ε        g_k ~ N(0, s_g²), d_k ~ N(0, s_d²)

*world* is the mean score of a seat over all policies that played it, the reference included; s_g and s_d maximise the
marginal likelihood. If there is nothing to gain, s_g becomes small and so does every g. The policy is the optimum of
the surface, x_k = E[g_k] / E[h + d_k], and new worlds are played around it in antithetic pairs.

The data are kept as sums of products (sufficient statistics), so the state does not grow with the number of worlds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, Self

import numpy as np
import torch

from apexrl.runs.errors import ConfigurationError
from litaagent_std.hrl_xf.online.config import SurfaceConfig
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.jobs import Job
from litaagent_std.hrl_xf.online.methods.shifts import GoalShifts
from litaagent_std.hrl_xf.online.rollout import WorldRollout
from litaagent_std.hrl_xf.online.worlds import WorldPlan
from litaagent_std.policy.arrays import Floats
from litaagent_std.policy.parameters import LEVELS, Level

__all__ = ["Optimum", "SufficientStatistics", "SurfaceMethod"]


_ROLE: Final = ("buys", "sells")
"""Inputs that tell the level."""
_ROWS: Final = {str(level): row for row, level in enumerate(LEVELS)}
_DEVIATIONS: Final = tuple(0.001 * 2.0**power for power in range(8))
"""Candidates for s_g and s_d, in scores per unit."""
_FLAT: Final = 10.0
"""Prior standard deviation of the common curvature h: practically flat."""
_MIDDLE: Final = 0.5
"""Value of an input at which slopes have no effect, so that slopes and constants are separate: the surface has no
products of two variables."""
_FLATTEST: Final = 0.01
"""Smallest common curvature, in scores per unit²: a flat or convex surface is followed along its slopes, in proportion
to them."""
_LEAST_CURVATURE: Final = 0.25
"""Smallest curvature of one variable as a share of the common one: a ridge without end has no optimum."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """Optimum of a surface.

    Attributes:
        x: Its position [K].
        gain: Predicted score above that of x = 0.
    """

    x: Floats
    gain: float


@dataclass(frozen=True, slots=True)
class SufficientStatistics:
    """Sufficient statistics of all worlds so far for one level of the chain.

    Attributes:
        products: Sums of products of the regressors and, in the last row and column, the scores [2K + 2, 2K + 2].
        degrees: Degrees of freedom: scores less worlds.
    """

    products: Floats
    degrees: int = 0

    @classmethod
    def empty(cls, size: int) -> Self:
        """Return the statistics before the first world, for ``size`` variables."""
        return cls(np.zeros((2 * size + 2, 2 * size + 2)))

    def with_seat(self, x: Floats, scores: Floats) -> SufficientStatistics:
        """Add a seat of a world that several policies played.

        Args:
            x: Position of each policy [n, K].
            scores: Score of each policy [n].
        """
        square = -0.5 * np.square(x)  # [n, K]
        # [n, 2K + 2] regressors of g, h and d, then the score; centring removes the world's own part
        rows = np.concatenate((x, square.sum(1, keepdims=True), square, scores[:, None]), axis=1)
        rows = rows - rows.mean(0)
        return SufficientStatistics(self.products + rows.T @ rows, self.degrees + len(scores) - 1)

    @property
    def noise(self) -> float:
        """Standard deviation of a score from its world's mean; the surface explains a negligible part of it."""
        return float(np.sqrt(self.products[-1, -1] / self.degrees)) if self.degrees else float("nan")

    def optimum(self, reach: float) -> Optimum:
        """Return the optimum within ``reach`` of 0 in every variable; 0 itself before the first world."""
        size = (len(self.products) - 2) // 2
        if not self.noise > 0.0:
            return Optimum(np.zeros(size), 0.0)
        fits = [self._fit(size, slope, own) for slope, own in product(_DEVIATIONS, _DEVIATIONS)]
        _, mean = max(fits, key=lambda fit: fit[0])
        slopes, common, own = mean[:size], mean[size], mean[size + 1 :]  # E[g] [K], E[h], E[d] [K]
        common = max(common, _FLATTEST)
        # [K] curvature of each variable, never too flat
        curvature = np.maximum(common + own, _LEAST_CURVATURE * common)
        x = np.clip(slopes / curvature, -reach, reach)
        return Optimum(x, float(slopes @ x - 0.5 * curvature @ np.square(x)))

    def _fit(self, size: int, slope: float, own: float) -> tuple[float, Floats]:
        """Return the log marginal likelihood up to a constant, and the posterior mean [2K + 1], for a prior.

        Args:
            size: K.
            slope: Prior standard deviation s_g.
            own: Prior standard deviation s_d.
        """
        prior = np.concatenate((np.full(size, slope), [_FLAT], np.full(size, own))) ** -2.0
        variance = self.noise**2
        # posterior precision [2K + 1, 2K + 1] and its right-hand side [2K + 1]
        precision = self.products[:-1, :-1] / variance + np.diag(prior)
        target = self.products[:-1, -1] / variance
        mean = np.asarray(np.linalg.solve(precision, target), np.float64)
        log_likelihood = 0.5 * (target @ mean + np.log(prior).sum() - np.linalg.slogdet(precision)[1])
        return float(log_likelihood), mean


class SurfaceMethod:
    """Optimise L2's action: one constant vector per level of the chain, or constants and slopes for one level.

    Args:
        cfg: Options of the search.
        seed: Seed of the perturbations.
        start: Networks to start from; their L2 must give zeros, because the surface is centred on the heuristic agent.
        levels: Levels of the chain to learn for.

    Raises:
        ConfigurationError: If an input or output does not exist, or inputs are given for more than one level.
    """

    def __init__(self, cfg: SurfaceConfig, seed: int, start: Hierarchy, levels: tuple[Level, ...] = LEVELS) -> None:
        self.cfg, self._seed, self._levels, self.version = cfg, seed, levels, 0
        self._shifts = GoalShifts(start, (*_ROLE, *cfg.inputs), cfg.outputs, levels)
        if cfg.inputs and len(levels) > 1:
            raise ConfigurationError(
                f"--surface.inputs {' '.join(cfg.inputs)} were given for {', '.join(levels)}",
                "a linear policy has one slope for all levels",
                "give one of --places, or no --surface.inputs",
            )
        size = (1 + len(cfg.inputs)) * len(self._shifts.columns)
        self._statistics = {level: SufficientStatistics.empty(size) for level in _ROWS}
        self._optima = self._find_optima()

    def _find_optima(self) -> dict[str, Optimum]:
        return {level: statistics.optimum(self.cfg.reach) for level, statistics in self._statistics.items()}

    @property
    def centre(self) -> Floats:
        """Present optimum by level [levels, K]: constants of each output, then their slopes, input by input."""
        return np.stack([self._optima[level].x for level in LEVELS])

    def _hierarchy(self, x: Floats) -> Hierarchy:
        """Return the networks of positions x [levels, K]."""
        size = len(self._shifts.columns)
        first, middle, last = x[:, :size]  # constants of each level
        slopes = np.zeros((len(self.cfg.inputs), size))
        if len(slopes):
            slopes = x[_ROWS[self._levels[0]], size:].reshape(-1, size)
        # what a factory trades tells its level: the first only sells, the last only buys
        bias = first + last - middle - _MIDDLE * slopes.sum(0)
        return self._shifts.hierarchy(bias, np.stack([middle - first, middle - last, *slopes]), self.version)

    def policies(self) -> Hierarchy:
        """Return the networks at the optima of the surfaces."""
        return self._hierarchy(self.centre)

    def _members(self, worlds: int) -> Floats:
        """Return the positions to play [worlds, 2 · pairs, levels, K]: every world has directions of its own."""
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, 8, self.version]))
        noise = self.cfg.sigma * rng.standard_normal((worlds, self.cfg.pairs, *self.centre.shape))
        return self.centre + np.concatenate((noise, -noise), axis=1)

    def jobs(self, plans: Sequence[WorldPlan]) -> list[Job]:
        """Return every world with its members and with the reference policy."""
        jobs = []
        for plan, members in zip(plans, self._members(len(plans)), strict=True):
            jobs += [Job(plan, self._hierarchy(member), None) for member in members]
        reference = Hierarchy(version=self.version)
        return jobs + [Job(plan, reference, None) for plan in plans]

    def update(self, jobs: Sequence[Job], rollouts: Sequence[WorldRollout]) -> dict[str, float]:
        """Add the worlds to the statistics and move to the new optima."""
        worlds = len(jobs) // (2 * self.cfg.pairs + 1)
        reference = np.zeros((worlds, 1, *self.centre.shape))
        # [worlds, 2 · pairs + 1, levels, K] positions of all policies; the last one is the reference
        positions = np.concatenate((self._members(worlds), reference), axis=1)
        references = rollouts[len(jobs) - worlds :]
        for world, x in enumerate(positions):
            first = world * (len(x) - 1)
            together = [*rollouts[first : first + len(x) - 1], references[world]]
            for seats in zip(*(rollout.seats for rollout in together), strict=True):
                level = seats[0].kind.partition("-")[2]
                scores = np.array([seat.score for seat in seats])  # [2 · pairs + 1]
                self._statistics[level] = self._statistics[level].with_seat(x[:, _ROWS[level]], scores)
        self.version += 1
        self._optima = self._find_optima()
        metrics = {"surface/norm": float(np.linalg.norm(self.centre))}
        for level, statistics in self._statistics.items():
            if statistics.degrees:
                metrics[f"surface/noise_{level}"] = statistics.noise
                metrics[f"surface/promise_{level}"] = self._optima[level].gain
        return metrics

    def set_version(self, version: int) -> None:
        """Set the version; see `litaagent_std.hrl_xf.online.methods.base.Method`."""
        self.version = version

    def state_dict(self) -> dict[str, Any]:
        """Return everything that decides later updates."""
        by_level = {
            level: {"products": torch.from_numpy(statistics.products.copy()), "degrees": statistics.degrees}
            for level, statistics in self._statistics.items()
        }
        return {"evidence": by_level, "version": self.version}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from `state_dict`."""
        self._statistics = {
            level: SufficientStatistics(saved["products"].numpy().copy(), int(saved["degrees"]))
            for level, saved in state["evidence"].items()
        }
        self.version = int(state["version"])
        self._optima = self._find_optima()
