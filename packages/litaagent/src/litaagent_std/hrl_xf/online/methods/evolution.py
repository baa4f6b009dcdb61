"""Evolution strategies on L2's parameters: no credit assignment, only scores of whole worlds compared in pairs.

Salimans et al. (2017) with antithetic pairs and common random numbers: all members of a population play the same
worlds, so that their scores differ mostly because their parameters differ.

    g = 1/(2σP) Σ_i (F(θ + σε_i) − F(θ − σε_i)) ε_i        θ ← θ + Adam(g) − α·decay·θ

Few parameters are learned: the biases of L2's last layer, and its direct weights of some inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from litaagent_std.hrl_xf.online.config import EvolutionConfig
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.jobs import Job
from litaagent_std.hrl_xf.online.methods.shifts import GoalShifts
from litaagent_std.hrl_xf.online.rollout import WorldRollout
from litaagent_std.hrl_xf.online.worlds import WorldPlan
from litaagent_std.policy.arrays import Floats
from litaagent_std.policy.parameters import LEVELS, Level

__all__ = ["EvolutionMethod"]


class EvolutionMethod:
    """Evolution strategies on shifts of L2's residuals (`methods.shifts`).

    Args:
        cfg: Options of the search.
        seed: Seed of the perturbations.
        start: Networks to start from.
        levels: Levels of the chain to learn for.

    Raises:
        ConfigurationError: If an input or output does not exist.
    """

    def __init__(self, cfg: EvolutionConfig, seed: int, start: Hierarchy, levels: tuple[Level, ...] = LEVELS) -> None:
        self.cfg, self._seed, self.version = cfg, seed, 0
        self._shifts = GoalShifts(start, cfg.inputs, cfg.outputs, levels)
        size = (1 + len(cfg.inputs)) * len(self._shifts.columns)
        self.theta: Floats = np.zeros(size)
        self._first, self._second = np.zeros(size), np.zeros(size)

    def _hierarchy(self, theta: Floats) -> Hierarchy:
        bias, *slopes = theta.reshape(1 + len(self.cfg.inputs), -1)  # [1 + inputs, outputs]
        return self._shifts.hierarchy(bias, np.array(slopes).reshape(-1, len(bias)), self.version)

    def policies(self) -> Hierarchy:
        """Return the networks at the centre of the search."""
        return self._hierarchy(self.theta)

    def _perturbations(self) -> Floats:
        """Return the perturbations of this version [pairs, parameters]."""
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, 7, self.version]))
        return rng.standard_normal((self.cfg.pairs, len(self.theta)))

    def jobs(self, plans: Sequence[WorldPlan]) -> list[Job]:
        """Return every world with every member of the population and with the reference policy."""
        jobs = []
        for noise in self._perturbations():
            for sign in (1.0, -1.0):
                member = self._hierarchy(self.theta + sign * self.cfg.sigma * noise)
                jobs += [Job(plan, member, None) for plan in plans]
        reference = Hierarchy(version=self.version)
        return jobs + [Job(plan, reference, None) for plan in plans]

    def update(self, jobs: Sequence[Job], rollouts: Sequence[WorldRollout]) -> dict[str, float]:
        """Step along the estimated gradient."""
        cfg = self.cfg
        played = [rollout for job, rollout in zip(jobs, rollouts, strict=True) if job.policies.nets]
        # [pairs · 2 · worlds] mean score of our seats
        scores = np.array([np.mean([seat.score for seat in rollout.seats]) for rollout in played])
        worlds = len(played) // (2 * cfg.pairs)
        fitness = scores.reshape(cfg.pairs, 2, worlds)
        difference = fitness[:, 0] - fitness[:, 1]  # [pairs, worlds]; the world's own part cancels
        effect = difference.mean(1)  # [pairs]
        # [parameters]
        gradient = (effect / (2.0 * cfg.sigma)) @ self._perturbations() / cfg.pairs
        self.version += 1
        self.theta = self.theta + self._adam(gradient) - cfg.decay * self.theta
        metrics = {"es/fitness": scores.mean(), "es/effect": np.abs(effect).mean()}
        if worlds > 1:  # one world says nothing of the noise
            metrics["es/effect_noise"] = difference.std(1, ddof=1).mean() / np.sqrt(worlds)
        metrics |= {"es/gradient_norm": np.linalg.norm(gradient), "es/theta_norm": np.linalg.norm(self.theta)}
        return {name: float(value) for name, value in metrics.items()}

    def _adam(self, gradient: Floats) -> Floats:
        """Return Adam's step (Kingma and Ba, 2015): β₁ = 0.9, β₂ = 0.99."""
        self._first = 0.9 * self._first + 0.1 * gradient
        self._second = 0.99 * self._second + 0.01 * gradient**2
        first = self._first / (1.0 - 0.9**self.version)
        second = self._second / (1.0 - 0.99**self.version)
        step: Floats = self.cfg.learning_rate * first / (np.sqrt(second) + 1e-8)
        return step

    def set_version(self, version: int) -> None:
        """Set the version; see `litaagent_std.hrl_xf.online.methods.base.Method`."""
        self.version = version

    def state_dict(self) -> dict[str, Any]:
        """Return everything that decides later updates."""
        columns = {"theta": self.theta, "first": self._first, "second": self._second}
        return {name: torch.from_numpy(column.copy()) for name, column in columns.items()} | {"version": self.version}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from `state_dict`."""
        self.theta, self._first, self._second = (state[name].numpy().copy() for name in ("theta", "first", "second"))
        self.version = int(state["version"])
