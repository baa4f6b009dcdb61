"""MAPPO (Yu et al., 2022): HMASD's low level without skills, trained on the team reward."""

from typing import Any

import torch
from torch import Tensor

from apexrl.algorithms.devices import resolve_device
from apexrl.envs import MultiAgentExtras, MultiAgentVecEnv
from apexrl.models.base import flat_dim
from hmasd.config import HMASDConfig
from hmasd.learning.low_level import LowLevel, LowLevelInputs
from hmasd.learning.optimization import restore_generator
from hmasd.learning.rollout import Rollout
from hmasd.networks.discoverer import SkillDiscoverer


class MAPPOAgent:
    """A shared recurrent actor and a central critic V(s); implements :class:`hmasd.learning.protocols.Agent`.

    Args:
        config: Hyperparameters; those of skills are unused.
        env: The environments it will act in; only spaces and sizes are read.
    """

    def __init__(self, config: HMASDConfig, env: MultiAgentVecEnv) -> None:
        self.config = config
        self.device = device = resolve_device(config.device)
        self.version = 0
        self.n_agents = env.num_agents
        n_observation, n_state = flat_dim(env.observation_space), flat_dim(env.state_space)
        self.rollout = Rollout.for_env(env, config.rollout_steps, config.hidden_size, device)
        networks = SkillDiscoverer(
            n_actor_inputs=n_observation,
            n_critic_inputs=n_state,
            n_values=1,
            action_space=env.action_space,
            width=config.hidden_size,
        ).to(device)
        self.low = LowLevel(config, networks, env.num_envs, env.num_agents, device)
        self.generator = torch.Generator(device).manual_seed(config.seed)
        self._no_codes = torch.zeros(env.num_envs, env.num_agents, 0, device=device)

    def act(
        self,
        observations: Tensor,
        state: Tensor,
        present: Tensor,
        episode_starts: Tensor,
        action_mask: Tensor | None = None,
    ) -> Tensor:
        """Sample actions ``[E, n, ...]``."""
        self.rollout.add_observations(observations, state, present, episode_starts, action_mask)
        return self.low.act(self.rollout, self._no_codes, self.generator)

    def observe(self, observations: Tensor, rewards: Tensor, dones: Tensor, extras: MultiAgentExtras) -> None:
        """Store the outcome of a step."""
        self.rollout.add_outcome(observations, rewards, dones, extras, self.version)

    def update(self, env_steps: int) -> dict[str, float]:
        """Run PPO on the team reward."""
        rollout = self.rollout
        rollout.check(self.version)
        inputs = LowLevelInputs(
            actor_codes=rollout.observations[..., :0],
            critic_codes=rollout.states[..., :0],
            rewards=rollout.rewards.unsqueeze(-1).expand(-1, -1, self.n_agents),
            ends=rollout.interval_ends(),
        )
        losses = self.low.update(rollout, inputs, self.generator)
        rollout.clear()
        self.version += 1
        return {
            "Losses/Policy": losses["policy"],
            "Losses/Value": losses["value"],
            "Policy/Entropy": losses["entropy"],
            "Policy/KL": losses["kl"],
            "Sync/ReplayLogProbError": losses["replay_error"],
        }

    def policy(self, num_envs: int, generator: torch.Generator, *, deterministic: bool) -> "RecurrentPolicy":
        """Return the current policy for other environments."""
        return RecurrentPolicy(self, num_envs, generator, deterministic=deterministic)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs."""
        return {"version": self.version, "generator": self.generator.get_state(), "low": self.low.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.version = state["version"]
        restore_generator(self.generator, state["generator"])
        self.low.load_state_dict(state["low"])
        self.rollout.clear()


class RecurrentPolicy:
    """The actor with its own memories.

    Args:
        agent: The agent whose networks are used.
        num_envs: Number of environments.
        generator: Random generator of actions.
        deterministic: Take the most probable actions.
    """

    def __init__(self, agent: MAPPOAgent, num_envs: int, generator: torch.Generator, *, deterministic: bool) -> None:
        self._low, self._device = agent.low, agent.device
        self._generator = generator
        self._deterministic = deterministic
        self._memory = torch.zeros(num_envs, agent.n_agents, agent.config.hidden_size, device=agent.device)
        self.skills: Tensor | None = None

    def act(
        self, observations: Tensor, state: Tensor, episode_starts: Tensor, action_mask: Tensor | None = None
    ) -> Tensor:
        """Return actions ``[E, n, ...]``."""
        self._memory[episode_starts] = 0.0
        inputs = observations.to(self._device)
        legal = None if action_mask is None else action_mask.to(self._device)
        actions, _, self._memory = self._low.sample(
            inputs, inputs[..., :0], self._memory, self._generator, legal, deterministic=self._deterministic
        )
        return actions.to(observations.device)
