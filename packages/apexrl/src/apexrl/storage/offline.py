"""Recorded decisions to learn from: observations, actions and, for AWR, returns."""

from dataclasses import dataclass

import torch
from torch import Tensor

from apexrl.storage.samples import discounted_returns


@dataclass(frozen=True, kw_only=True)
class OfflineDataset:
    """M recorded decisions.

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
        for name in ("actions", "returns", "action_masks", "weights"):
            values = getattr(self, name)
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
        returns = discounted_returns(rewards, torch.zeros_like(rewards), dones, gamma)
        return OfflineDataset(observations=observations, actions=actions, returns=returns, action_masks=action_masks)

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
