"""One minibatch's losses and gradients without autograd, for plain MLP actors and critics on the CPU.

The same mathematics as :mod:`apexrl.algorithms.gradients.autograd`, differentiated by hand; used automatically where it applies.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import nn

from apexrl.algorithms.actor_critic import ActorCritic
from apexrl.algorithms.gradients.analytic_mlp import AnalyticMLP, Array, is_plain_mlp
from apexrl.algorithms.gradients.autograd import MinibatchResult
from apexrl.algorithms.gradients.flat_parameters import FlatParameters
from apexrl.algorithms.ppo_config import PPOConfig
from apexrl.models.heads import CategoricalHead, GaussianHead
from apexrl.models.mlp import MLPActor, MLPCritic, MLPDiscreteActor
from apexrl.storage.minibatches import Samples

LARGEST_MINIBATCH = 4096
"""Above it, arithmetic outweighs bookkeeping, and autograd is faster if it has several threads."""


def applies_to(policy: ActorCritic, samples: Samples, minibatch_size: int) -> bool:
    """Whether networks and samples are of the kind that is differentiated here."""
    actor: Any = policy.actor
    critic: Any = policy.critic
    if type(actor) not in (MLPActor, MLPDiscreteActor) or type(critic) is not MLPCritic:
        return False  # subclasses may compute anything
    plain_head = type(actor.head) is CategoricalHead or (
        type(actor.head) is GaussianHead and not actor.head.squash and not actor.head.state_dependent_std
    )
    return (
        plain_head
        and (minibatch_size <= LARGEST_MINIBATCH or torch.get_num_threads() == 1)
        and samples.valid is None
        and samples.action_masks is None
        and not samples.is_sequences
        and samples.observations.is_floating_point()
        and is_plain_mlp(actor.net)
        and is_plain_mlp(critic.net)
    )


class AnalyticGradients:
    """Fills ``parameter.grad`` with the gradient of PPO's loss.

    Args:
        policy: Accepted by :func:`applies_to`.
        cfg: Clip ranges and weights of the losses.
        parameters: The policy's, attached.
    """

    def __init__(self, policy: ActorCritic, cfg: PPOConfig, parameters: FlatParameters) -> None:
        actor: Any = policy.actor
        critic: Any = policy.critic
        self._cfg = cfg
        views = {id(p): _gradient_of(p) for p in parameters.parameters}
        self._actor = AnalyticMLP(actor.net, [views[id(p)] for p in actor.net.parameters()])
        self._critic = AnalyticMLP(critic.net, [views[id(p)] for p in critic.net.parameters()])
        self._log_std: nn.Parameter | None = None
        if isinstance(actor.head, GaussianHead):
            assert isinstance(actor.head.log_std, nn.Parameter)  # state-dependent deviations were refused
            self._log_std = actor.head.log_std
            self._log_std_range = actor.head.log_std_range
            self._log_std_gradient = views[id(self._log_std)]

    def __call__(self, samples: Samples) -> MinibatchResult:
        """Compute losses and gradients of one minibatch; old gradients are overwritten."""
        rows = samples.batch_size
        outputs = self._actor.forward(samples.observations.reshape(rows, -1).numpy())
        score = self._categorical if self._log_std is None else self._gaussian
        log_probs, policy_loss, entropy, gradient = score(outputs, samples)
        self._actor.backward(gradient)
        values = self._critic.forward(samples.critic_observations.reshape(rows, -1).numpy())
        critic_loss, value_gradient = self._value(values[:, 0], samples)
        self._critic.backward(value_gradient[:, None])
        losses = torch.tensor((policy_loss, critic_loss, entropy))
        return MinibatchResult(losses[0], losses[1], losses[2], torch.from_numpy(log_probs))

    def _surrogate(self, log_probs: Array, samples: Samples) -> tuple[float, Array]:
        """−E[min(r·A, clip(r)·A)] and its derivative by log π."""
        ratio = np.exp(log_probs - samples.log_probs.numpy())
        advantage = samples.advantages.numpy()
        plain = ratio * advantage
        clipped = np.clip(ratio, 1.0 - self._cfg.clip_range, 1.0 + self._cfg.clip_range) * advantage
        chosen = np.minimum(plain, clipped)
        loss = -float(chosen.mean())
        slope = np.where(plain <= clipped, plain, 0.0)  # ∂(r·A)/∂log π = r·A; the clipped branch is flat
        slope *= -1.0 / len(ratio)
        return loss, slope

    def _categorical(self, logits: Array, samples: Samples) -> tuple[Array, float, float, Array]:
        rows = np.arange(len(logits))
        actions = samples.actions.numpy()
        shifted = logits - logits.max(axis=1, keepdims=True)
        exponentials = np.exp(shifted)
        total = exponentials.sum(axis=1, keepdims=True)
        log_p = shifted - np.log(total)
        p = exponentials / total
        log_probs = log_p[rows, actions]
        loss, slope = self._surrogate(log_probs, samples)
        gradient = p * -slope[:, None]  # ∂log π(a)/∂z = 1[a] − p
        gradient[rows, actions] += slope
        entropies = -(p * log_p).sum(axis=1)
        if self._cfg.ent_coef:
            weight = self._cfg.ent_coef / len(logits)
            gradient += weight * p * (log_p + entropies[:, None])  # ∂H/∂z = −p·(log p + H)
        return log_probs, loss, float(entropies.mean()), gradient

    def _gaussian(self, mean: Array, samples: Samples) -> tuple[Array, float, float, Array]:
        assert self._log_std is not None  # the caller chose by it
        low, high = self._log_std_range
        raw = self._log_std.detach().numpy()
        log_std = np.clip(raw, low, high)
        inverse = np.exp(-log_std)
        z = (samples.actions.numpy() - mean) * inverse
        square = z * z
        count = mean.shape[1]
        constant = 0.5 * count * math.log(2.0 * math.pi)
        log_probs = -0.5 * square.sum(axis=1) - (log_std.sum() + constant)  # −½Σz² − Σ log σ − n/2·log 2π
        loss, slope = self._surrogate(log_probs, samples)
        gradient = z * inverse * slope[:, None]  # ∂log π/∂μ = z/σ
        by_log_std = slope @ (square - 1.0)  # ∂log π/∂log σ = z² − 1
        by_log_std -= self._cfg.ent_coef  # ∂H/∂log σ = 1
        self._log_std_gradient[:] = by_log_std * ((raw >= low) & (raw <= high))
        entropy = float(log_std.sum()) + constant + 0.5 * count
        return log_probs, loss, entropy, gradient

    def _value(self, values: Array, samples: Samples) -> tuple[float, Array]:
        """E[max(·)] of squared (or Huber) errors and its derivative by V, weighted with c_v."""
        cfg, target = self._cfg, samples.returns.numpy()
        loss, slope = _squared_error(values - target, cfg.huber_delta)
        if cfg.clip_range_vf is not None:
            old = samples.values.numpy()
            near = old + np.clip(values - old, -cfg.clip_range_vf, cfg.clip_range_vf)
            clipped, _ = _squared_error(near - target, cfg.huber_delta)
            slope = np.where(loss >= clipped, slope, 0.0)  # where the clipped error is larger, V does not move it
            loss = np.maximum(loss, clipped)
        slope *= cfg.vf_coef / len(values)
        return float(loss.mean()), slope


def _squared_error(error: Array, huber_delta: float | None) -> tuple[Array, Array]:
    """e² and 2e, or their Huber forms."""
    if huber_delta is None:
        return error * error, 2.0 * error
    inside = np.clip(error, -huber_delta, huber_delta)
    return inside * inside + 2.0 * huber_delta * np.abs(error - inside), 2.0 * inside


def _gradient_of(parameter: nn.Parameter) -> Array:
    assert parameter.grad is not None  # attached parameters have one
    return parameter.grad.numpy()
