"""The contract between environments and everything that learns from them.

A `VecEnv` is a batch of independent copies of one environment, stepped together, speaking tensors.

Rules that every implementation keeps (and that `apexrl.check_env` verifies):

* **Same-step autoreset.** When an episode ends in a step, the observation that this step returns is already
  the first of the next episode; the last observation of the ended one is in ``extras["final_observation"]``.
* **Copy safety.** What was returned never changes later: no tensor shares memory with the environment's own
  buffers.
* **Termination is not truncation.** ``dones = terminated | time_outs``; a time limit sets ``time_outs`` only,
  so that the learner bootstraps from the value of the true final observation. An environment gives one of the
  two, the other follows (see `read_step`).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias, TypedDict

import numpy as np
import torch
from gymnasium.spaces import Space
from torch import Tensor

from apexrl.runs.errors import UserFacingError

StateDict: TypeAlias = dict[str, Any]
"""Tensors, scalars, strings, None, and dicts or lists of them: what loads with ``weights_only=True``."""

Opaque: TypeAlias = Any
"""A value whose type only somebody else's environment knows: a Gymnasium observation, an attribute."""


class Extras(TypedDict, total=False):
    """What `VecEnv.reset` and `VecEnv.step` return beside the observation. Shapes start with ``[num_envs]``.

    Every key is optional. An environment whose episodes are cut off by a time limit says so in ``time_outs`` and
    gives ``final_observation`` whenever a row is done.
    """

    time_outs: Tensor
    """bool ``[num_envs]``: cut off, e.g. by a time limit; the value after it is V(final observation)."""
    truncated: Tensor
    """The same as ``time_outs``, under Gymnasium's name."""
    terminated: Tensor
    """bool ``[num_envs]``: the task itself ended; the value after it is 0. By default ``dones & ~time_outs``."""
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
    success: Tensor
    """float ``[num_envs]``: 1 or 0 where an episode ended with or without success, NaN elsewhere."""
    reward_components: dict[str, Tensor]
    """Named parts of the reward, each ``[num_envs]``."""
    log: Mapping[str, float | Tensor]
    """Scalars that go to the metrics; a tensor or an array counts by its mean."""


CHECK_HINT = "run apexrl.check_env on the environment"


class UnsupportedSpacesError(UserFacingError, TypeError):
    """An environment's observations or actions have a space that no network here can use."""


class NotAnEnvError(UserFacingError, TypeError):
    """Something was given as an environment that is none, or not of the right kind."""


class SharedEnvError(UserFacingError, ValueError):
    """Two functions returned one and the same environment."""


class StepFormatError(UserFacingError, ValueError):
    """An environment returned a step that has no clear meaning."""


def refuse_shared(envs: Sequence[Opaque], hint: str) -> None:
    """Refuse one environment that stands for several of a batch, because their episodes would mix.

    Args:
        envs: The environments, which may be wrapped.
        hint: How to make separate ones.

    Raises:
        SharedEnvError: It names the first two that are one object.
    """
    first: dict[int, int] = {}
    for index, env in enumerate(envs):
        inner = getattr(env, "unwrapped", env)
        other = first.setdefault(id(inner), index)
        if other != index:
            raise SharedEnvError(
                f"environments {other} and {index} are the same {type(inner).__name__} object",
                "a batch steps every environment on its own, so each function has to make a new one",
                hint,
            )


def outline(returned: object) -> str:
    """Return the types of what an environment returned, for messages."""
    if not isinstance(returned, tuple):
        return f"a {type(returned).__name__}"
    return f"({', '.join(type(part).__name__ for part in returned)})"


class StepOutcome(NamedTuple):
    """A step's rewards and endings as a learner needs them."""

    rewards: Tensor
    """Floats ``[N]``, with several agents ``[N, A]``."""
    dones: Tensor
    """bool ``[N]``: an episode ended."""
    terminated: Tensor
    """bool ``[N]``: it ended by itself; the value after it is 0."""
    time_outs: Tensor
    """bool ``[N]``: it was cut off; the value after it is V(final observation)."""


def read_step(shape: tuple[int, ...], rewards: Tensor, dones: Tensor, extras: Any) -> StepOutcome:  # noqa: ANN401 - extras of one or of several agents
    """Read what `VecEnv.step` returned: ``terminated`` follows from ``dones & ~time_outs``, and the other way round.

    An environment without either key never cuts an episode off. Rewards ``[N, 1]`` and dones of any number type are
    understood.

    Args:
        shape: Shape of the rewards: ``(num_envs,)``, with several agents ``(num_envs, num_agents)``.
        rewards: As returned.
        dones: As returned.
        extras: As returned.

    Raises:
        StepFormatError: Rewards or dones are no tensors of the right shape, or the extras are no dictionary.
    """
    check_extras("step", extras)
    rewards = _reshaped("rewards", rewards, shape)
    dones = _flags("dones", dones, shape[:1])
    time_outs, terminated = extras.get("time_outs", extras.get("truncated")), extras.get("terminated")
    if time_outs is not None:
        time_outs = _flags("extras['time_outs']", time_outs, shape[:1])
    if terminated is not None:
        terminated = _flags("extras['terminated']", terminated, shape[:1])
    elif time_outs is None:
        terminated = dones
    else:
        time_outs = time_outs & dones  # simulators count time also in rows that go on
        terminated = dones & ~time_outs
    return StepOutcome(rewards, dones, terminated, dones & ~terminated if time_outs is None else time_outs)


def check_extras(method: str, extras: Opaque) -> None:
    """Refuse extras that are no dictionary.

    Raises:
        StepFormatError: It names the method that returned them.
    """
    if not isinstance(extras, dict):
        raise StepFormatError(
            f"{method}() returned extras as a {type(extras).__name__}",
            "it must be a dict, {} if there is nothing to say",
            CHECK_HINT,
        )


def check_observations(obs: Opaque, shape: tuple[int, ...], space: Space[Any]) -> None:
    """Refuse observations that are no tensor of one observation per environment, or per agent.

    Raises:
        StepFormatError: It names both shapes.
    """
    wanted = (*shape, *(space.shape or ()))
    if isinstance(obs, Tensor) and obs.shape[: len(shape)] == shape and obs.numel() == prod(wanted):
        return
    got = f"shape {list(obs.shape)}" if isinstance(obs, Tensor) else f"a {type(obs).__name__}"
    raise StepFormatError(
        f"the environment returned observations as {got}",
        f"they must be a tensor of shape {list(wanted)}, as num_envs and observation_space say",
        CHECK_HINT,
    )


def component_values(name: str, values: Opaque, shape: tuple[int, ...]) -> Tensor:
    """Return a reward component as a tensor ``[num_envs]``, or with several agents also ``[num_envs, num_agents]``.

    Raises:
        StepFormatError: It is no tensor or array of such a shape.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        values = torch.from_numpy(values)
    if isinstance(values, Tensor) and (values.shape == shape or values.shape in (shape[:1], (*shape, 1))):
        return values
    got = f"shape {list(values.shape)}" if isinstance(values, Tensor) else f"a {type(values).__name__}"
    raise StepFormatError(
        f"extras['reward_components'][{name!r}] is {got}",
        f"it must be a tensor of shape {list(shape)}: the part of each environment's reward",
        CHECK_HINT,
    )


def _flags(name: str, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    values = _reshaped(name, values, shape)
    return values if values.dtype is torch.bool else values.bool()


def _reshaped(name: str, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    if isinstance(values, Tensor) and values.shape == shape:
        return values
    if isinstance(values, Tensor) and values.shape == (*shape, 1):
        return values.squeeze(-1)
    got = f"shape {list(values.shape)}" if isinstance(values, Tensor) else f"a {type(values).__name__}"
    raise StepFormatError(
        f"step() returned {name} as {got}",
        f"it must be a tensor of shape {list(shape)}: one entry per environment",
        CHECK_HINT,
    )


def log_value(name: str, value: Opaque) -> float:
    """Return an entry of ``extras["log"]`` as one number: the mean of a tensor or an array.

    Raises:
        StepFormatError: It is no number.
    """
    if isinstance(value, float | int):
        return float(value)
    if isinstance(value, Tensor) and value.numel():
        return float(value.double().mean())
    if isinstance(value, np.ndarray | np.generic) and value.size and value.dtype.kind in "biuf":
        return float(value.mean())
    raise StepFormatError(
        f"extras['log'][{name!r}] is {value!r}",
        "it must be a number, or a tensor or an array of numbers, whose mean is logged",
        "log texts and objects from a callback",
    )


class StateNotSupportedError(RuntimeError):
    """The environment cannot give or take back its internal state."""


class EnvBatch:
    """What every batch of environments can do, whether one agent acts in each or several."""

    @property
    def supports_state(self) -> bool:
        """Whether there is a `state_dict` that captures everything, so that a resumed run continues bit by bit."""
        try:
            self.state_dict()
        except StateNotSupportedError:
            return False
        return True

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
