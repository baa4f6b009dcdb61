"""From an environment's spaces to the networks and normalisers of an algorithm."""

from collections.abc import Mapping
from typing import Any

from gymnasium.spaces import Box

from apexrl.algorithms.actor_critic import ActorCritic
from apexrl.algorithms.ppo_config import PPOConfig
from apexrl.envs.vec_env import VecEnv
from apexrl.models import MLPActor, MLPCritic, MLPDiscreteActor
from apexrl.models.base import Policy, ValueFunction
from apexrl.models.normalizers import RunningObservationNormalizer, ValueNormalizer


def default_actor_class(env: Any) -> type[Policy]:  # noqa: ANN401 - single- and multi-agent environments
    """Return the MLP policy for an environment's action space."""
    return MLPActor if isinstance(env.action_space, Box) else MLPDiscreteActor


def build_actor_critic(
    env: VecEnv,
    cfg: PPOConfig,
    actor_class: type[Policy] | None,
    critic_class: type[ValueFunction] | None,
    actor_cfg: Mapping[str, Any],
    critic_cfg: Mapping[str, Any],
) -> ActorCritic:
    """Networks for a single-agent environment; the critic sees the privileged observation if there is one."""
    actor: Any = (actor_class or default_actor_class(env))(env.observation_space, env.action_space, **actor_cfg)
    critic: Any = (critic_class or MLPCritic)(env.critic_observation_space, **critic_cfg)
    observation_normalizer = critic_normalizer = None
    if cfg.normalize_observations:
        observation_normalizer = critic_normalizer = RunningObservationNormalizer(env.observation_space.shape or ())
        if env.privileged_observation_space is not None:
            critic_normalizer = RunningObservationNormalizer(env.privileged_observation_space.shape or ())
    return ActorCritic(
        actor,
        critic,
        observation_normalizer,
        critic_normalizer,
        ValueNormalizer() if cfg.normalize_values else None,
        None if env.privileged_observation_space is None else "privileged_observation",
    )
