"""Policy gradients: PPO for L2, MAPPO or independent PPO for L3 and L4, all from the same rollouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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

__all__ = ["GradientMethod"]


def _references(jobs: Sequence[Job], rollouts: Sequence[WorldRollout], cfg: OnlineConfig) -> References:
    """Return the daily rewards of the reference policy in the worlds that it played, by seed and seat."""
    return {
        rollout.seed: reference_of(rollout, cfg.day_rewards)
        for job, rollout in zip(jobs, rollouts, strict=True)
        if not job.policies.nets
    }


class GradientMethod:
    """PPO for L2; MAPPO, or independent PPO, for L3 and L4.

    Args:
        cfg: Options of the run.
        warm_start: Policies to start from; if None, the heuristic agent.
    """

    def __init__(self, cfg: OnlineConfig, warm_start: PolicySet | None = None) -> None:
        self.cfg = cfg
        self.scales = ReturnScales()
        initial = {} if warm_start is None else warm_start.nets
        self.learners: dict[Layer, LayerLearner] = {
            layer: LayerLearner(
                layer,
                cfg.layer(layer),
                gamma=cfg.day_rewards.discount if layer == "l2" else 1.0,
                central=cfg.critic == "central",
                seed=cfg.seed + index,
                warm_start=initial.get(layer),
            )
            for index, layer in enumerate(cfg.layers)
        }
        self._frozen: dict[Layer, ActingNet] = {
            layer: net for layer, net in initial.items() if layer not in self.learners
        }

    @property
    def version(self) -> int:
        """Updates so far; the version of the next rollouts."""
        return next(iter(self.learners.values())).version

    def policies(self) -> PolicySet:
        """Return the present policies; layers of the warm start that do not learn stay unchanged."""
        nets = self._frozen | {layer: learner.acting() for layer, learner in self.learners.items()}
        return PolicySet(nets, self.version, self.cfg.places)

    def jobs(self, plans: Sequence[WorldPlan]) -> list[Job]:
        """Return each world with exploration, and with the control variate also under the reference policy."""
        policies = self.policies()
        jobs = [Job(plan, policies, _exploration_seed(plan.seed, self.version), policies.rounds) for plan in plans]
        if self.cfg.control_variate:
            reference = PolicySet({}, self.version)
            jobs += [Job(plan, reference, None, rounds=False) for plan in plans]
        return jobs

    def update(self, jobs: Sequence[Job], rollouts: Sequence[WorldRollout]) -> dict[str, float]:
        """Update the scales of returns, build a batch per layer, and update each layer."""
        cfg = self.cfg
        references = _references(jobs, rollouts, cfg)
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


def _exploration_seed(seed: int, version: int) -> int:
    """Return the seed of a world's exploration: another one for every version, the same on every engine."""
    return (seed << 24) ^ version
