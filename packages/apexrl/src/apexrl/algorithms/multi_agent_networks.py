"""Actors and critics over an agent axis: ``[*batch, agents, ...]`` in, one decision or value per agent out."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, Space
from torch import Tensor, nn

from apexrl.models.base import Actor, Critic, RecurrentActor, flat_dim
from apexrl.models.distributions import Distribution
from apexrl.models.heads import ActionHead


def with_agent_ids(space: Space[Any], num_agents: int) -> Box:
    """Return a space followed by a one-hot number of the agent.

    Raises:
        TypeError: The space is not a vector.
    """
    if space.shape is None or len(space.shape) != 1:
        raise TypeError(
            f"agent ids are appended to vectors, but the space is {space}; flatten it, or turn agent ids off"
        )
    size = flat_dim(space) + num_agents
    return Box(-np.inf, np.inf, (size,), np.float32)


def _append_agent_ids(values: Tensor) -> Tensor:
    """Append each agent's one-hot id: ``[*batch, A, n]`` to ``[*batch, A, n + A]``."""
    agents = values.shape[-2]
    ids = torch.eye(agents, dtype=values.dtype, device=values.device)
    return torch.cat((values, ids.expand(*values.shape[:-2], agents, agents)), dim=-1)


class SharedActor(Actor):
    """One policy for all agents.

    Args:
        network: Sees one agent's observation, with its id if ``add_agent_ids``.
        observation_space: Space of one agent's observation, without ids.
        num_agents: A.
        add_agent_ids: Append a one-hot agent id, so that equal observations may lead to different behaviour.
    """

    agent_axes = 1

    def __init__(self, network: Actor, observation_space: Space[Any], num_agents: int, add_agent_ids: bool) -> None:
        nn.Module.__init__(self)  # the network brings the action head; a second one would be dead parameters
        self.network = network
        self.head = network.head
        self.observation_space, self.action_space = observation_space, network.action_space
        self.obs_dim = flat_dim(observation_space)
        self.num_agents, self.add_agent_ids = num_agents, add_agent_ids

    def forward(self, obs: Tensor) -> Tensor:
        """Map observations ``[*batch, A, *obs]`` to the head's inputs ``[*batch, A, k]``."""
        out: Tensor = self.network(_append_agent_ids(obs) if self.add_agent_ids else obs)
        return out


class SharedRecurrentActor(RecurrentActor):
    """One policy with memory for all agents; each agent has a memory of its own.

    Args:
        network: Sees one agent's observation, with its id if ``add_agent_ids``.
        observation_space: Space of one agent's observation, without ids.
        num_agents: A.
        add_agent_ids: Append a one-hot agent id.
    """

    agent_axes = 1

    def __init__(
        self, network: RecurrentActor, observation_space: Space[Any], num_agents: int, add_agent_ids: bool
    ) -> None:
        nn.Module.__init__(self)  # the network brings the action head
        self.network = network
        self.head = network.head
        self.observation_space, self.action_space = observation_space, network.action_space
        self.obs_dim = flat_dim(observation_space)
        self.num_agents, self.add_agent_ids = num_agents, add_agent_ids

    def initial_state(self, batch_size: int) -> Tensor:
        """Return the memories at the start of an episode, ``[batch_size, A, *state]``."""
        state = self.network.initial_state(batch_size * self.num_agents)  # [B·A, *state]
        return state.view(batch_size, self.num_agents, *state.shape[1:])

    def forward(self, obs: Tensor, state: Tensor, episode_starts: Tensor) -> tuple[Tensor, Tensor]:
        """Run over a sequence: ``[T, B, A, *obs]``, memories ``[B, A, *state]``, starts ``[T, B]``."""
        agents = (state.shape[0], self.num_agents)
        if self.add_agent_ids:
            obs = _append_agent_ids(obs)
        # Agents are rows of one batch [T, B·A, …]; an episode starts for all of them at once.
        starts = episode_starts.repeat_interleave(self.num_agents, dim=1)
        outputs, after = self.network(obs.flatten(1, 2), state.flatten(0, 1), starts)
        return outputs.unflatten(1, agents), after.unflatten(0, agents)


class SeparateActors(Actor):
    """A policy of its own for each agent.

    Args:
        networks: One per agent, in the order of the agent axis.
    """

    agent_axes = 1

    def __init__(self, networks: Sequence[Actor]) -> None:
        nn.Module.__init__(self)  # the networks bring their action heads
        self.networks = nn.ModuleList(networks)
        self.head = _PerAgentHead([network.head for network in networks])
        self.observation_space, self.action_space = networks[0].observation_space, networks[0].action_space
        self.obs_dim, self.num_agents = networks[0].obs_dim, len(networks)

    def forward(self, obs: Tensor) -> Tensor:
        """Map observations ``[*batch, A, *obs]`` to the heads' inputs ``[*batch, A, k]``."""
        assert self.observation_space.shape is not None  # flat_dim refused such spaces
        agent_axis = obs.dim() - 1 - len(self.observation_space.shape)
        parts = [network(obs.select(agent_axis, index)) for index, network in enumerate(self.networks)]
        return torch.stack(parts, dim=-2)


class _PerAgentHead(ActionHead):
    """The heads of separate actors, each on its own row.

    Args:
        heads: One per agent.
    """

    def __init__(self, heads: Sequence[ActionHead]) -> None:
        super().__init__()
        self.heads = nn.ModuleList(heads)
        self.num_inputs, self.is_discrete = heads[0].num_inputs, heads[0].is_discrete

    def distribution(self, outputs: Tensor, action_mask: Tensor | None = None) -> Distribution:
        """Return one distribution per agent behind one interface."""
        parts = []
        for index, head in enumerate(self.heads):
            mask = None if action_mask is None else action_mask[..., index, :]
            parts.append(head.distribution(outputs[..., index, :], mask))  # type: ignore[operator]  # a ModuleList forgets its types
        return _PerAgentDistribution(parts, agent_axis=outputs.dim() - 2)

    def deterministic(self, outputs: Tensor) -> Tensor:
        """Return the modes of all agents."""
        modes = [head.deterministic(outputs[..., index, :]) for index, head in enumerate(self.heads)]  # type: ignore[operator]  # as above
        return torch.stack(modes, dim=outputs.dim() - 2)


class _PerAgentDistribution(Distribution):
    """Independent distributions of several agents.

    Args:
        parts: One per agent, each ``[*batch]``.
        agent_axis: Where the agents stand in actions: after the batch.
    """

    def __init__(self, parts: Sequence[Distribution], agent_axis: int) -> None:
        self.parts = parts
        self.agent_axis = agent_axis

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Draw actions ``[*batch, A, *action]``."""
        return torch.stack([part.sample(generator) for part in self.parts], dim=self.agent_axis)

    def mode(self) -> Tensor:
        """Return the deterministic actions ``[*batch, A, *action]``."""
        return torch.stack([part.mode() for part in self.parts], dim=self.agent_axis)

    def log_prob(self, actions: Tensor) -> Tensor:
        """Return log-probabilities ``[*batch, A]``, one per agent."""
        chosen = actions.unbind(self.agent_axis)
        return torch.stack([part.log_prob(a) for part, a in zip(self.parts, chosen, strict=True)], dim=-1)

    def entropy(self) -> Tensor:
        """Return entropies ``[*batch, A]``, one per agent."""
        return torch.stack([part.entropy() for part in self.parts], dim=-1)

    def kl(self, other: "_PerAgentDistribution") -> Tensor:
        """Return divergences ``[*batch, A]``, one per agent."""
        return torch.stack([p.kl(q) for p, q in zip(self.parts, other.parts, strict=True)], dim=-1)


class CentralCritic(Critic):
    """Values from the global state: one per agent, or one for the team.

    Args:
        network: Sees the state, with an agent id if ``per_agent``.
        state_space: Space of the global state, without ids.
        num_agents: A.
        per_agent: Value each agent's own future; False values the team's, the same for all.
    """

    def __init__(self, network: Critic, state_space: Space[Any], num_agents: int, per_agent: bool) -> None:
        super().__init__(state_space)
        self.network = network
        self.num_agents = num_agents
        self.per_agent = per_agent

    def forward(self, obs: Tensor) -> Tensor:
        """Map states ``[*batch, *state]`` to values ``[*batch, A]``."""
        if not self.per_agent:
            team: Tensor = self.network(obs)
            return team.unsqueeze(-1).expand(*team.shape, self.num_agents)
        rows = obs.unsqueeze(-2).expand(*obs.shape[:-1], self.num_agents, obs.shape[-1])
        values: Tensor = self.network(_append_agent_ids(rows))
        return values


class LocalCritic(Critic):
    """Values from each agent's own observation: what independent learners have.

    Args:
        network: Sees one agent's observation and its id.
        observation_space: Space of one agent's observation, without ids.
    """

    def __init__(self, network: Critic, observation_space: Space[Any]) -> None:
        super().__init__(observation_space)
        self.network = network

    def forward(self, obs: Tensor) -> Tensor:
        """Map observations ``[*batch, A, *obs]`` to values ``[*batch, A]``."""
        values: Tensor = self.network(_append_agent_ids(obs))
        return values
