"""The learner of one layer: PPO on trajectories of any length, with a KL penalty towards the start.

L2 learns from days, L3 and L4 from rounds. With a central critic the latter is MAPPO: every thread acts on its own view
and the critic sees the factory's other threads too; with a local critic it is independent PPO.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from gymnasium.spaces import Box
from torch import Tensor

from apexrl.algorithms.actor_critic import ActorCritic, evaluate_actor
from apexrl.algorithms.blueprint import Spaces
from apexrl.algorithms.losses import explained_variance, standardize
from apexrl.algorithms.ppo import PPO, PPOConfig
from apexrl.models.base import Actor
from apexrl.models.distributions import Distribution
from apexrl.storage.rollout import MixedVersionsError
from apexrl.storage.samples import Samples
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO, initial_log_std
from litaagent_std.hrl_xf.l3_executor import TemporalDecisionTransformer
from litaagent_std.hrl_xf.online.config import Layer, LayerConfig
from litaagent_std.hrl_xf.online.hierarchy.rows import day_size, thread_sizes, weight_size
from litaagent_std.hrl_xf.online.methods.base import check_names
from litaagent_std.hrl_xf.online.methods.batches import LayerBatch, trajectory_gae
from litaagent_std.hrl_xf.online.methods.networks import (
    DecisionHead,
    NetworkActor,
    learn_only,
    network_of,
    state_size,
    weights_of,
)
from litaagent_std.policy.arrays import Floats32
from litaagent_std.policy.buckets import n_buckets
from litaagent_std.policy.l2.residual import goal_names
from litaagent_std.policy.networks.inputs import ALPHA_STEP, OFFER_STEPS
from litaagent_std.policy.networks.weights import Weights

__all__ = ["LayerLearner"]


_COEFFICIENTS: Final = (1e-3, 10.0)
"""Bounds of the weight of the KL penalty towards the start."""
_REPLAY: Final = 1e-3
"""Largest difference of log-probabilities between numpy, which acts, and torch, which learns. Both compute in single
precision and sum in other orders: 2e-5 was measured with networks of the default width, and a smaller σ magnifies it. A
policy of another version differs by far more."""


def _box(size: int) -> Box:
    return Box(-np.inf, np.inf, (size,), np.float32)


class LayerLearner(PPO):
    """PPO for the network of one layer, the same that offline training trains and the agent plays.

    Args:
        layer: The layer.
        cfg: Its learning options.
        weights: The network to start from.
        gamma: Discount of its rewards.
        central: Whether L3's critic sees the factory's other threads beside its own.
        seed: Seed of the critic and of minibatches.

    Attributes:
        layer: The layer.
        learned: Columns of the layer's outputs that are learned; empty for L3 and L4, where all are.
        warm_weight: Weight of the KL penalty towards the start in the next update.
    """

    def __init__(
        self, layer: Layer, cfg: LayerConfig, weights: Weights, *, gamma: float, central: bool, seed: int
    ) -> None:
        self.layer, self._layer_cfg, self._meta = layer, cfg, dict(weights.meta)
        self.horizon = int(weights.meta.get("horizon", 10))
        names = goal_names(n_buckets(self.horizon)) if layer == "l2" else ()
        check_names(layer.upper(), "output", cfg.outputs, names)
        self.learned = [names.index(name) for name in cfg.outputs] or list(range(len(names)))
        sizes = {"l2": day_size(self.horizon), "l3": sum(thread_sizes(self.horizon)), "l4": weight_size()}
        privileged = _box(sizes["l3"] + state_size()) if central and layer == "l3" else None
        spaces = Spaces(
            observation_space=_box(sizes[layer]),
            action_space=_box({"l2": len(self.learned), "l3": 4, "l4": 1}[layer]),
            privileged_observation_space=privileged,
        )
        ppo = PPOConfig(
            num_epochs=cfg.epochs,
            minibatch_size=cfg.minibatch,
            learning_rate=cfg.learning_rate,
            gamma=gamma,
            gae_lambda=cfg.gae_lambda,
            clip_range=cfg.clip,
            target_kl=cfg.target_kl,
            ent_coef=cfg.entropy,
            normalize_values=True,
            replay_tolerance=_REPLAY,
            seed=seed,
        )
        self._network = network_of(weights)
        # weights of an online run hold the exploration that they were trained with
        self._explored = "version" in weights.meta
        super().__init__(
            spaces,
            ppo,
            actor_class=NetworkActor,
            actor_cfg={"horizon": self.horizon},
            critic_cfg={"hidden_dims": cfg.critic_hidden},
            device="cpu",
        )
        self.warm_weight = 0.01
        self._warm = copy.deepcopy(self._actor).requires_grad_(False)

    @property
    def _actor(self) -> Actor:
        assert isinstance(self.policy.actor, Actor)  # it was built feed-forward
        return self.policy.actor

    def _build(self, *args: Any) -> ActorCritic:  # noqa: ANN401 - as PPO's
        policy = super()._build(*args)
        actor, cfg, network = policy.actor, self._layer_cfg, self._network
        assert isinstance(actor, NetworkActor)
        actor.layer, actor.network, actor.columns = self.layer, network, self.learned or None
        if self.layer == "l3":
            assert isinstance(network, TemporalDecisionTransformer)
            actor.head = DecisionHead(network.horizon + 1, cfg.log_std_range)
        known, steps = network.log_std.detach(), initial_log_std(n_buckets(self.horizon), 0.0)
        if self.layer == "l2":
            known, steps = known[self.learned], steps[self.learned]
        else:
            steps = torch.tensor({"l3": OFFER_STEPS, "l4": (ALPHA_STEP,)}[self.layer]).log()
        # components that were not explored before begin with the options' exploration
        log_std = torch.where(known.isfinite() & self._explored, known, steps + cfg.log_std)
        head: Any = actor.head  # a Gaussian's, or that of decisions
        low, high = cfg.log_std_range
        head.log_std_range = (low + float(log_std.min()), max(high, float(log_std.max())))
        head.log_std.data = log_std.clone()
        network.log_std.requires_grad_(False)
        if isinstance(network, HorizonManagerPPO) and len(self.learned) < network.n_latents:
            learn_only(network, self.learned)
        return policy

    def acting(self) -> Weights:
        """Return the present network as weights; log σ of components that are not learned is −∞."""
        network = self._network
        head: Any = self._actor.head  # see `_build`
        own = head.log_std.detach().clamp(*head.log_std_range)
        log_std = torch.full_like(network.log_std, -torch.inf)
        log_std[self.learned if self.layer == "l2" else slice(None)] = own
        arrays = dict(weights_of(network, self._meta).arrays) | {"log_std": log_std.numpy().copy()}
        return Weights(arrays, weights_of(network, self._meta).meta, f"the {self.layer} that is trained")

    def learn(self, batch: LayerBatch) -> dict[str, float]:
        """Make one update from whole trajectories: values, advantages, replay audit, gradient steps.

        Returns:
            Metrics by ``layer/name``.

        Raises:
            MixedVersionsError: If the batch is not of the present version.
            ReplayMismatchError: If the batch was not made by the present policy.
        """
        if batch.version != self.version:
            raise MixedVersionsError(
                f"got a batch of version {batch.version} for {self.layer} at version {self.version}; collect it again"
            )
        self._parameters.attach()
        samples, quality = self._samples(batch)
        replay = self.audit(samples)
        results, kl, clipped, norm, stopped = self._optimize(samples)
        self.version += 1
        distance = self._distance(samples)
        self._adapt_warm_weight(distance)
        policy_loss, critic_loss, entropy = torch.stack(results).mean(0).tolist()
        metrics = {
            "policy_loss": policy_loss,
            "value_loss": critic_loss,
            "entropy": entropy,
            "approx_kl": float(kl),
            "warm_kl": distance,
            "warm_weight": self.warm_weight,
            "clip_fraction": float(clipped),
            "grad_norm": norm,
            "explained_variance": quality,
            "gradient_steps": float(len(results)),
            "stopped_early": float(stopped),
            "replay_error": replay,
            "rows": float(len(batch)),
            "mean_output": float(np.abs(self._own(batch.actions)).mean()),
        }
        return {f"{self.layer}/{name}": value for name, value in metrics.items()}

    def _own(self, actions: Floats32) -> Floats32:
        """Return the columns of actions ``[n, out]`` that are learned."""
        return actions[:, self.learned] if self.learned else actions

    @torch.no_grad()
    def _samples(self, batch: LayerBatch) -> tuple[Samples, float]:
        """Return the batch as tensors with advantages and returns, and the critic's explained variance."""
        cfg, policy = self.cfg, self.policy
        critic_inputs = torch.from_numpy(batch.critic_observations)
        values = policy.value(critic_inputs)  # [n]
        rewards = torch.from_numpy(batch.rewards).to(values.dtype)
        advantages = trajectory_gae(rewards, values, torch.from_numpy(batch.trajectory), cfg.gamma, cfg.gae_lambda)
        returns = advantages + values  # R = A + V
        quality = float(explained_variance(values, returns))
        outputs = policy.from_rewards(values)
        assert policy.value_normalizer is not None  # normalize_values is on
        policy.value_normalizer.update(returns)
        return Samples(
            observations=torch.from_numpy(batch.observations),
            critic_observations=critic_inputs,
            actions=torch.from_numpy(self._own(batch.actions)),
            log_probs=torch.from_numpy(batch.log_probs),
            advantages=standardize(advantages),
            returns=policy.from_rewards(returns),
            values=outputs,
        ), quality

    def penalty(self, distribution: Distribution, samples: Samples) -> Tensor:
        """Return c_w·KL(π ‖ π_warm), which keeps the policy near the start."""
        with torch.no_grad():
            warm = self._warm.head.distribution(self._warm(samples.observations))
        return self.warm_weight * distribution.kl(warm).mean()

    @torch.no_grad()
    def _distance(self, samples: Samples) -> float:
        """Return the mean KL(π ‖ π_warm) over the batch."""
        warm = self._warm.head.distribution(self._warm(samples.observations))
        return float(evaluate_actor(self.policy, samples).kl(warm).mean())

    def _adapt_warm_weight(self, distance: float) -> None:
        """Double the penalty's weight when the policy is far from the start, and halve it when it is close."""
        target = self._layer_cfg.warm_kl
        if distance > 1.5 * target:
            self.warm_weight *= 2.0
        elif distance < target / 1.5:
            self.warm_weight /= 2.0
        low, high = _COEFFICIENTS
        self.warm_weight = min(high, max(low, self.warm_weight))

    def state_dict(self) -> dict[str, Any]:
        """Return everything that decides later updates."""
        return super().state_dict() | {"warm": self._warm.state_dict(), "warm_weight": self.warm_weight}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from `state_dict`."""
        super().load_state_dict(state)
        self._warm.load_state_dict(state["warm"])
        self.warm_weight = float(state["warm_weight"])
