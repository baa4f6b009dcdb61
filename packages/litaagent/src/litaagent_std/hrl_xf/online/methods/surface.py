"""A response surface over L2's numbers: every world ever played counts, and noise is shrunk instead of followed.

Between two of our policies the luck of a world is ten times what one step of evolution gains, so a search that forgets
walks at random. Here each place in the chain has a vector x: L2's numbers, and how they follow a few inputs. All worlds
so far are fitted by one quadratic (Box and Wilson, 1951), as a Bayesian linear regression:

    score(x) − world = Σ_k g_k x_k − ½ Σ_k (h + d_k) x_k² + ε        g_k ~ N(0, s_g²), d_k ~ N(0, s_d²)

*world* is the mean of a seat over all policies that sat in it, the reference included; s_g and s_d are those that make
the data most probable. If nothing is to be gained, s_g becomes small and so does every g. The policy is the top of the
surface, x_k = E[g_k] / E[h + d_k], and new worlds are played around it in antithetic pairs.

What was seen is kept as sums of products, so the state does not grow with the number of worlds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, Self

import numpy as np
import torch

from apexrl.runs.errors import ConfigurationError
from litaagent_std.agents.online.acting import ActingNet, PolicySet
from litaagent_std.agents.online.views import DAY_VIEW
from litaagent_std.hrl_xf.online.config import SurfaceConfig
from litaagent_std.hrl_xf.online.jobs import Job
from litaagent_std.hrl_xf.online.names import check_names, columns_of
from litaagent_std.hrl_xf.online.rollout import WorldRollout
from litaagent_std.hrl_xf.online.worlds import WorldPlan
from litaagent_std.policy.arrays import Floats
from litaagent_std.policy.parameters import LEVELS, Level

__all__ = ["Optimum", "SufficientStatistics", "SurfaceMethod"]


_ROWS: Final = {str(place): row for row, place in enumerate(LEVELS)}
_DEVIATIONS: Final = tuple(0.001 * 2.0**power for power in range(8))
"""What s_g and s_d may be, in scores per unit."""
_FLAT: Final = 10.0
"""Prior deviation of the common curvature h: as good as none."""
_MIDDLE: Final = 0.5
"""Slopes turn around this value of an input, so that they do not stand for the constants: the surface has no products
of two numbers."""
_FLATTEST: Final = 0.01
"""Common curvature that is assumed at least, in scores per unit²: what looks flat, or like a valley, is climbed by its
slopes, and the less the smaller they are."""
_LEAST_CURVATURE: Final = 0.25
"""Share of the common curvature below which no number's own may fall: a ridge without end has no top."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """The top of a surface.

    Attributes:
        x: Where it is [K].
        gain: What the surface says it is above 0.
    """

    x: Floats
    gain: float


@dataclass(frozen=True, slots=True)
class SufficientStatistics:
    """What all worlds so far say about one place in the chain.

    Attributes:
        products: Sums of products of the regressors and, in the last row and column, the scores [2K + 2, 2K + 2].
        degrees: Scores less worlds: how many independent differences there are.
    """

    products: Floats
    degrees: int = 0

    @classmethod
    def nothing(cls, size: int) -> Self:
        """No worlds yet, for ``size`` numbers."""
        return cls(np.zeros((2 * size + 2, 2 * size + 2)))

    def with_seat(self, x: Floats, scores: Floats) -> SufficientStatistics:
        """Add a seat of a world that was played by several policies.

        Args:
            x: Their numbers [n, K].
            scores: What each reached [n].
        """
        square = -0.5 * np.square(x)
        rows = np.concatenate((x, square.sum(1, keepdims=True), square, scores[:, None]), axis=1)
        rows = rows - rows.mean(0)
        return SufficientStatistics(self.products + rows.T @ rows, self.degrees + len(scores) - 1)

    @property
    def noise(self) -> float:
        """Deviation of a score from its world's mean; the surface explains too little of it to matter."""
        return float(np.sqrt(self.products[-1, -1] / self.degrees)) if self.degrees else float("nan")

    def top(self, reach: float) -> Optimum:
        """Return the top within ``reach`` of 0 in every number; 0 itself before anything was seen."""
        size = (len(self.products) - 2) // 2
        if not self.noise > 0.0:
            return Optimum(np.zeros(size), 0.0)
        fits = [self._fit(size, slope, own) for slope, own in product(_DEVIATIONS, _DEVIATIONS)]
        _, mean = max(fits, key=lambda fit: fit[0])
        slopes, common, own = mean[:size], mean[size], mean[size + 1 :]
        common = max(common, _FLATTEST)
        curvature = np.maximum(common + own, _LEAST_CURVATURE * common)
        x = np.clip(slopes / curvature, -reach, reach)
        return Optimum(x, float(slopes @ x - 0.5 * curvature @ np.square(x)))

    def _fit(self, size: int, slope: float, own: float) -> tuple[float, Floats]:
        """Logarithm of the data's probability under a prior, but for a constant, and the posterior's mean."""
        prior = np.concatenate((np.full(size, slope), [_FLAT], np.full(size, own))) ** -2.0
        variance = self.noise**2
        precision = self.products[:-1, :-1] / variance + np.diag(prior)
        target = self.products[:-1, -1] / variance
        mean = np.asarray(np.linalg.solve(precision, target), np.float64)
        evidence = 0.5 * (target @ mean + np.log(prior).sum() - np.linalg.slogdet(precision)[1])
        return float(evidence), mean


class SurfaceMethod:
    """Moves L2's numbers, one vector for each place in the chain, or their constants and slopes for one place.

    Args:
        cfg: How to search.
        seed: Of the perturbations.
        warm: Must be None: the surface is one over the heuristic agent.
        places: Places in the chain that are learned for.

    Raises:
        ConfigurationError: If an input or output does not exist, inputs are given for more than one place, or there is
            a warm start.
    """

    def __init__(
        self, cfg: SurfaceConfig, seed: int, warm: PolicySet | None = None, places: tuple[Level, ...] = LEVELS
    ) -> None:
        if warm is not None:
            raise ConfigurationError(
                "--method surface was given a warm start",
                "its surface is one over the heuristic agent",
                "leave --warm away, or use --method ppo or es",
            )
        check_names("L2", "input", cfg.inputs, DAY_VIEW)
        if cfg.inputs and len(places) > 1:
            raise ConfigurationError(
                f"numbers shall follow {', '.join(cfg.inputs)} at {', '.join(places)}",
                "a linear policy has one slope for all places",
                "give one of --places, or no --surface.inputs",
            )
        self.cfg, self._seed, self._places, self.version = cfg, seed, places, 0
        self._columns = columns_of("l2", cfg.outputs)
        self._inputs = [DAY_VIEW.index(name) for name in cfg.inputs]
        size = (1 + len(self._inputs)) * len(self._columns)
        self._evidence = {place: SufficientStatistics.nothing(size) for place in _ROWS}
        self._tops = self._find_tops()

    def _find_tops(self) -> dict[str, Optimum]:
        return {place: found.top(self.cfg.reach) for place, found in self._evidence.items()}

    @property
    def centre(self) -> Floats:
        """The present numbers, [place, output], and behind them their slopes, input by input."""
        return np.stack([self._tops[place].x for place in LEVELS])

    def _set(self, training_world: Floats) -> PolicySet:
        net, constants = ActingNet.zeros("l2"), len(self._columns)
        rows = [DAY_VIEW.index(f"level_{place}") for place in LEVELS]
        net.weights[0][np.ix_(rows, self._columns)] = training_world[:, :constants]
        if self._inputs:
            slopes = training_world[_ROWS[self._places[0]], constants:].reshape(len(self._inputs), constants)
            net.weights[0][np.ix_(self._inputs, self._columns)] = slopes
            net.biases[0][self._columns] = -_MIDDLE * slopes.sum(0)
        return PolicySet({"l2": net}, self.version, self._places)

    def policies(self) -> PolicySet:
        """Return the tops of the surfaces."""
        return self._set(self.centre)

    def _members(self, worlds: int) -> Floats:
        """Numbers and slopes to play, [world, member, place, …]: every world has directions of its own."""
        luck = np.random.default_rng(np.random.SeedSequence([self._seed, 8, self.version]))
        noise = self.cfg.sigma * luck.standard_normal((worlds, self.cfg.pairs, *self.centre.shape))
        return self.centre + np.concatenate((noise, -noise), axis=1)

    def jobs(self, plans: Sequence[WorldPlan]) -> list[Job]:
        """Every world by its members and by the reference."""
        jobs = []
        for plan, members in zip(plans, self._members(len(plans)), strict=True):
            jobs += [Job(plan, self._set(member), None, rounds=False) for member in members]
        return jobs + [Job(plan, PolicySet({}, self.version), None, rounds=False) for plan in plans]

    def update(self, jobs: Sequence[Job], rollouts: Sequence[WorldRollout]) -> dict[str, float]:
        """Add the worlds to the evidence and move to the new tops."""
        worlds = len(jobs) // (2 * self.cfg.pairs + 1)
        nobody = np.zeros((worlds, 1, *self.centre.shape))
        tables = np.concatenate((self._members(worlds), nobody), axis=1)
        played = len(jobs) - worlds
        for world, training_world in enumerate(tables):
            first = world * (len(training_world) - 1)
            together = [*rollouts[first : first + len(training_world) - 1], rollouts[played + world]]
            for seats in zip(*(rollout.seats for rollout in together), strict=True):
                place = seats[0].kind.partition("-")[2]
                scores = np.array([seat.score for seat in seats])
                self._evidence[place] = self._evidence[place].with_seat(training_world[:, _ROWS[place]], scores)
        self.version += 1
        self._tops = self._find_tops()
        found = {"surface/norm": float(np.linalg.norm(self.centre))}
        for place, evidence in self._evidence.items():
            if evidence.degrees:
                found |= {f"surface/noise_{place}": evidence.noise, f"surface/promise_{place}": self._tops[place].gain}
        return found

    def rename(self, version: int) -> None:
        """See `litaagent_std.hrl_xf.online.methods.methods.Method`."""
        self.version = version

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides the next update."""
        kept = {
            place: {"products": torch.from_numpy(found.products.copy()), "degrees": found.degrees}
            for place, found in self._evidence.items()
        }
        return {"evidence": kept, "version": self.version}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from `state_dict`."""
        self._evidence = {
            place: SufficientStatistics(kept["products"].numpy().copy(), int(kept["degrees"]))
            for place, kept in state["evidence"].items()
        }
        self.version = int(state["version"])
        self._tops = self._find_tops()
