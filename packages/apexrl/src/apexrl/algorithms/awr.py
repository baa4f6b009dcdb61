"""Advantage-weighted regression: supervised learning of recorded actions, weighted by their advantage."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from gymnasium.spaces import Space
from torch import Tensor

from apexrl.algorithms.actor_critic import ActorCritic
from apexrl.algorithms.losses import (
    awr_weights,
    explained_variance,
    negative_log_likelihood,
    standardize,
    value_loss,
)
from apexrl.algorithms.offline import OfflineAlgorithm, OfflineConfig
from apexrl.algorithms.ppo_config import NonNegative, Positive
from apexrl.configuration import configuration
from apexrl.models import make_actor, make_critic
from apexrl.models.base import Policy, ValueFunction
from apexrl.models.normalizers import RunningObservationNormalizer, ValueNormalizer
from apexrl.storage.offline import OfflineDataset

__all__ = ["AWR", "AWRConfig"]


@configuration
class AWRConfig(OfflineConfig):
    """Advantage-weighted regression (Peng et al., 2019).

    Minimised: −E[min(exp(A/β), w_max) · log π(a|s)] + c_v·E[(V(s) − R)²], with A = R − V(s) from a learned critic.
    """

    temperature: Positive = 1.0
    """β. Raising it makes all decisions count more alike, up to plain behaviour cloning."""
    max_weight: Positive = 20.0
    """Largest weight of a decision. Raising it lets the best ones dominate a minibatch."""
    vf_coef: NonNegative = 0.5
    """Weight of the critic's loss."""
    normalize_advantages: bool = True
    """Scale advantages to mean 0 and deviation 1 before β, so that β does not depend on the rewards' scale."""
    normalize_values: bool = True
    """Let the critic learn returns scaled by the training set's mean and deviation."""
    critic_epochs: int = 1
    """Epochs in which only the critic learns, before the policy follows it. Raising it makes first advantages truer."""


class AWR(OfflineAlgorithm):
    """Advantage-weighted regression; arguments as in :class:`apexrl.algorithms.offline.OfflineAlgorithm`."""

    name = "awr"
    config_class = AWRConfig
    cfg: AWRConfig
    policy: ActorCritic

    def _build(
        self,
        observation_space: Space[Any],
        action_space: Space[Any],
        actor_class: type[Policy] | None,
        critic_class: type[ValueFunction] | None,
        actor_cfg: Mapping[str, Any],
        critic_cfg: Mapping[str, Any],
    ) -> ActorCritic:
        shape = observation_space.shape or ()
        normalizer = RunningObservationNormalizer(shape) if self.cfg.normalize_observations else None
        return ActorCritic(
            make_actor(actor_class, observation_space, action_space, actor_cfg),
            make_critic(critic_class, observation_space, critic_cfg),
            normalizer,
            normalizer,
            ValueNormalizer() if self.cfg.normalize_values else None,
        )

    def learn_statistics(self, dataset: OfflineDataset) -> None:
        """Take scales of observations and returns from the training set."""
        super().learn_statistics(dataset)
        if self.policy.value_normalizer is not None:
            self.policy.value_normalizer.update(_returns_of(dataset).to(self.device))

    @torch.no_grad()
    def prepare(self, dataset: OfflineDataset) -> OfflineDataset:
        """Weight all decisions by the present critic, so that the weights stay the same for a whole epoch."""
        returns = _returns_of(dataset)
        values = self.policy.value(self.inputs(dataset)).to(returns.device)
        advantages = returns - values  # A = R − V(s)
        if self.cfg.normalize_advantages:
            advantages = standardize(advantages)
        weights = awr_weights(advantages, self.cfg.temperature, self.cfg.max_weight)
        if dataset.weights is not None:
            weights = weights * dataset.weights
        return replace(dataset, weights=weights)

    def losses(self, batch: OfflineDataset) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the weighted likelihood and the critic's error."""
        outputs = self.policy.act(batch.observations, {}, None)
        distribution = self.policy.distribution(outputs, batch.action_masks)
        policy_loss = negative_log_likelihood(distribution.log_prob(batch.actions), batch.weights)
        predicted = self.policy.critic(self.policy.critic_input(batch.observations))
        target = self.policy.from_rewards(_returns_of(batch))
        critic_loss = value_loss(predicted, target)
        policy_weight = 0.0 if self.version < self.cfg.critic_epochs else 1.0
        loss = policy_weight * policy_loss + self.cfg.vf_coef * critic_loss
        parts = {
            "policy_loss": policy_loss,
            "value_loss": critic_loss,
            "entropy_loss": -distribution.entropy().mean(),
            "explained_variance": explained_variance(predicted.detach(), target),
        }
        return loss, parts


def _returns_of(dataset: OfflineDataset) -> Tensor:
    if dataset.returns is None:
        raise ValueError("AWR needs returns; build the dataset with OfflineDataset.from_trajectory, or pass returns=")
    return dataset.returns
