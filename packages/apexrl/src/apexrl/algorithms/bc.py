"""Behaviour cloning: supervised learning of recorded actions."""

from collections.abc import Mapping
from typing import Any

from gymnasium.spaces import Space
from torch import Tensor

from apexrl.algorithms.actor_critic import ActingPolicy
from apexrl.algorithms.losses import negative_log_likelihood
from apexrl.algorithms.offline import OfflineAlgorithm, OfflineConfig
from apexrl.configuration import configuration
from apexrl.models import make_actor
from apexrl.models.base import Policy, ValueFunction
from apexrl.models.normalizers import RunningObservationNormalizer
from apexrl.storage.offline import OfflineDataset

__all__ = ["BC", "BCConfig"]


@configuration
class BCConfig(OfflineConfig):
    """Behaviour cloning: minimise −E[w · log π(a|s)] − c_e·E[H(π)] over recorded decisions."""

    ent_coef: float = 0.0
    """Weight of the entropy bonus. Raising it keeps the policy less certain than the recording."""


class BC(OfflineAlgorithm):
    """Behaviour cloning; arguments as in :class:`apexrl.algorithms.offline.OfflineAlgorithm`."""

    name = "bc"
    config_class = BCConfig
    cfg: BCConfig

    def _build(
        self,
        observation_space: Space[Any],
        action_space: Space[Any],
        actor_class: type[Policy] | None,
        critic_class: type[ValueFunction] | None,
        actor_cfg: Mapping[str, Any],
        critic_cfg: Mapping[str, Any],
    ) -> ActingPolicy:
        if critic_class is not None or critic_cfg:
            raise TypeError(
                f"behaviour cloning has no critic; leave out critic_class={critic_class} and critic_cfg={critic_cfg}"
            )
        shape = observation_space.shape or ()
        normalizer = RunningObservationNormalizer(shape) if self.cfg.normalize_observations else None
        return ActingPolicy(make_actor(actor_class, observation_space, action_space, actor_cfg), normalizer)

    def losses(self, batch: OfflineDataset) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute −E[w · log π(a|s)] − c_e·H."""
        outputs = self.policy.act(batch.observations, {}, None)
        distribution = self.policy.distribution(outputs, batch.action_masks)
        loss = negative_log_likelihood(distribution.log_prob(batch.actions), batch.weights)
        entropy = distribution.entropy().mean()
        return loss - self.cfg.ent_coef * entropy, {"policy_loss": loss, "entropy_loss": -entropy}
