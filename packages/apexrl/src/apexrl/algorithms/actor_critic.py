"""Actor, critic and their normalisers as modules: what decides, what values, and what a snapshot carries.

``FlatParameters`` keeps all parameters of a module in one buffer, so that clipping and the optimiser handle one tensor.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from gymnasium.spaces import Box
from numpy.typing import NDArray
from torch import Tensor, nn

from apexrl.algorithms.blueprint import Spaces
from apexrl.algorithms.ppo_config import PPOConfig
from apexrl.models import make_actor, make_critic
from apexrl.models.base import Actor, Critic, Policy, RecurrentActor, RecurrentCritic, ValueFunction
from apexrl.models.distributions import Distribution
from apexrl.models.heads import NetworkOutputError
from apexrl.models.normalizers import RunningObservationNormalizer, ValueNormalizer
from apexrl.spaces import observation_array
from apexrl.storage.samples import Samples

_VALUE_BATCH = 16_384
"""Rows that the critic sees at once outside of learning; bounds the memory that images take."""

CriticSource: TypeAlias = Literal["privileged_observation", "state"] | None


class ActingPolicy(nn.Module):
    """What it takes to act: the actor and the normaliser of what it sees.

    Args:
        actor: The policy.
        observation_normalizer: Applied to what the actor sees; None leaves it as it is.
    """

    def __init__(
        self,
        actor: Actor | RecurrentActor,
        observation_normalizer: RunningObservationNormalizer | None = None,
    ) -> None:
        super().__init__()
        self.actor = actor
        self.observation_normalizer = observation_normalizer

    @property
    def dtype(self) -> torch.dtype:
        """The precision that the networks compute in."""
        return next(self.actor.parameters()).dtype

    @property
    def device(self) -> torch.device:
        """Where the networks live."""
        return next(self.actor.parameters()).device

    def actor_input(self, obs: Tensor) -> Tensor:
        """Return what the actor is given for an observation."""
        return obs if self.observation_normalizer is None else self.observation_normalizer(obs)

    def initial_memory(self, num_envs: int) -> dict[str, Tensor]:
        """Return the memories at the start of an episode, by network; empty for feed-forward networks."""
        return {"actor": self.actor.initial_state(num_envs)} if isinstance(self.actor, RecurrentActor) else {}

    def act(self, obs: Tensor, memory: dict[str, Tensor], starts: Tensor | None) -> Tensor:
        """Return the head's inputs for one step ``[n, k]``; the actor's memory in ``memory`` moves on.

        Args:
            obs: ``[n, *obs]``.
            memory: As from :meth:`initial_memory`.
            starts: The observation is the first of an episode ``[n]``; needed by recurrent actors only.
        """
        if not isinstance(self.actor, RecurrentActor):
            outputs: Tensor = self.actor(self.actor_input(obs))
            return outputs
        assert starts is not None  # a group keeps them whenever the policy is recurrent
        sequence, memory["actor"] = self.actor(self.actor_input(obs)[None], memory["actor"], starts[None])
        return sequence[0]  # type: ignore[no-any-return]  # nn.Module.__call__ is untyped

    def distribution(self, outputs: Tensor, action_mask: Tensor | None = None) -> Distribution:
        """Return the distribution over actions that the actor's outputs describe."""
        return self.actor.head.distribution(outputs, action_mask)

    @torch.no_grad()
    def predict(
        self,
        observation: Any,  # noqa: ANN401 - an array, a tensor, or a Dict of arrays
        state: dict[str, Tensor] | None = None,
        episode_start: NDArray[Any] | Tensor | None = None,
        deterministic: bool = True,
        action_mask: NDArray[Any] | Tensor | None = None,
    ) -> tuple[Any, dict[str, Tensor]]:
        """Choose actions for observations of an environment, outside of training.

        Args:
            observation: One observation ``[*obs]``, or a batch ``[n, *obs]``; with several agents ``[A, *obs]`` or
                ``[n, A, *obs]``. An environment's own Dict, tuple or integer is understood.
            state: Memory from the last call, for recurrent actors; None at the start.
            episode_start: Which observations are the first of an episode ``[n]``; their memory is reset.
            deterministic: Take the most probable action instead of sampling.
            action_mask: Legal discrete actions, True = legal.

        Returns:
            Actions, within the bounds of a Box, as numpy if the observation is, and the memory for the next call.
        """
        obs = torch.as_tensor(observation_array(self.actor.observation_space, observation), device=self.device)
        obs = obs.to(self.dtype) if obs.is_floating_point() else obs
        shape, agents = tuple(self.actor.observation_space.shape or ()), self.actor.agent_axes
        leading = obs.dim() - agents - len(shape)
        if leading not in (0, 1) or obs.shape[leading + agents :] != shape:
            one = ", ".join(["agents"] * agents + [str(size) for size in shape])
            raise ValueError(
                f"predict got an observation of shape {list(obs.shape)}; it takes one of shape [{one}], or a batch of "
                "them, as the VecEnv gives it"
            )
        is_single = leading == 0
        obs = obs[None] if is_single else obs
        mask = None if action_mask is None else torch.as_tensor(action_mask, device=self.device).bool()
        mask = mask[None] if mask is not None and is_single else mask
        starts = torch.zeros(len(obs), dtype=torch.bool, device=self.device)
        if episode_start is not None:
            starts = torch.as_tensor(episode_start, device=self.device).bool().reshape(len(obs))
        memory = dict(state) if state else ActingPolicy.initial_memory(self, len(obs))
        distribution = self.distribution(self.act(obs, memory, starts), mask)
        actions = distribution.mode() if deterministic else distribution.sample()
        if isinstance(space := self.actor.action_space, Box):
            low, high = (torch.as_tensor(bound, device=actions.device) for bound in (space.low, space.high))
            actions = actions.clamp(low, high)
        actions = actions[0] if is_single else actions
        return actions if isinstance(observation, Tensor) else actions.cpu().numpy(), memory


class ActorCritic(ActingPolicy):
    """The networks of an actor-critic algorithm.

    Args:
        actor: The policy.
        critic: The value function.
        observation_normalizer: Applied to what the actor sees; None leaves it as it is.
        critic_normalizer: Applied to what the critic sees; the same object when both see the same.
        value_normalizer: Maps the critic's outputs to units of reward and back.
        critic_source: The key of the extras that the critic sees; None if it sees what the actor sees.
    """

    def __init__(
        self,
        actor: Actor | RecurrentActor,
        critic: Critic | RecurrentCritic,
        observation_normalizer: RunningObservationNormalizer | None = None,
        critic_normalizer: RunningObservationNormalizer | None = None,
        value_normalizer: ValueNormalizer | None = None,
        critic_source: CriticSource = None,
    ) -> None:
        super().__init__(actor, observation_normalizer)
        self.critic = critic
        self.critic_normalizer = critic_normalizer
        self.value_normalizer = value_normalizer
        self.critic_source: CriticSource = critic_source

    @property
    def is_recurrent(self) -> bool:
        """Whether the actor or the critic has memory."""
        return bool(self.actor.is_recurrent or self.critic.is_recurrent)

    def critic_input(self, obs: Tensor) -> Tensor:
        """Return what the critic is given for an observation."""
        return obs if self.critic_normalizer is None else self.critic_normalizer(obs)

    def to_rewards(self, outputs: Tensor) -> Tensor:
        """Convert critic outputs to units of reward."""
        return outputs if self.value_normalizer is None else self.value_normalizer.denormalize(outputs)

    def from_rewards(self, values: Tensor) -> Tensor:
        """Convert values in units of reward to critic outputs."""
        return values if self.value_normalizer is None else self.value_normalizer.normalize(values)

    def initial_memory(self, num_envs: int) -> dict[str, Tensor]:
        """Return the memories at the start of an episode, by network; empty for feed-forward networks."""
        memory = super().initial_memory(num_envs)
        if isinstance(self.critic, RecurrentCritic):
            memory["critic"] = self.critic.initial_state(num_envs)
        return memory

    def value(self, obs: Tensor) -> Tensor:
        """Compute V of observations ``[m, *obs]`` in units of reward ``[m, ...]``; for critics without memory."""
        parts = [self.critic(self.critic_input(part)) for part in torch.split(obs, _VALUE_BATCH)]
        return self.to_rewards(self._one_each(parts[0] if len(parts) == 1 else torch.cat(parts), obs))

    def _one_each(self, values: Tensor, obs: Tensor) -> Tensor:
        """Return a critic's outputs, if there is one per observation, or per agent ``[m, ...]``."""
        if values.dim() != 1 + self.actor.agent_axes:
            raise NetworkOutputError(
                f"{_name_of(self.critic)}.forward returned {list(values.shape)} for {list(obs.shape)} observations",
                "a critic gives one value per observation, without a last dimension of 1",
                "end forward with .squeeze(-1)",
            )
        return values

    def value_step(self, obs: Tensor, memory: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        """Compute V of one step ``[n]`` in units of reward, and the critic's next memory; for critics with memory."""
        outputs, after = self.critic(self.critic_input(obs)[None], memory, starts[None])
        return self.to_rewards(self._one_each(outputs[0], obs)), after


def _name_of(network: nn.Module) -> str:
    """Return the class of a network, or of the one inside that several agents share."""
    inner = getattr(network, "network", None)
    return type(inner if isinstance(inner, Policy | ValueFunction) else network).__name__


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


@dataclass(frozen=True)
class PolicySnapshot:
    """A policy and the number of updates that made it.

    Nothing in it changes while a rollout is collected: weights and normalisers move only at the barrier. A process or
    Ray executor pickles it; the inline executor uses it as it is.

    Attributes:
        version: How many updates the policy has had.
        policy: Networks and normalisers.
    """

    version: int
    policy: ActorCritic


def build_actor_critic(
    env: Spaces,
    cfg: PPOConfig,
    actor_class: type[Policy] | None,
    critic_class: type[ValueFunction] | None,
    actor_cfg: Mapping[str, Any],
    critic_cfg: Mapping[str, Any],
) -> ActorCritic:
    """Build networks for a single-agent environment; the critic sees the privileged observation if there is one."""
    actor = make_actor(actor_class, env.observation_space, env.action_space, actor_cfg)
    critic = make_critic(critic_class, env.critic_observation_space, critic_cfg)
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


class FlatParameters:
    """Makes a module's trainable parameters views of one tensor, and their gradients views of another.

    The optimiser then handles one tensor instead of a dozen, and the gradient's norm is one operation: for small
    networks this is most of the cost of a step.

    The module keeps working as before, ``state_dict`` and ``load_state_dict`` included. Whoever replaces the
    parameters' memory (``module.to``, ``module.double``) need not do anything: :meth:`attach` gathers them again.

    Args:
        module: On its final device.

    Attributes:
        flat: The buffer, as a parameter for an optimiser; ``flat.grad`` holds all gradients.
    """

    def __init__(self, module: nn.Module) -> None:
        self.parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self.flat = nn.Parameter(_gather(self.parameters))
        self.flat.grad = torch.zeros_like(self.flat)
        self._views: list[Tensor] = []
        self._share()

    @property
    def gradient(self) -> Tensor:
        """All gradients, in the order of the parameters."""
        assert self.flat.grad is not None  # made together with the buffer
        return self.flat.grad

    def attach(self) -> None:
        """Make sure that the buffer is what the module computes with, and that gradients arrive in it."""
        values = [parameter.data for parameter in self.parameters]
        if any(
            v.data_ptr() != view.data_ptr() or v.dtype != view.dtype
            for v, view in zip(values, self._views, strict=True)
        ):
            self.flat.data = _gather(self.parameters)
            self.flat.grad = torch.zeros_like(self.flat)
        self._share()

    def _share(self) -> None:
        sizes = [parameter.numel() for parameter in self.parameters]
        self._views = list(torch.split(self.flat.data, sizes))
        for parameter, view, gradient in zip(
            self.parameters, self._views, torch.split(self.gradient, sizes), strict=True
        ):
            parameter.data = view.view(parameter.shape)
            parameter.grad = gradient.view(parameter.shape)

    def clip(self, limit: float) -> Tensor:
        """Scale the gradient down to a norm and return the norm that it had."""
        norm: Tensor = torch.linalg.vector_norm(self.gradient)
        self.gradient.mul_((limit / (norm + 1e-6)).clamp(max=1.0))
        return norm


def _gather(parameters: list[nn.Parameter]) -> Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
