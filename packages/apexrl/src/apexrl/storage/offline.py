"""Recorded decisions to learn from: observations, actions and, for AWR, returns."""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete, Space
from torch import Tensor

from apexrl.runs.errors import UserFacingError
from apexrl.storage.samples import discounted_returns


class DatasetError(UserFacingError, ValueError):
    """Recorded decisions do not fit the spaces of the policy that should learn from them."""


@dataclass(frozen=True, kw_only=True)
class OfflineDataset:
    """M recorded decisions, as tensors; NumPy arrays are converted.

    Attributes:
        observations: ``[M, *obs]``.
        actions: ``[M, *action]``.
        returns: Discounted sums of the rewards that followed ``[M]``; needed by AWR.
        action_masks: Which discrete actions were legal, bool ``[M, n]``.
        weights: How much each decision counts ``[M]``; if None, all equally.
    """

    observations: Tensor
    actions: Tensor
    returns: Tensor | None = None
    action_masks: Tensor | None = None
    weights: Tensor | None = None

    def __post_init__(self) -> None:
        for name in ("observations", "actions", "returns", "action_masks", "weights"):
            values = getattr(self, name)
            if isinstance(values, np.ndarray):
                object.__setattr__(self, name, torch.from_numpy(values))
            if values is not None and len(values) != len(self.observations):
                raise ValueError(
                    f"{name} has {len(values)} rows for {len(self.observations)} observations; give one per decision"
                )
        if len(self.observations) == 0:
            raise ValueError("the dataset is empty; record at least one decision")

    def __len__(self) -> int:
        return len(self.observations)

    @staticmethod
    def from_trajectory(
        observations: Tensor,
        actions: Tensor,
        rewards: Tensor,
        dones: Tensor,
        gamma: float,
        action_masks: Tensor | None = None,
    ) -> "OfflineDataset":
        """Return a dataset with returns from one time-ordered recording.

        Args:
            observations: ``[M, *obs]``, episodes one after the other.
            actions: ``[M, *action]``.
            rewards: ``[M]``.
            dones: bool ``[M]``, True at the last decision of an episode; the last one of all counts as one.
            gamma: Discount of the returns.
            action_masks: bool ``[M, n]``.
        """
        rewards, dones = torch.as_tensor(rewards), torch.as_tensor(dones)
        returns = discounted_returns(rewards, torch.zeros_like(rewards), dones, gamma)
        return OfflineDataset(observations=observations, actions=actions, returns=returns, action_masks=action_masks)

    def check(self, observation_space: Space[Any], action_space: Space[Any]) -> None:
        """Refuse decisions that do not fit the spaces: some shapes would be broadcast, and a wrong loss learned.

        Raises:
            DatasetError: Observations or actions have another shape or type, or an action is not one of the choices.
        """
        of_action = action_space.shape or ()
        shapes = {"observations": observation_space.shape or (), "actions": (prod(of_action),) if of_action else ()}
        for name, shape in shapes.items():
            if (given := getattr(self, name).shape) != (len(self), *shape):
                raise DatasetError(
                    f"{name} of the dataset have the shape {list(given)}",
                    f"they must be {[len(self), *shape]}: one row per decision, of the shape of the space",
                    "reshape them, or correct the space",
                )
        if not isinstance(action_space, Box):
            self._check_choices(action_space)

    def _check_choices(self, space: Space[Any]) -> None:
        """Refuse discrete actions ``[M]`` or ``[M, n]`` that are no choices, or that their mask forbids."""
        if self.actions.dtype not in (torch.int32, torch.int64):
            raise DatasetError(
                f"actions of the dataset are {self.actions.dtype}",
                f"actions of {space} are int64",
                "use actions.long()",
            )
        sizes: Any = int(space.n) if isinstance(space, Discrete) else 2  # a MultiBinary entry is 0 or 1
        if isinstance(space, MultiDiscrete):
            sizes = torch.as_tensor(space.nvec.ravel(), device=self.actions.device)
        wrong = (self.actions < 0) | (self.actions >= sizes)
        reason = f"actions of {space} count from 0"
        if self.action_masks is not None and isinstance(space, Discrete) and not bool(wrong.any()):
            wrong = ~self.action_masks.gather(-1, self.actions[:, None].long()).squeeze(-1).bool()
            reason = "its action_mask must allow it"
        if bool(wrong.any()):
            row = int(wrong.nonzero()[0, 0])
            raise DatasetError(
                f"decision {row} of the dataset took action {self.actions[row].tolist()}",
                reason,
                "correct or leave out this decision",
            )

    def take(self, indices: Tensor) -> "OfflineDataset":
        """Return the decisions at these indices."""

        def chosen(values: Tensor | None) -> Tensor | None:
            return None if values is None else values.index_select(0, indices)

        return OfflineDataset(
            observations=self.observations.index_select(0, indices),
            actions=self.actions.index_select(0, indices),
            returns=chosen(self.returns),
            action_masks=chosen(self.action_masks),
            weights=chosen(self.weights),
        )

    def split(self, validation_fraction: float, seed: int) -> tuple["OfflineDataset", "OfflineDataset"]:
        """Split at random into training and validation parts. Split by episode beforehand if its steps correlate."""
        held_out = round(len(self) * validation_fraction)
        if not 0 < held_out < len(self):
            raise ValueError(
                f"validation_fraction={validation_fraction} of {len(self)} decisions leaves {held_out} for validation; "
                "both parts need at least one"
            )
        order = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))
        return self.take(order[held_out:]), self.take(order[:held_out])
