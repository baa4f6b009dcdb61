"""The skill discoverer: one recurrent actor π_l(a_i | o_i, z_i) shared by all agents and a central critic V_l(s, Z).

Without skill inputs the same networks are those of MAPPO.
"""

from typing import Any

import torch
from gymnasium.spaces import Space
from torch import Tensor, nn

from apexrl.models.distributions import Distribution
from apexrl.models.heads import make_action_head
from apexrl.models.mlp import orthogonal_linear
from hmasd.networks.blocks import HEAD_GAIN, RecurrentTrunk


class SkillDiscoverer(nn.Module):
    """Actor and critic, which share no parameters.

    Args:
        n_actor_inputs: Length of an observation with the code of the agent's skill.
        n_critic_inputs: Length of the state with the code of the skills that the critic sees.
        n_values: 1 if all agents share a value, the number of agents if each has its own.
        action_space: Space of one agent's action.
        width: Width of all layers and memories.
    """

    def __init__(
        self, *, n_actor_inputs: int, n_critic_inputs: int, n_values: int, action_space: Space[Any], width: int
    ) -> None:
        super().__init__()
        self.width = width
        self.actor = RecurrentTrunk(n_actor_inputs, width)
        self.head = make_action_head(action_space)
        self.to_action = orthogonal_linear(width, self.head.num_inputs, HEAD_GAIN)
        self.critic = RecurrentTrunk(n_critic_inputs, width)
        self.to_value = orthogonal_linear(width, n_values, 1.0)

    def policy(self, inputs: Tensor, memory: Tensor, action_mask: Tensor | None = None) -> tuple[Distribution, Tensor]:
        """Return distributions over actions ``[L, B]`` and memories after every step ``[L, B, H]``.

        Args:
            inputs: Observations with skill codes ``[L, B, n_actor_inputs]``.
            memory: Memory before the first step ``[B, H]``.
            action_mask: Legal discrete actions ``[L, B, A]``; if None, all are.
        """
        features, memories = self.actor(inputs, memory)
        return self.head.distribution(self.to_action(features), action_mask), memories

    def values(self, inputs: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Return values ``[L, B, n_values]`` in the normaliser's units, and memories after every step ``[L, B, H]``."""
        features, memories = self.critic(inputs, memory)
        out: Tensor = self.to_value(features)
        return out, memories

    def actor_parameters(self) -> list[nn.Parameter]:
        """Return the parameters that the policy loss trains."""
        modules: list[nn.Module] = [self.actor, self.head, self.to_action]
        return [parameter for module in modules for parameter in module.parameters()]

    def critic_parameters(self) -> list[nn.Parameter]:
        """Return the parameters that the value loss trains."""
        return [*self.critic.parameters(), *self.to_value.parameters()]


def concat_features(*parts: Tensor) -> Tensor:
    """Concatenate along the last axis, without copying if only one part has features."""
    given = [part for part in parts if part.shape[-1] > 0]
    return given[0] if len(given) == 1 else torch.cat(given, dim=-1)
