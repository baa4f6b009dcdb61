"""Metrics of a rollout (``rollout/``, ``env/``) and of the latest finished episodes (``episode/``)."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from apexrl.algorithms.losses import masked_mean
from apexrl.storage.fragment import EpisodeTable
from apexrl.storage.rollout import RolloutStorage

_WINDOW = 100
"""How many of the latest episodes the means are taken over."""


class EpisodeWindow:
    """The latest finished episodes.

    Args:
        size: How many of them to keep. Raising it makes the means smoother and slower.
    """

    def __init__(self, size: int = _WINDOW) -> None:
        self._size = size
        self._table = EpisodeTable(returns=np.zeros(0), lengths=np.zeros(0, dtype=np.int64))
        self.total = 0

    def add(self, finished: EpisodeTable) -> None:
        """Add the episodes of a rollout."""
        self.total += len(finished)
        joined = EpisodeTable.concatenate([self._table, finished])
        self._table = EpisodeTable(
            returns=joined.returns[-self._size :],
            lengths=joined.lengths[-self._size :],
            components={name: values[-self._size :] for name, values in joined.components.items()},
        )

    def stats(self, with_components: bool) -> dict[str, float]:
        """Return means over the window; only the count before the first episode has ended."""
        table = self._table
        if not len(table):
            return {"episode/count": 0.0}
        stats = {
            "episode/mean_reward": float(table.returns.mean()),
            "episode/mean_length": float(table.lengths.mean()),
            "episode/min_reward": float(table.returns.min()),
            "episode/max_reward": float(table.returns.max()),
            "episode/count": float(self.total),
        }
        if with_components:
            for name, values in table.components.items():
                if np.isfinite(values).any():
                    stats[f"reward_components/{name}"] = float(np.nanmean(values))
        return stats

    def state_dict(self) -> dict[str, Any]:
        """Return the episodes in the window."""
        return {
            "total": self.total,
            "returns": torch.from_numpy(self._table.returns.copy()),
            "lengths": torch.from_numpy(self._table.lengths.copy()),
            "components": {name: torch.from_numpy(values.copy()) for name, values in self._table.components.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a window from :meth:`state_dict`."""
        self.total = state["total"]
        self._table = EpisodeTable(
            returns=state["returns"].cpu().numpy().copy(),
            lengths=state["lengths"].cpu().numpy().copy(),
            components={name: values.cpu().numpy().copy() for name, values in state["components"].items()},
        )


def rollout_stats(storage: RolloutStorage) -> dict[str, float]:
    """Compute means over all steps of a rollout, and collect what the environments logged."""
    valid: Tensor | None = storage.steps.get("valid")
    samples = storage.steps["rewards"].numel() if valid is None else int(valid.sum())
    stats = {
        "rollout/mean_reward": float(masked_mean(storage.steps["rewards"], valid)),
        "rollout/mean_value": float(masked_mean(storage.steps["values"], valid)),
        "rollout/num_samples": float(samples),
        "rollout/policy_version": float(storage.policy_version or 0),
    }
    return stats | {_metric_name(name): value for name, value in storage.log().items()}


def _metric_name(name: str) -> str:
    """Return the metric for a key of ``extras["log"]``: grouped keys keep their group, others go under ``env/``."""
    bare = name.lstrip("/")
    return bare if "/" in bare else f"env/{bare}"
