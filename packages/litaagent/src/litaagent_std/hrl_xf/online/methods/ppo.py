"""The learner of one layer: PPO on trajectories of any length, with a KL penalty towards the warm start.

L2 learns from days, L3 and L4 from rounds. With a central critic the latter is MAPPO: every thread acts on its own view
and the critic sees the whole factory; with a local critic it is independent PPO.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from gymnasium.spaces import Box
from torch import Tensor, nn

from apexrl.algorithms.actor_critic import evaluate_actor
from apexrl.algorithms.blueprint import Spaces
from apexrl.algorithms.losses import explained_variance, standardize
from apexrl.algorithms.ppo import PPO, PPOConfig
from apexrl.models.base import Actor
from apexrl.models.distributions import Distribution
from apexrl.storage.rollout import MixedVersionsError
from apexrl.storage.samples import Samples
from litaagent_std.agents.online.acting import INPUTS, NAMES, ActingNet
from litaagent_std.agents.online.steering import Layer
from litaagent_std.agents.online.views import STATE_VIEW, THREAD_VIEW
from litaagent_std.hrl_xf.online.config import LayerConfig
from litaagent_std.hrl_xf.online.methods.base import output_columns
from litaagent_std.hrl_xf.online.methods.batches import LayerBatch, trajectory_gae
from litaagent_std.policy.arrays import Floats32

__all__ = ["LayerLearner"]


_COEFFICIENTS: Final = (1e-3, 10.0)
"""Bounds of the weight of the KL penalty towards the warm start."""


def _box(size: int) -> Box:
    return Box(-np.inf, np.inf, (size,), np.float32)


class LayerLearner(PPO):
    """PPO for one layer.

    Args:
        layer: The layer.
        cfg: Its learning options.
        gamma: Discount of its rewards.
        central: Whether L3's critic sees the factory's state beside the thread's view.
        seed: Seed of networks and minibatches.
        warm_start: Policy to start from; if None, zeros, which is the heuristic agent.

    Attributes:
        layer: The layer.
        warm_weight: Weight of the KL penalty towards the warm start in the next update.
    """

    def __init__(
        self,
        layer: Layer,
        cfg: LayerConfig,
        *,
        gamma: float,
        central: bool,
        seed: int,
        warm_start: ActingNet | None = None,
    ) -> None:
        self.layer = layer
        self._layer_cfg = cfg
        self._columns = output_columns(layer, cfg.outputs)
        privileged = _box(len(THREAD_VIEW) + len(STATE_VIEW)) if central and layer == "l3" else None
        spaces = Spaces(
            observation_space=_box(INPUTS[layer]),
            action_space=_box(len(self._columns)),
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
            seed=seed,
        )
        actor = {"hidden_dims": cfg.hidden, "log_std_init": cfg.log_std, "log_std_range": cfg.log_std_range}
        super().__init__(spaces, ppo, actor_cfg=actor, critic_cfg={"hidden_dims": cfg.critic_hidden}, device="cpu")
        self._start_from(warm_start)
        self.warm_weight = 0.01
        self._warm: Actor = copy.deepcopy(self._actor).requires_grad_(False)

    @property
    def _actor(self) -> Actor:
        assert isinstance(self.policy.actor, Actor)  # it was built feed-forward
        return self.policy.actor

    def _linears(self) -> list[nn.Linear]:
        return [module for module in self._actor.modules() if isinstance(module, nn.Linear)]

    @torch.no_grad()
    def _start_from(self, warm_start: ActingNet | None) -> None:
        """Copy the warm start into the actor; if None, set its last layer to zero."""
        linears = self._linears()
        if warm_start is None:
            linears[-1].weight.zero_()  # the mean is 0 for all inputs
            linears[-1].bias.zero_()
            return
        initial = self._own_part(warm_start)
        shapes = [tuple(weight.shape[::-1]) for weight in initial.weights]
        own = [tuple(linear.weight.shape) for linear in linears]
        if shapes != own:
            raise ValueError(
                f"the warm start of {self.layer} has layers {shapes}, this learner {own}; "
                "give the hidden sizes that it was trained with"
            )
        for linear, weight, bias in zip(linears, initial.weights, initial.biases, strict=True):
            linear.weight.copy_(torch.from_numpy(weight.T.copy()))
            linear.bias.copy_(torch.from_numpy(bias.copy()))
        self._actor.head.log_std.copy_(torch.from_numpy(initial.log_std.copy()))  # type: ignore[operator]  # a Gaussian head's

    def _own_part(self, net: ActingNet) -> ActingNet:
        """Return a net with only the outputs that this learner learns.

        Raises:
            ValueError: If its other outputs are not zero, as they would be lost.
        """
        own, low = self._columns, self._layer_cfg.log_std_range[0]
        nonzero = net.weights[-1].any(0) | (net.biases[-1] != 0.0)
        others = [name for column, name in enumerate(NAMES[self.layer]) if nonzero[column] and column not in own]
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
        """Return the present policy as numpy arrays; ``log_std`` is clipped, and outputs that are not learned are 0."""
        low, high = self._layer_cfg.log_std_range
        own_log_std = self._actor.head.log_std.detach().clamp(low, high)  # type: ignore[operator]  # a Gaussian head's
        *weights, last = (linear.weight.detach().numpy().T.copy() for linear in self._linears())
        *biases, shift = (linear.bias.detach().numpy().copy() for linear in self._linears())
        log_std = np.full(len(NAMES[self.layer]), -np.inf, np.float32)
        log_std[self._columns] = own_log_std.numpy()
        return ActingNet((*weights, self._spread(last)), (*biases, self._spread(shift)), log_std)

    def _spread(self, own: Floats32) -> Floats32:
        """Return columns [*, learned] among zeros for the other outputs [*, out]."""
        whole = np.zeros((*own.shape[:-1], len(NAMES[self.layer])), np.float32)
        whole[..., self._columns] = own
        return whole

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
            "mean_output": float(np.abs(batch.actions[:, self._columns]).mean()),
        }
        return {f"{self.layer}/{name}": value for name, value in metrics.items()}

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
            actions=torch.from_numpy(batch.actions[:, self._columns]),
            log_probs=torch.from_numpy(batch.log_probs),
            advantages=standardize(advantages),
            returns=policy.from_rewards(returns),
            values=outputs,
        ), quality

    def penalty(self, distribution: Distribution, samples: Samples) -> Tensor:
        """Return c_w·KL(π ‖ π_warm), which keeps the policy near the warm start."""
        with torch.no_grad():
            warm = self._warm.head.distribution(self._warm(samples.observations))
        return self.warm_weight * distribution.kl(warm).mean()

    @torch.no_grad()
    def _distance(self, samples: Samples) -> float:
        """Return the mean KL(π ‖ π_warm) over the batch."""
        warm = self._warm.head.distribution(self._warm(samples.observations))
        return float(evaluate_actor(self.policy, samples).kl(warm).mean())

    def _adapt_warm_weight(self, distance: float) -> None:
        """Double the penalty's weight when the policy is far from the warm start, and halve it when it is close."""
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
