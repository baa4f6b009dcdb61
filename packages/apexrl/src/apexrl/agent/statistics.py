"""What a rollout showed, under the names of document 003."""

from torch import Tensor

from apexrl.algorithms.losses import masked_mean
from apexrl.storage.rollout import RolloutStorage


def rollout_stats(storage: RolloutStorage) -> dict[str, float]:
    """Means over all steps of a rollout, and what the environments logged."""
    valid: Tensor | None = storage.steps.get("valid")
    samples = storage.steps["rewards"].numel() if valid is None else int(valid.sum())
    stats = {
        "rollout/mean_reward": float(masked_mean(storage.steps["rewards"], valid)),
        "rollout/mean_value": float(masked_mean(storage.steps["values"], valid)),
        "rollout/num_samples": float(samples),
        "rollout/policy_version": float(storage.policy_version or 0),
    }
    return stats | {metric_name(name): value for name, value in storage.log().items()}


def metric_name(name: str) -> str:
    """Return the metric for a key of ``extras["log"]``: grouped keys keep their group, others go under ``env/``."""
    bare = name.lstrip("/")
    return bare if "/" in bare else f"env/{bare}"
