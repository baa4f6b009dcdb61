"""Multi-agent PPO: decentralised actors, a centralised critic, agents that come and go."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from apexrl.algorithms.actor_critic import ActorCritic
from apexrl.algorithms.blueprint import Spaces
from apexrl.algorithms.multi_agent_networks import (
    CentralCritic,
    LocalCritic,
    SeparateActors,
    SharedActor,
    SharedRecurrentActor,
    with_agent_ids,
)
from apexrl.algorithms.ppo import PPO
from apexrl.algorithms.ppo_config import PPOConfig
from apexrl.configuration import configuration
from apexrl.models import make_actor, make_critic
from apexrl.models.base import Policy, ValueFunction
from apexrl.models.normalizers import RunningObservationNormalizer, ValueNormalizer

__all__ = ["MAPPO", "MAPPOConfig"]

AgentsActor = SharedActor | SharedRecurrentActor | SeparateActors


@configuration
class MAPPOConfig(PPOConfig):
    """Multi-agent PPO (Yu et al., 2022): PPO per agent, with values from the global state.

    A sample is one step of one environment with all its agents; absent agents are masked out of every mean.
    """

    share_actor: bool = True
    """One policy for all agents; False gives each agent its own, which learns from fewer samples and can specialise."""
    add_agent_ids: bool = True
    """Shared policy: append the agent's number to its observation, so that equal observations may differ in action."""
    centralized_critic: bool = True
    """Values from the global state; False values each agent's own observation, which is independent PPO."""
    value_per_agent: bool = True
    """Centralised critic: value each agent's own future; False gives one value for the team, for shared rewards."""
    team_reward: bool = False
    """Give every agent the mean reward of the agents present, so that they learn for the team."""


class MAPPO(PPO):
    """MAPPO with centralised training and decentralised execution.

    Args:
        env: Gives the spaces and the number of agents; it is not stepped here.
        cfg: Hyperparameters; if None, ``MAPPOConfig()``.
        actor_class: Network of one agent's policy; if None, the MLP for the action space.
        critic_class: The value network; if None, an MLP.
        actor_cfg: Keyword arguments of the actor.
        critic_cfg: Keyword arguments of the critic.
        device: Where to learn; if None, the environment's device.
    """

    name = "mappo"
    config_class = MAPPOConfig
    cfg: MAPPOConfig

    def _build(
        self,
        env: Spaces,
        actor_class: type[Policy] | None,
        critic_class: type[ValueFunction] | None,
        actor_cfg: Mapping[str, Any],
        critic_cfg: Mapping[str, Any],
    ) -> ActorCritic:
        cfg = self.cfg
        if env.num_agents is None or env.state_space is None:
            raise TypeError("MAPPO needs an environment with several agents: for a single one, use PPO, OnPolicyRunner")
        if critic_class is not None and critic_class.is_recurrent:
            raise TypeError(
                f"MAPPO's critic sees the state and needs no memory, got {critic_class.__name__}; use an MLP"
            )
        if actor_class is not None and actor_class.is_recurrent and not cfg.share_actor:
            raise TypeError(
                f"{actor_class.__name__} has memory, which agents share a policy for; use share_actor=True or its "
                "feed-forward version"
            )
        actor = self._actor(env, actor_class, actor_cfg)
        critic = self._critic(env, critic_class, critic_cfg)
        observation_normalizer = critic_normalizer = None
        if cfg.normalize_observations:
            observation_normalizer = critic_normalizer = RunningObservationNormalizer(env.observation_space.shape or ())
            if cfg.centralized_critic:
                critic_normalizer = RunningObservationNormalizer(env.state_space.shape or ())
        value_normalizer = ValueNormalizer() if cfg.normalize_values else None
        source = "state" if cfg.centralized_critic else None
        return ActorCritic(actor, critic, observation_normalizer, critic_normalizer, value_normalizer, source)  # type: ignore[arg-type]  # mypy widens the literal

    def _actor(self, env: Spaces, network: Any, options: Mapping[str, Any]) -> AgentsActor:  # noqa: ANN401
        assert env.num_agents is not None  # _build refused it
        if not self.cfg.share_actor:
            return SeparateActors(
                [make_actor(network, env.observation_space, env.action_space, options) for _ in range(env.num_agents)]
            )
        space = env.observation_space
        if self.cfg.add_agent_ids:
            space = with_agent_ids(space, env.num_agents)
        actor = make_actor(network, space, env.action_space, options)
        if actor.is_recurrent:
            return SharedRecurrentActor(actor, env.observation_space, env.num_agents, self.cfg.add_agent_ids)
        return SharedActor(actor, env.observation_space, env.num_agents, self.cfg.add_agent_ids)

    def _critic(self, env: Spaces, network: Any, options: Mapping[str, Any]) -> CentralCritic | LocalCritic:  # noqa: ANN401
        assert env.num_agents is not None  # _build refused it
        assert env.state_space is not None  # likewise
        if not self.cfg.centralized_critic:
            inner = make_critic(network, with_agent_ids(env.observation_space, env.num_agents), options)
            return LocalCritic(inner, env.observation_space)
        space = env.state_space
        if self.cfg.value_per_agent:
            space = with_agent_ids(space, env.num_agents)
        return CentralCritic(
            make_critic(network, space, options), env.state_space, env.num_agents, self.cfg.value_per_agent
        )

    def _rewards(self, rewards: Tensor, valid: Tensor | None) -> Tensor:
        """Return each agent's own reward, or the mean over the agents present ``[T, N, A]``."""
        if not self.cfg.team_reward:
            return rewards
        present = torch.ones_like(rewards) if valid is None else valid.to(rewards.dtype)
        mean = (rewards * present).sum(-1, keepdim=True) / present.sum(-1, keepdim=True).clamp(min=1.0)
        return mean.expand_as(rewards)
