"""Evolution strategies on L2's parameters: no credit assignment, only scores of whole worlds compared in pairs.

Salimans et al. (2017) with antithetic pairs and common random numbers: all members of a population play the same
worlds, so that their scores differ mostly because their parameters differ.

    g = 1/(2σP) Σ_i (F(θ + σε_i) − F(θ − σε_i)) ε_i        θ ← θ + Adam(g) − α·decay·θ

Few parameters are learned: the biases of a linear policy, and its weights of some inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from apexrl.runs.errors import ConfigurationError
from litaagent_std.agents.online.acting import ActingNet, PolicySet
from litaagent_std.agents.online.views import DAY_VIEW
from litaagent_std.hrl_xf.online.config import EvolutionConfig
from litaagent_std.hrl_xf.online.jobs import Job
from litaagent_std.hrl_xf.online.methods.base import check_names, output_columns
from litaagent_std.hrl_xf.online.rollout import WorldRollout
from litaagent_std.hrl_xf.online.worlds import WorldPlan
from litaagent_std.policy.arrays import Floats
from litaagent_std.policy.parameters import LEVELS, Level

__all__ = ["EvolutionMethod"]


class EvolutionMethod:
    """Evolution strategies on a linear L2.

    Args:
        cfg: Options of the search.
        seed: Seed of the perturbations.
        warm_start: Policies to start from; L2 must be linear. If None, the heuristic agent.
        levels: Levels of the chain to learn for.

    Raises:
        ConfigurationError: If an input or output does not exist, or the warm start's L2 is not linear.
    """

    def __init__(
        self, cfg: EvolutionConfig, seed: int, warm_start: PolicySet | None = None, levels: tuple[Level, ...] = LEVELS
    ) -> None:
        check_names("L2", "input", cfg.inputs, DAY_VIEW)
        self.cfg, self._seed, self._levels, self.version = cfg, seed, levels, 0
        self._rows = [DAY_VIEW.index(name) for name in cfg.inputs]
        nets = {} if warm_start is None else dict(warm_start.nets)
        self._base = nets.pop("l2", ActingNet.zeros("l2"))
        if len(self._base.weights) != 1:
            raise ConfigurationError(
                "the warm start's L2 has hidden layers",
                "evolution needs a linear policy",
                "start from another file, or without --warm",
            )
        self._others = nets
        self._columns = output_columns("l2", cfg.outputs)
        size = (1 + len(self._rows)) * len(self._columns)
        self.theta: Floats = np.zeros(size)
        self._first, self._second = np.zeros(size), np.zeros(size)

    def _net(self, theta: Floats) -> ActingNet:
        """Return the warm start's net with the learned parameters added."""
        # [1 + inputs, outputs] biases, then weights
        change = theta.reshape(1 + len(self._rows), len(self._columns)).astype(np.float32)
        weight, bias = self._base.weights[0].copy(), self._base.biases[0].copy()
        weight[np.ix_(self._rows, self._columns)] += change[1:]
        bias[self._columns] += change[0]
        return ActingNet((weight,), (bias,), self._base.log_std)

    def _policy_set(self, theta: Floats) -> PolicySet:
        return PolicySet({**self._others, "l2": self._net(theta)}, self.version, self._levels)

    def policies(self) -> PolicySet:
        """Return the policies at the centre of the search."""
        return self._policy_set(self.theta)

    def _perturbations(self) -> Floats:
        """Return the perturbations of this version [pairs, parameters]."""
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, 7, self.version]))
        return rng.standard_normal((self.cfg.pairs, len(self.theta)))

    def jobs(self, plans: Sequence[WorldPlan]) -> list[Job]:
        """Return every world with every member of the population and with the reference policy."""
        jobs = []
        for noise in self._perturbations():
            for sign in (1.0, -1.0):
                member = self._policy_set(self.theta + sign * self.cfg.sigma * noise)
                jobs += [Job(plan, member, None, member.rounds) for plan in plans]
        return jobs + [Job(plan, PolicySet({}, self.version), None, rounds=False) for plan in plans]

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
