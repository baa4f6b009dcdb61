"""The learner of one layer: PPO from trajectories of any length, held near the warm start.

L2 learns from days, L3 and L4 from rounds; with a central critic the latter is MAPPO (every thread acts by what it
sees, the critic sees the factory), without one independent PPO.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from gymnasium.spaces import Box
from torch import nn

from apexrl.algorithms.actor_critic import ActorCritic
from apexrl.algorithms.gradients.autograd import Gradients, MinibatchResult, evaluate_actor, evaluate_critic
from apexrl.algorithms.gradients.flat_parameters import FlatParameters
from apexrl.algorithms.losses import explained_variance, masked_mean, ppo_surrogate, standardize, value_loss
from apexrl.algorithms.ppo import PPO, PPOConfig
from apexrl.algorithms.replay_audit import audit_replay
from apexrl.models.base import Actor
from apexrl.storage.minibatches import Samples
from apexrl.storage.rollout import MixedVersionsError
from litaagent_std.agents.online.acting import INPUTS, NAMES, ActingNet
from litaagent_std.agents.online.steering import Layer
from litaagent_std.agents.online.views import STATE_VIEW, THREAD_VIEW
from litaagent_std.hrl_xf.online.config import LayerConfig
from litaagent_std.hrl_xf.online.methods.batches import LayerBatch, trajectory_gae
from litaagent_std.hrl_xf.online.names import columns_of
from litaagent_std.policy.arrays import Floats32

__all__ = ["LayerLearner"]


_COEFFICIENTS: Final = (1e-3, 10.0)
"""Between these the weight of the distance to the warm start moves."""


@dataclass(frozen=True)
class _Spaces:
    """What PPO asks an environment for."""

    observation_space: Box
    action_space: Box
    privileged_observation_space: Box | None
    num_envs: int = 1

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def critic_observation_space(self) -> Box:
        return self.privileged_observation_space or self.observation_space


def _box(size: int) -> Box:
    return Box(-np.inf, np.inf, (size,), np.float32)


class _WarmGradients:
    """PPO's loss with the divergence from the warm start added.

    L = L_π + c_v·L_V − c_e·H + c_w·KL(π ‖ π_warm)
    """

    def __init__(
        self, policy: ActorCritic, cfg: PPOConfig, parameters: FlatParameters, warm: Actor, weight: float
    ) -> None:
        self._policy, self._cfg, self._warm, self._weight = policy, cfg, warm, weight
        self._gradient = parameters.gradient

    def __call__(self, samples: Samples) -> MinibatchResult:
        """Compute losses and gradients of one minibatch; old gradients are dropped."""
        cfg = self._cfg
        distribution = evaluate_actor(self._policy, samples)
        log_probs = distribution.log_prob(samples.actions)
        policy_loss = ppo_surrogate(log_probs, samples.log_probs, samples.advantages, cfg.clip_range)
        critic_loss = value_loss(evaluate_critic(self._policy, samples), samples.returns)
        entropy = masked_mean(distribution.entropy())
        with torch.no_grad():
            warm = self._warm.head.distribution(self._warm(samples.observations))
        distance = distribution.kl(warm).mean()
        loss = policy_loss + cfg.vf_coef * critic_loss - cfg.ent_coef * entropy + self._weight * distance
        self._gradient.zero_()
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own annotation is missing
        return MinibatchResult(policy_loss.detach(), critic_loss.detach(), entropy.detach(), log_probs.detach())


class LayerLearner(PPO):
    """PPO for one layer.

    Args:
        layer: Which layer.
        cfg: How it learns.
        gamma: Discount of its rewards.
        central: Whether the critic sees the factory's state beside a thread's view (L3).
        seed: Of networks and minibatches.
        warm: The policy to start from; zeros without, which is the heuristic agent.

    Attributes:
        layer: The layer.
        warm_weight: Weight of the distance to the warm start in the next update.
    """

    def __init__(
        self,
        layer: Layer,
        cfg: LayerConfig,
        *,
        gamma: float,
        central: bool,
        seed: int,
        warm: ActingNet | None = None,
    ) -> None:
        self.layer = layer
        self._layer_cfg = cfg
        self._columns = columns_of(layer, cfg.outputs)
        privileged = _box(len(THREAD_VIEW) + len(STATE_VIEW)) if central and layer == "l3" else None
        spaces = _Spaces(_box(INPUTS[layer]), _box(len(self._columns)), privileged)
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
            seed=seed,
        )
        actor = {"hidden_dims": cfg.hidden, "log_std_init": cfg.log_std, "log_std_range": cfg.log_std_range}
        super().__init__(spaces, ppo, actor_cfg=actor, critic_cfg={"hidden_dims": cfg.critic_hidden})  # type: ignore[arg-type]  # only the spaces are read
        self._start_from(warm)
        self.warm_weight = 0.01
        self._warm: Actor = copy.deepcopy(self._actor).requires_grad_(False)

    @property
    def _actor(self) -> Actor:
        assert isinstance(self.policy.actor, Actor)  # it was built feed-forward
        return self.policy.actor

    def _linears(self) -> list[nn.Linear]:
        return [module for module in self._actor.modules() if isinstance(module, nn.Linear)]

    @torch.no_grad()
    def _start_from(self, warm: ActingNet | None) -> None:
        linears = self._linears()
        if warm is None:
            linears[-1].weight.zero_()  # the mean is 0 whatever the policy sees
            linears[-1].bias.zero_()
            return
        warm = self._own_part(warm)
        shapes = [tuple(weight.shape[::-1]) for weight in warm.weights]
        own = [tuple(linear.weight.shape) for linear in linears]
        if shapes != own:
            raise ValueError(
                f"the warm start of {self.layer} has layers {shapes}, this learner {own}; "
                "give the sizes that it was trained with"
            )
        for linear, weight, bias in zip(linears, warm.weights, warm.biases, strict=True):
            linear.weight.copy_(torch.from_numpy(weight.T.copy()))
            linear.bias.copy_(torch.from_numpy(bias.copy()))
        self._actor.head.log_std.copy_(torch.from_numpy(warm.log_std.copy()))  # type: ignore[operator]  # a Gaussian head's

    def _own_part(self, net: ActingNet) -> ActingNet:
        """Return a net's numbers that are learned here.

        Raises:
            ValueError: If it puts out others too, which would be lost.
        """
        own, low = self._columns, self._layer_cfg.log_std_range[0]
        moved = net.weights[-1].any(0) | (net.biases[-1] != 0.0)
        others = [name for place, name in enumerate(NAMES[self.layer]) if moved[place] and place not in own]
        if others:
            raise ValueError(
                f"the warm start of {self.layer} moves {', '.join(others)} too, which would be lost; "
                "learn these outputs as well"
            )
        return ActingNet(
            (*net.weights[:-1], net.weights[-1][:, own]),
            (*net.biases[:-1], net.biases[-1][own]),
            np.maximum(net.log_std[own], low),
        )

    def acting(self) -> ActingNet:
        """Return the present policy as arrays; the exploration's limits are applied, and other numbers are 0."""
        low, high = self._layer_cfg.log_std_range
        explored = self._actor.head.log_std.detach().clamp(low, high)  # type: ignore[operator]  # a Gaussian head's
        *weights, last = (linear.weight.detach().numpy().T.copy() for linear in self._linears())
        *biases, shift = (linear.bias.detach().numpy().copy() for linear in self._linears())
        log_std = np.full(len(NAMES[self.layer]), -np.inf, np.float32)
        log_std[self._columns] = explored.numpy()
        return ActingNet((*weights, self._spread(last)), (*biases, self._spread(shift)), log_std)

    def _spread(self, own: Floats32) -> Floats32:
        """Columns of the learned numbers among zeros for the others."""
        whole = np.zeros((*own.shape[:-1], len(NAMES[self.layer])), np.float32)
        whole[..., self._columns] = own
        return whole

    def learn(self, batch: LayerBatch) -> dict[str, float]:
        """One update from whole trajectories: values, advantages, audit, gradient steps.

        Returns:
            Metrics, under the layer's name.

        Raises:
            MixedVersionsError: If the batch is not of the present version.
            ReplayMismatchError: If the batch was not made by the present policy.
        """
        if batch.version != self.version:
            raise MixedVersionsError(
                f"a batch of version {batch.version} came to {self.layer} at version {self.version}; collect it again"
            )
        self._parameters.attach()
        samples, quality = self._samples(batch)
        replay = audit_replay(self.policy, samples, self.cfg.replay_tolerance)
        results, kl, clipped, norm, stopped = self._optimize(samples)
        self.version += 1
        distance = self._distance(samples)
        self._pull(distance)
        policy_loss, critic_loss, entropy = torch.stack(results).mean(0).tolist()
        found = {
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
            "mean_output": float(np.abs(batch.actions[:, self._columns]).mean()),
        }
        return {f"{self.layer}/{name}": value for name, value in found.items()}

    @torch.no_grad()
    def _samples(self, batch: LayerBatch) -> tuple[Samples, float]:
        cfg, policy = self.cfg, self.policy
        seen = torch.from_numpy(batch.critic_observations)
        values = policy.value(seen)
        rewards = torch.from_numpy(batch.rewards).to(values.dtype)
        advantages = trajectory_gae(rewards, values, torch.from_numpy(batch.trajectory), cfg.gamma, cfg.gae_lambda)
        returns = advantages + values  # R = A + V
        quality = float(explained_variance(values, returns))
        outputs = policy.from_rewards(values)
        assert policy.value_normalizer is not None  # asked for above
        policy.value_normalizer.update(returns)
        return Samples(
            observations=torch.from_numpy(batch.observations),
            critic_observations=seen,
            actions=torch.from_numpy(batch.actions[:, self._columns]),
            log_probs=torch.from_numpy(batch.log_probs),
            advantages=standardize(advantages),
            returns=policy.from_rewards(returns),
            values=outputs,
        ), quality

    def _gradients(self, samples: Samples) -> Gradients:
        return _WarmGradients(self.policy, self.cfg, self._parameters, self._warm, self.warm_weight)

    @torch.no_grad()
    def _distance(self, samples: Samples) -> float:
        """Mean KL(π ‖ π_warm) over the batch."""
        warm = self._warm.head.distribution(self._warm(samples.observations))
        return float(evaluate_actor(self.policy, samples).kl(warm).mean())

    def _pull(self, distance: float) -> None:
        """Doubles the pull back when the policy is too far from the warm start, and halves it when it is close."""
        target = self._layer_cfg.warm_kl
        if distance > 1.5 * target:
            self.warm_weight *= 2.0
        elif distance < target / 1.5:
            self.warm_weight /= 2.0
        low, high = _COEFFICIENTS
        self.warm_weight = min(high, max(low, self.warm_weight))

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides the next update."""
        return super().state_dict() | {"warm": self._warm.state_dict(), "warm_weight": self.warm_weight}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from `state_dict`."""
        super().load_state_dict(state)
        self._warm.load_state_dict(state["warm"])
        self.warm_weight = float(state["warm_weight"])
