"""PPO for L2, MAPPO or independent PPO for L3 and L4, on the networks that offline training made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from litaagent_std.agents.online.acting import PolicySet
from litaagent_std.agents.online.steering import Layer
from litaagent_std.hrl_xf.online.config import OnlineConfig
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.jobs import Job
from litaagent_std.hrl_xf.online.methods.batches import (
    LayerBatch,
    References,
    RoundRewards,
    check_version,
    seat_rewards,
)
from litaagent_std.hrl_xf.online.methods.hierarchy_learner import HierarchyLearner
from litaagent_std.hrl_xf.online.rollout import WorldRollout, reference_of
from litaagent_std.hrl_xf.online.worlds import WorldPlan
from litaagent_std.hrl_xf.rewards import ReturnScales
from litaagent_std.policy.arrays import Floats
from litaagent_std.policy.networks.inputs import ALPHA_LIMIT

__all__ = ["HierarchyMethod"]


class HierarchyMethod:
    """Policy gradients on the learned hierarchy (`methods.base.Method`).

    Args:
        cfg: Options of the run.
        start: The networks to start from.
    """

    def __init__(self, cfg: OnlineConfig, start: Hierarchy) -> None:
        self.cfg, self.scales, self._start = cfg, ReturnScales(), start
        missing = [layer for layer in cfg.layers if layer not in start.nets]
        if missing:
            raise ValueError(f"--warm holds no {', '.join(missing)}; train these layers offline, or leave them out")
        self.learners: dict[Layer, HierarchyLearner] = {
            layer: HierarchyLearner(
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
        policies = self.policies()
        jobs = [Job(plan, policies, (plan.seed << 24) ^ self.version, policies.rounds) for plan in plans]
        if self.cfg.control_variate:
            jobs += [Job(plan, PolicySet({}, self.version), None, rounds=False) for plan in plans]
        return jobs

    def update(self, jobs: Sequence[Job], rollouts: Sequence[WorldRollout]) -> dict[str, float]:
        """Update the scales of returns, build a batch per layer, and update each layer."""
        cfg = self.cfg
        references: References = {
            rollout.seed: reference_of(rollout, cfg.day_rewards)
            for job, rollout in zip(jobs, rollouts, strict=True)
            if not job.policies.nets
        }
        played = [rollout for job, rollout in zip(jobs, rollouts, strict=True) if job.policies.nets]
        version = self.version  # the learners' own rise one after the other
        check_version(played, version)
        # scales are updated before any batch is built, so that all layers use the same ones
        for rollout in played:
            for seat in rollout.seats:
                rewards = seat_rewards(seat, references.get(rollout.seed, {}).get(seat.seat, ()), cfg.day_rewards)
                self.scales.update(seat.kind, [sum(rewards)])
        round_rewards = RoundRewards(references, cfg.day_rewards, cfg.thread_rewards, self.scales)
        metrics: dict[str, float] = {}
        for layer, learner in self.learners.items():
            batch = self._days(played, references) if layer == "l2" else self._rounds(layer, played, round_rewards)
            metrics |= learner.learn(replace(batch, version=version, actions=_own(batch.actions, learner)))
        return metrics

    def _days(self, played: Sequence[WorldRollout], references: References) -> LayerBatch:
        parts: list[tuple[Any, ...]] = []
        for rollout in played:
            for seat in rollout.seats:
                days = seat.days
                if len(days.day):
                    own = seat_rewards(seat, references.get(rollout.seed, {}).get(seat.seat, ()), self.cfg.day_rewards)
                    reward = np.array(own) / self.scales.scale(seat.kind)
                    number = np.full(len(own), len(parts))
                    parts.append((days.views, days.views, days.actions, days.log_probs, reward, number))
        return LayerBatch(self.version, *(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _rounds(self, layer: Layer, played: Sequence[WorldRollout], round_rewards: RoundRewards) -> LayerBatch:
        parts: list[tuple[Any, ...]] = []
        threads = 0
        for rollout in played:
            for seat in rollout.seats:
                rows = seat.rounds
                if rows is None or not len(rows.thread):
                    continue
                view: Any = rows.views
                inputs = view[layer]
                central = layer == "l3" and self.cfg.critic == "central"
                critic = np.concatenate((inputs, rows.states[rows.state_of]), axis=1) if central else inputs
                rewards = round_rewards.of(rollout.seed, seat, rows)
                if layer == "l4":
                    rewards = rewards + self._weight_rewards(rows.actions["l4"][:, 0], rewards, rows.thread)
                parts.append(
                    (inputs, critic, rows.actions[layer], rows.log_probs[layer], rewards, rows.thread + threads)
                )
                threads += len(rows.day)
        return LayerBatch(self.version, *(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _weight_rewards(self, log_alpha: Any, rewards: Floats, thread: Any) -> Floats:  # noqa: ANN401 - arrays
        """Return L4's own term: a large α is rewarded in a thread that ends well and punished in one that ends badly.

        It is ``w · log α · reward`` at the thread's last round, log α being the mean over its rounds.
        """
        count = np.bincount(thread)
        mean = np.bincount(thread, np.clip(log_alpha, -ALPHA_LIMIT, ALPHA_LIMIT)) / np.maximum(1, count)
        return np.asarray(self.cfg.thread_rewards.weight * mean[thread] * rewards, np.float64)

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


def _own(actions: Any, learner: HierarchyLearner) -> Any:  # noqa: ANN401 - arrays
    """Return the columns of L2's actions that are learned; all of the other layers'."""
    return actions[:, learner.learned] if learner.layer == "l2" else actions
