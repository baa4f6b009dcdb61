"""The contract between environments and everything that learns from them.

A `VecEnv` is a batch of independent copies of one environment, stepped together, speaking tensors.

Rules that every implementation keeps (and that `apexrl.check_env` verifies):

* **Same-step autoreset.** When an episode ends in a step, the observation that this step returns is already
  the first of the next episode; the last observation of the ended one is in ``extras["final_observation"]``.
* **Copy safety.** What was returned never changes later: no tensor shares memory with the environment's own
  buffers.
* **Termination is not truncation.** ``dones = terminated | truncated``; a time limit sets ``truncated`` only,
  so that the learner bootstraps from the value of the true final observation.
"""

from abc import ABC, abstractmethod
from typing import Any, TypeAlias, TypedDict

import torch
from gymnasium.spaces import Space
from torch import Tensor

StateDict: TypeAlias = dict[str, Any]
"""Tensors, scalars, strings, None, and dicts or lists of them: what loads with ``weights_only=True``."""

Opaque: TypeAlias = Any
"""A value whose type only somebody else's environment knows: a Gymnasium observation, an attribute."""


class Extras(TypedDict, total=False):
    """What `VecEnv.reset` and `VecEnv.step` return beside the observation. Shapes start with ``[num_envs]``.

    `VecEnv.step` always gives ``terminated``, ``truncated`` and ``time_outs``, and ``final_observation``
    whenever a row is done. The other keys are present if the environment has them, and then at every step.
    """

    terminated: Tensor
    """bool ``[num_envs]``: the task itself ended; the value after it is 0."""
    truncated: Tensor
    """bool ``[num_envs]``: cut off, e.g. by a time limit; the value after it is V(final observation)."""
    time_outs: Tensor
    """The same as ``truncated``, under the name that robotics simulators use."""
    final_observation: Tensor
    """``[num_envs, *obs]``: the true last observation; only rows with ``dones`` are meaningful."""
    final_privileged_observation: Tensor
    """``[num_envs, *privileged]``: the same for the critic's observation."""
    privileged_observation: Tensor
    """``[num_envs, *privileged]``: what only the critic may see, for the observation returned beside it."""
    action_mask: Tensor
    """bool ``[num_envs, n]``: which discrete actions are legal in the observation returned beside it."""
    ignore: Tensor
    """bool ``[num_envs]``: this step was only a reset, its action had no effect: leave the transition out."""
    reward_components: dict[str, Tensor]
    """Named parts of the reward, each ``[num_envs]``."""
    log: dict[str, float]
    """Scalars that go to the metrics as they are."""


class StateNotSupportedError(RuntimeError):
    """The environment cannot give or take back its internal state."""


class EnvBatch:
    """What every batch of environments can do, whether one agent acts in each or several."""

    @property
    def supports_state(self) -> bool:
        """Whether `state_dict` captures everything, so that a resumed run continues bit by bit."""
        return False

    def state_dict(self) -> StateDict:
        """Return everything that decides the future of the batch: physics, counters, random streams.

        Raises:
            StateNotSupportedError: If this environment cannot be captured (see `supports_state`).
        """
        raise StateNotSupportedError(
            f"{type(self).__name__} cannot capture its state (supports_state is False): a resumed run has to "
            "start fresh episodes with reset(seed=...). Implement state_dict and load_state_dict to resume exactly."
        )

    def load_state_dict(self, state: StateDict) -> None:
        """Put the batch into a state that `state_dict` gave; the next `step` continues from there.

        Raises:
            StateNotSupportedError: If this environment cannot be captured (see `supports_state`).
        """
        raise StateNotSupportedError(
            f"{type(self).__name__} cannot restore a state (supports_state is False): start fresh episodes "
            "with reset(seed=...) instead."
        )

    def close(self) -> None:
        """Release windows, processes and files."""


class VecEnv(EnvBatch, ABC):
    """A batch of independent environments that step together.

    Attributes:
        num_envs: Number of environments in the batch.
        device: Where returned tensors live and where actions are expected.
        observation_space: Space of one environment's observation.
        action_space: Space of one environment's action.
        privileged_observation_space: Space of the critic's own observation, or None if it sees what the actor
            sees.
    """

    num_envs: int
    device: torch.device
    observation_space: Space[Any]
    action_space: Space[Any]
    privileged_observation_space: Space[Any] | None = None

    @property
    def critic_observation_space(self) -> Space[Any]:
        """What the critic sees: the privileged space if there is one, otherwise the observation space."""
        return self.privileged_observation_space or self.observation_space

    @abstractmethod
    def reset(self, seed: int | None = None) -> tuple[Tensor, Extras]:
        """Start a new episode everywhere.

        Args:
            seed: Seed of the whole batch; equal seeds give equal trajectories for equal actions. None
                continues the random streams as they are.

        Returns:
            Observations ``[num_envs, *obs]`` and extras.
        """

    @abstractmethod
    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, Extras]:
        """Apply one action per environment; finished environments are reset within the same call.

        Args:
            actions: ``[num_envs, *action]``, int64 for discrete spaces, float32 for continuous ones.

        Returns:
            Observations ``[num_envs, *obs]``, rewards float32 ``[num_envs]``, dones bool ``[num_envs]``,
            extras.
        """
