"""Heads: from a network's last outputs to a distribution over the actions of a space."""

from abc import ABC, abstractmethod
from typing import Any, TypedDict, Unpack

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Space
from torch import Tensor, nn

from apexrl.models.distributions import (
    Categorical,
    DiagonalGaussian,
    Distribution,
    MultiCategorical,
    SquashedGaussian,
)
from apexrl.runs.errors import UserFacingError


class NetworkOutputError(UserFacingError, ValueError):
    """A network's ``forward`` returned another number of outputs than its task has."""


class ActionHead(nn.Module, ABC):
    """Turns ``[*batch, num_inputs]`` network outputs into a `Distribution`.

    Attributes:
        num_inputs: How many numbers per sample the network must give.
        is_discrete: Whether actions are int64 and masks make sense.
    """

    num_inputs: int
    is_discrete: bool

    @abstractmethod
    def distribution(self, outputs: Tensor, action_mask: Tensor | None = None) -> Distribution:
        """Return the distribution that the outputs describe."""

    @abstractmethod
    def deterministic(self, outputs: Tensor) -> Tensor:
        """Return the mode, written with plain tensor operations so that it exports."""

    def _checked(self, outputs: Tensor) -> Tensor:
        """Return a network's outputs, if there are as many as the actions take."""
        if outputs.shape[-1] != self.num_inputs:
            raise NetworkOutputError(
                f"the actor's forward returned {list(outputs.shape)}",
                f"its action space takes {self.num_inputs} numbers per observation",
                "give the last layer self.head.num_inputs outputs",
            )
        return outputs


def _refuse_mask(action_mask: Tensor | None) -> None:
    if action_mask is not None:
        raise ValueError("action_mask was given for a continuous action space; masks exist only for discrete actions.")


class GaussianOptions(TypedDict, total=False):
    """Keyword arguments of `GaussianHead`."""

    log_std_init: float
    state_dependent_std: bool
    squash: bool
    log_std_range: tuple[float, float]


class GaussianHead(ActionHead):
    """Continuous actions; the standard deviation is a free parameter or a network output.

    Args:
        action_space: One-dimensional Box.
        log_std_init: Initial log σ.
        state_dependent_std: If True the network gives log σ too, added to `log_std_init`.
        squash: Keep actions inside the (finite) bounds by tanh instead of leaving the clipping to the
            environment.
        log_std_range: log σ is clamped to this interval.
    """

    is_discrete = False
    log_std: Tensor
    center: Tensor
    half_range: Tensor

    def __init__(
        self,
        action_space: Box,
        *,
        log_std_init: float = 0.0,
        state_dependent_std: bool = False,
        squash: bool = False,
        log_std_range: tuple[float, float] = (-20.0, 2.0),
    ) -> None:
        super().__init__()
        if len(action_space.shape) != 1:
            raise ValueError(
                f"Actors need a one-dimensional Box of actions, got shape {action_space.shape}. "
                "GymVecEnv flattens other shapes; a custom env has to offer Box(low.ravel(), high.ravel())."
            )
        n = action_space.shape[0]
        self.state_dependent_std = state_dependent_std
        self.squash = squash
        self.log_std_range = log_std_range
        self.num_inputs = 2 * n if state_dependent_std else n
        initial = torch.full((n,), float(log_std_init))
        if state_dependent_std:
            self.register_buffer("log_std", initial)
        else:
            self.log_std = nn.Parameter(initial)
        if squash:
            self._set_bounds(action_space)

    def _set_bounds(self, space: Box) -> None:
        low, high = space.low.astype(np.float64), space.high.astype(np.float64)
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (high > low).all()):
            raise ValueError(
                f"squash=True needs finite bounds with low < high, got low={low.tolist()}, "
                f"high={high.tolist()}. Use squash=False, or bound the action space."
            )
        self.register_buffer("center", torch.as_tensor((high + low) / 2, dtype=torch.float32))
        self.register_buffer("half_range", torch.as_tensor((high - low) / 2, dtype=torch.float32))

    def _mean_and_log_std(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        low, high = self.log_std_range
        if not self.state_dependent_std:
            return outputs, self.log_std.clamp(low, high)
        mean, offset = outputs.chunk(2, dim=-1)
        return mean, (self.log_std + offset).clamp(low, high)

    def distribution(self, outputs: Tensor, action_mask: Tensor | None = None) -> Distribution:
        """Return a (squashed) diagonal Gaussian."""
        _refuse_mask(action_mask)
        mean, log_std = self._mean_and_log_std(self._checked(outputs))
        if self.squash:
            return SquashedGaussian(mean, log_std, self.center, self.half_range)
        return DiagonalGaussian(mean, log_std)

    def deterministic(self, outputs: Tensor) -> Tensor:
        """Return the (squashed) mean."""
        mean, _ = self._mean_and_log_std(outputs)
        return self.center + self.half_range * torch.tanh(mean) if self.squash else mean


class CategoricalHead(ActionHead):
    """One of n actions."""

    is_discrete = True

    def __init__(self, n: int) -> None:
        super().__init__()
        self.num_inputs = n

    def distribution(self, outputs: Tensor, action_mask: Tensor | None = None) -> Distribution:
        """Return a categorical distribution over the legal actions."""
        return Categorical(self._checked(outputs), action_mask)

    def deterministic(self, outputs: Tensor) -> Tensor:
        """Return the most probable action."""
        return outputs.argmax(-1)


class MultiCategoricalHead(ActionHead):
    """Several independent choices."""

    is_discrete = True

    def __init__(self, nvec: list[int]) -> None:
        super().__init__()
        self.nvec = nvec
        self.num_inputs = sum(nvec)

    def distribution(self, outputs: Tensor, action_mask: Tensor | None = None) -> Distribution:
        """Return independent categorical distributions."""
        return MultiCategorical(self._checked(outputs), self.nvec, action_mask)

    def deterministic(self, outputs: Tensor) -> Tensor:
        """Return the most probable options."""
        return torch.stack([part.argmax(-1) for part in torch.split(outputs, self.nvec, dim=-1)], dim=-1)


def make_action_head(action_space: Space[Any], **gaussian_options: Unpack[GaussianOptions]) -> ActionHead:
    """Return the head for a space: Box, Discrete, MultiDiscrete or MultiBinary.

    Args:
        action_space: Space of one action.
        **gaussian_options: Keyword arguments of `GaussianHead`; only for Box.

    Raises:
        TypeError: If the space is none of these, or Gaussian options come with a discrete space.
        ValueError: If a discrete space does not start at 0.
    """
    if isinstance(action_space, Box) and not np.issubdtype(action_space.dtype, np.floating):
        raise TypeError(
            f"{action_space} holds integers, for which there is no Gaussian. GymVecEnv offers them as MultiDiscrete by "
            "itself; a custom env has to offer MultiDiscrete(high - low + 1) and add low."
        )
    if isinstance(action_space, Box):
        return GaussianHead(action_space, **gaussian_options)
    if gaussian_options:
        raise TypeError(
            f"Unexpected options {sorted(gaussian_options)} for {action_space}: those of a Gaussian apply "
            "to Box action spaces only, and there are no others."
        )
    if isinstance(action_space, Discrete | MultiDiscrete) and np.any(action_space.start != 0):
        raise ValueError(
            f"Actors number actions from 0, but {action_space} starts elsewhere. GymVecEnv shifts actions "
            "by itself; a custom env has to offer a space that starts at 0."
        )
    if isinstance(action_space, Discrete):
        return CategoricalHead(int(action_space.n))
    if isinstance(action_space, MultiDiscrete):
        return MultiCategoricalHead([int(n) for n in action_space.nvec.ravel()])
    if isinstance(action_space, MultiBinary):
        return MultiCategoricalHead([2] * int(np.prod(action_space.shape)))
    raise TypeError(f"No action head for {action_space}: use Box, Discrete, MultiDiscrete or MultiBinary.")
