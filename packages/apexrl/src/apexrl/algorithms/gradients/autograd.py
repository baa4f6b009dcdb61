"""One minibatch's losses and gradients, by autograd: works for every network."""

from typing import NamedTuple, Protocol

from torch import Tensor

from apexrl.algorithms.actor_critic import ActorCritic
from apexrl.algorithms.gradients.flat_parameters import FlatParameters
from apexrl.algorithms.losses import masked_mean, ppo_surrogate, value_loss
from apexrl.algorithms.ppo_config import PPOConfig
from apexrl.models.base import RecurrentActor, RecurrentCritic
from apexrl.models.distributions import Distribution
from apexrl.storage.minibatches import Samples


class MinibatchResult(NamedTuple):
    """What one minibatch showed before its step; scalars that do not wait for the device."""

    policy_loss: Tensor
    value_loss: Tensor
    entropy: Tensor
    log_probs: Tensor
    """Under the present policy, without gradient; the samples' shape."""


def evaluate_actor(policy: ActorCritic, samples: Samples) -> Distribution:
    """Return the distribution of the present policy at stored observations."""
    actor = policy.actor
    if not isinstance(actor, RecurrentActor):
        return policy.distribution(actor(samples.observations), samples.action_masks)
    assert samples.episode_starts is not None  # recurrent policies are learned from sequences
    outputs, _ = actor(samples.observations, samples.memories["actor"], samples.episode_starts)
    return policy.distribution(outputs, samples.action_masks)


def evaluate_critic(policy: ActorCritic, samples: Samples) -> Tensor:
    """Return the critic's outputs at stored observations, the samples' shape."""
    critic = policy.critic
    if not isinstance(critic, RecurrentCritic):
        outputs: Tensor = critic(samples.critic_observations)
        return outputs
    assert samples.episode_starts is not None  # recurrent critics are learned from sequences
    values, _ = critic(samples.critic_observations, samples.memories["critic"], samples.episode_starts)
    return values  # type: ignore[no-any-return]  # nn.Module.__call__ is untyped


class Gradients(Protocol):
    """Computes losses and fills ``parameter.grad``."""

    def __call__(self, samples: Samples) -> MinibatchResult:
        """Compute losses and gradients of one minibatch."""


class AutogradGradients:
    """Fills ``parameter.grad`` with the gradient of PPO's loss.

    Args:
        policy: The networks.
        cfg: Clip ranges and weights of the losses.
        parameters: The policy's, attached.
    """

    def __init__(self, policy: ActorCritic, cfg: PPOConfig, parameters: FlatParameters) -> None:
        self._policy = policy
        self._cfg = cfg
        self._gradient = parameters.gradient

    def __call__(self, samples: Samples) -> MinibatchResult:
        """Compute losses and gradients of one minibatch; old gradients are dropped."""
        cfg = self._cfg
        distribution = evaluate_actor(self._policy, samples)
        log_probs = distribution.log_prob(samples.actions)
        policy_loss = ppo_surrogate(log_probs, samples.log_probs, samples.advantages, cfg.clip_range, samples.valid)
        critic_loss = value_loss(
            evaluate_critic(self._policy, samples),
            samples.returns,
            samples.values,
            cfg.clip_range_vf,
            samples.valid,
            cfg.huber_delta,
        )
        entropy = masked_mean(distribution.entropy(), samples.valid)
        loss = policy_loss + cfg.vf_coef * critic_loss - cfg.ent_coef * entropy  # L = L_π + c_v·L_V − c_e·H
        self._gradient.zero_()
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own annotation is missing
        return MinibatchResult(policy_loss.detach(), critic_loss.detach(), entropy.detach(), log_probs.detach())
