"""How a batch of worlds becomes the next version: the methods that the loop can run.

A method says which worlds it wants played under the present version, and updates itself when all of them are back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from litaagent_std.agents.online.acting import ActingNet, PolicySet
from litaagent_std.agents.online.steering import Layer
from litaagent_std.hrl_xf.online.config import OnlineConfig
from litaagent_std.hrl_xf.online.jobs import Job
from litaagent_std.hrl_xf.online.methods.batches import (
    References,
    RoundRewards,
    day_batch,
    round_batch,
    seat_rewards,
)
from litaagent_std.hrl_xf.online.methods.ppo import LayerLearner
from litaagent_std.hrl_xf.online.rollout import WorldRollout, reference_of
from litaagent_std.hrl_xf.online.worlds import WorldPlan
from litaagent_std.hrl_xf.rewards import ReturnScales

__all__ = ["GradientMethod", "Method", "references_of"]


class Method(Protocol):
    """A way to learn."""

    @property
    def version(self) -> int:
        """Updates so far; the version of what is played next."""

    def policies(self) -> PolicySet:
        """Return the present policies, without exploration's perturbations."""

    def jobs(self, plans: Sequence[WorldPlan]) -> list[Job]:
        """Return the worlds to play under the present version."""

    def update(self, jobs: Sequence[Job], rollouts: Sequence[WorldRollout]) -> dict[str, float]:
        """Learns from all of them; the version rises by one."""

    def rename(self, version: int) -> None:
        """Give the present policies another version, after a roll-back: no number is used twice."""

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides what comes next."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from `state_dict`."""


def references_of(jobs: Sequence[Job], rollouts: Sequence[WorldRollout], cfg: OnlineConfig) -> References:
    """Return the reference policy's rewards among the worlds that were played, by seed and seat."""
    return {
        rollout.seed: reference_of(rollout, cfg.day_rewards)
        for job, rollout in zip(jobs, rollouts, strict=True)
        if not job.policies.nets
    }


class GradientMethod:
    """PPO for L2; MAPPO, or independent PPO, for L3 and L4.

    Args:
        cfg: The run's options.
        warm: Policies to start from; zeros without.
    """

    def __init__(self, cfg: OnlineConfig, warm: PolicySet | None = None) -> None:
        self.cfg = cfg
        self.scales = ReturnScales()
        started = {} if warm is None else warm.nets
        self.learners: dict[Layer, LayerLearner] = {
            layer: LayerLearner(
                layer,
                cfg.layer(layer),
                gamma=cfg.day_rewards.discount if layer == "l2" else 1.0,
                central=cfg.critic == "central",
                seed=cfg.seed + place,
                warm=started.get(layer),
            )
            for place, layer in enumerate(cfg.layers)
        }
        self._frozen: dict[Layer, ActingNet] = {
            layer: net for layer, net in started.items() if layer not in self.learners
        }

    @property
    def version(self) -> int:
        """Updates so far."""
        return next(iter(self.learners.values())).version

    def policies(self) -> PolicySet:
        """Return the present policies; layers of the warm start that are not learned stay as they are."""
        nets = self._frozen | {layer: learner.acting() for layer, learner in self.learners.items()}
        return PolicySet(nets, self.version, self.cfg.places)

    def jobs(self, plans: Sequence[WorldPlan]) -> list[Job]:
        """Each world with exploration, and where asked for once more by the reference policy."""
        policies = self.policies()
        jobs = [Job(plan, policies, _luck(plan.seed, self.version), policies.rounds) for plan in plans]
        if self.cfg.control_variate:
            nobody = PolicySet({}, self.version)
            jobs += [Job(plan, nobody, None, rounds=False) for plan in plans]
        return jobs

    def update(self, jobs: Sequence[Job], rollouts: Sequence[WorldRollout]) -> dict[str, float]:
        """Scales, batches, one update per layer."""
        cfg = self.cfg
        references = references_of(jobs, rollouts, cfg)
        played = [rollout for job, rollout in zip(jobs, rollouts, strict=True) if job.policies.nets]
        for rollout in played:
            for seat in rollout.seats:
                rewards = seat_rewards(seat, references.get(rollout.seed, {}).get(seat.seat, ()), cfg.day_rewards)
                self.scales.update(seat.kind, [sum(rewards)])
        told = RoundRewards(references, cfg.day_rewards, cfg.thread_rewards, self.scales)
        metrics: dict[str, float] = {}
        for layer, learner in self.learners.items():
            if layer == "l2":
                batch = day_batch(played, references, cfg.day_rewards, self.scales, learner.version)
            else:
                batch = round_batch(layer, played, told, learner.version, central=cfg.critic == "central")
            metrics |= learner.learn(batch)
        return metrics

    def rename(self, version: int) -> None:
        """See `Method`."""
        for learner in self.learners.values():
            learner.version = version

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides the next update."""
        return {
            "learners": {layer: learner.state_dict() for layer, learner in self.learners.items()},
            "scales": self.scales.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from `state_dict`."""
        for layer, learner in self.learners.items():
            learner.load_state_dict(state["learners"][layer])
        self.scales.load_state_dict(state["scales"])


def _luck(seed: int, version: int) -> int:
    """Return the seed of a world's exploration: other luck for every version, the same on every engine."""
    return (seed << 24) ^ version
