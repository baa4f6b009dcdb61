"""Policy gradients: PPO for L2, MAPPO or independent PPO for L3 and L4, all from the same rollouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apexrl.runs.errors import ConfigurationError
from litaagent_std.hrl_xf.online.config import Layer, OnlineConfig
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
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

__all__ = ["GradientMethod"]


class GradientMethod:
    """PPO for L2; MAPPO, or independent PPO, for L3 and L4 (`methods.base.Method`).

    Args:
        cfg: Options of the run.
        start: The networks to start from.

    Raises:
        ConfigurationError: If a layer that shall learn is not among them.
    """

    def __init__(self, cfg: OnlineConfig, start: Hierarchy) -> None:
        self.cfg, self.scales, self._start = cfg, ReturnScales(), start
        missing = [layer for layer in cfg.layers if layer not in start.nets]
        if missing:
            raise ConfigurationError(
                f"--warm {cfg.warm} holds no {', '.join(missing)}",
                "a warm start holds every layer that learns",
                "train these layers offline, or leave them out of --layers",
            )
        self.learners: dict[Layer, LayerLearner] = {
            layer: LayerLearner(
                layer,
                cfg.layer(layer),
                start.nets[layer],
                gamma=cfg.day_rewards.discount if layer == "l2" else 1.0,
                central=cfg.critic == "central",
                seed=cfg.seed + index,
            )
            for index, layer in enumerate(cfg.layers)
        }

    @property
    def version(self) -> int:
        """Updates so far; the version of the next rollouts."""
        return next(iter(self.learners.values())).version

    def policies(self) -> Hierarchy:
        """Return the present networks; layers of the start that do not learn stay unchanged."""
        nets = dict(self._start.nets) | {layer: learner.acting() for layer, learner in self.learners.items()}
        return Hierarchy(nets, self.version, self.cfg.places, tuple(self.learners))

    def jobs(self, plans: Sequence[WorldPlan]) -> list[Job]:
        """Return each world with exploration, and with the control variate also under the reference policy."""
        policies, reference = self.policies(), Hierarchy(version=self.version)
        jobs = [Job(plan, policies, (plan.seed << 24) ^ self.version) for plan in plans]
        return jobs + ([Job(plan, reference, None) for plan in plans] if self.cfg.control_variate else [])

    def update(self, jobs: Sequence[Job], rollouts: Sequence[WorldRollout]) -> dict[str, float]:
        """Update the scales of returns, build a batch per layer, and update each layer."""
        cfg = self.cfg
        references: References = {
            rollout.seed: reference_of(rollout, cfg.day_rewards)
            for job, rollout in zip(jobs, rollouts, strict=True)
            if not job.policies.nets
        }
        played = [rollout for job, rollout in zip(jobs, rollouts, strict=True) if job.policies.nets]
        # scales are updated before any batch is built, so that all layers use the same ones
        for rollout in played:
            for seat in rollout.seats:
                rewards = seat_rewards(seat, references.get(rollout.seed, {}).get(seat.seat, ()), cfg.day_rewards)
                self.scales.update(seat.kind, [sum(rewards)])
        round_rewards = RoundRewards(references, cfg.day_rewards, cfg.thread_rewards, self.scales)
        metrics: dict[str, float] = {}
        for layer, learner in self.learners.items():
            if layer == "l2":
                batch = day_batch(played, references, cfg.day_rewards, self.scales, learner.version)
            else:
                batch = round_batch(layer, played, round_rewards, learner.version, central=cfg.critic == "central")
            metrics |= learner.learn(batch)
        return metrics

    def set_version(self, version: int) -> None:
        """Set the version of all learners; see `Method`."""
        for learner in self.learners.values():
            learner.version = version

    def state_dict(self) -> dict[str, Any]:
        """Return everything that decides later updates."""
        return {
            "learners": {layer: learner.state_dict() for layer, learner in self.learners.items()},
            "scales": self.scales.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from `state_dict`."""
        for layer, learner in self.learners.items():
            learner.load_state_dict(state["learners"][layer])
        self.scales.load_state_dict(state["scales"])
