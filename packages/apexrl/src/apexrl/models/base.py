"""Base classes of policies and value functions.

A custom network subclasses one of four classes and writes two methods, ``__init__`` and ``forward``:

===================  ==========================================================  ============================
class                ``forward``                                                 gives
===================  ==========================================================  ============================
`Actor`              ``(obs)``                                                   ``[*batch, head.num_inputs]``
`Critic`             ``(obs)``                                                   ``[*batch]``
`RecurrentActor`     ``(obs, state, episode_starts)``                            the same over time, new state
`RecurrentCritic`    ``(obs, state, episode_starts)``                            the same over time, new state
===================  ==========================================================  ============================

Constructors take ``(observation_space, action_space, **cfg)`` for actors and ``(observation_space, **cfg)``
for critics; ``actor_cfg`` and ``critic_cfg`` of the runners are these keyword arguments.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar, Unpack

from gymnasium.spaces import Box, Space
from torch import Tensor, nn

from apexrl.models.distributions import Distribution
from apexrl.models.heads import ActionHead, GaussianOptions, make_action_head


def flat_dim(space: Space[Any]) -> int:
    """Return the number of values in one observation.

    Raises:
        TypeError: If the space has no single shape (Dict, Tuple, …).
    """
    if space.shape is None:
        raise TypeError(f"{space} has no single shape. Flatten it first (GymVecEnv does so for Gymnasium envs).")
    return prod(space.shape)


def split_head_options(options: Mapping[str, Any]) -> tuple[GaussianOptions, dict[str, Any]]:
    """Take the Gaussian head's keyword arguments out of an actor's; return them and the rest."""
    names = GaussianOptions.__annotations__
    head: GaussianOptions = {name: value for name, value in options.items() if name in names}  # type: ignore[assignment]  # the names are its keys
    return head, {name: value for name, value in options.items() if name not in names}


class Policy(nn.Module):
    """What feed-forward and recurrent actors have in common: the spaces and the action head.

    Args:
        observation_space: Space of one observation.
        action_space: Space of one action.
        **head_options: Keyword arguments of `apexrl.models.heads.GaussianHead` for Box actions.

    Raises:
        TypeError: If the class is for the other kind of actions.
    """

    is_recurrent: ClassVar[bool]
    wants_discrete: ClassVar[bool | None] = None
    """Which actions the class is for: discrete (True), Box (False), or both."""
    agent_axes: ClassVar[int] = 0
    """Dimensions between the batch and the observation: 1 if it acts for several agents at once."""
    counterpart: ClassVar[str] = ""
    """The class for the other kind of actions, named in the error."""

    def __init__(
        self, observation_space: Space[Any], action_space: Space[Any], **head_options: Unpack[GaussianOptions]
    ) -> None:
        super().__init__()
        is_discrete = not isinstance(action_space, Box)
        if self.wants_discrete is not None and self.wants_discrete != is_discrete:
            raise TypeError(
                f"{type(self).__name__} is for {'discrete' if self.wants_discrete else 'continuous (Box)'} "
                f"actions, got {action_space}. Use {self.counterpart}."
            )
        self.observation_space = observation_space
        self.action_space = action_space
        self.obs_dim = flat_dim(observation_space)
        self.head: ActionHead = make_action_head(action_space, **head_options)


class Actor(Policy, ABC):
    """A feed-forward policy: write ``__init__`` and `forward`, the action space does the rest."""

    is_recurrent = False

    @abstractmethod
    def forward(self, obs: Tensor) -> Tensor:
        """Map observations ``[*batch, *obs]`` to the head's inputs ``[*batch, self.head.num_inputs]``."""

    def distribution(self, obs: Tensor, action_mask: Tensor | None = None) -> Distribution:
        """Return the distribution over actions.

        Args:
            obs: ``[*batch, *obs]``.
            action_mask: bool ``[*batch, n]``, True = legal; for discrete actions only.
        """
        return self.head.distribution(self.forward(obs), action_mask)


class RecurrentActor(Policy, ABC):
    """A policy with memory, evaluated over sequences ``[T, B, …]``; one step is a sequence of length 1."""

    is_recurrent = True

    @abstractmethod
    def initial_state(self, batch_size: int) -> Tensor:
        """Return the memory at the start of an episode, ``[batch_size, *state]``, on the module's device."""

    @abstractmethod
    def forward(self, obs: Tensor, state: Tensor, episode_starts: Tensor) -> tuple[Tensor, Tensor]:
        """Run the memory over a sequence.

        Args:
            obs: ``[T, B, *obs]``.
            state: Memory before the first step, ``[B, *state]``.
            episode_starts: bool ``[T, B]``; True where ``obs[t]`` is the first of an episode: the memory is
                reset *before* that step.

        Returns:
            The head's inputs ``[T, B, self.head.num_inputs]`` and the memory after the last step.
        """

    def distribution(
        self, obs: Tensor, state: Tensor, episode_starts: Tensor, action_mask: Tensor | None = None
    ) -> tuple[Distribution, Tensor]:
        """Return the distribution over actions ``[T, B]`` and the memory after; arguments as in `forward`."""
        outputs, state = self.forward(obs, state, episode_starts)
        return self.head.distribution(outputs, action_mask), state


class ValueFunction(nn.Module):
    """What feed-forward and recurrent critics have in common.

    Args:
        observation_space: Space of what the critic sees (`VecEnv.critic_observation_space`).
    """

    is_recurrent: ClassVar[bool]

    def __init__(self, observation_space: Space[Any]) -> None:
        super().__init__()
        self.observation_space = observation_space
        self.obs_dim = flat_dim(observation_space)


class Critic(ValueFunction, ABC):
    """A feed-forward value function."""

    is_recurrent = False

    @abstractmethod
    def forward(self, obs: Tensor) -> Tensor:
        """Map observations ``[*batch, *obs]`` to values ``[*batch]``."""


class RecurrentCritic(ValueFunction, ABC):
    """A value function with memory."""

    is_recurrent = True

    @abstractmethod
    def initial_state(self, batch_size: int) -> Tensor:
        """Return the memory at the start of an episode, ``[batch_size, *state]``, on the module's device."""

    @abstractmethod
    def forward(self, obs: Tensor, state: Tensor, episode_starts: Tensor) -> tuple[Tensor, Tensor]:
        """Compute values ``[T, B]`` and the last memory; arguments as in `RecurrentActor.forward`."""
