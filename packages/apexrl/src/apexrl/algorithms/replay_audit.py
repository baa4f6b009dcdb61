"""The replay audit: before an update's first step, the policy must still give what it gave when it acted.

A difference means that stored observations are not what the policy saw (aliased buffers), that a normaliser moved in
between, that memories were restored wrongly, or that fragments of other versions slipped in. All of them make
importance ratios meaningless, and none of them shows in a loss curve.
"""

import logging

import torch
from torch import Tensor

from apexrl.algorithms.actor_critic import ActorCritic
from apexrl.algorithms.gradients.autograd import evaluate_actor
from apexrl.storage.minibatches import Samples

logger = logging.getLogger(__name__)

TOLERANCE = 1e-4
"""Largest difference of log-probabilities that float32 explains."""
_WARNING_FRACTION = 0.1
"""A warning comes from this fraction of the tolerance on: 1e-5 for the default tolerance of 1e-4."""


class ReplayMismatchError(RuntimeError):
    """Stored and recomputed log-probabilities differ, so the rollout was not made by the policy that learns from it."""


def audit_log_probs(
    who: str, stored: Tensor, recomputed: Tensor, mask: Tensor | None = None, tolerance: float = TOLERANCE
) -> float:
    """Compare, warn, or refuse.

    Args:
        who: Whose log-probabilities they are, for messages.
        stored: log π(a|s) from collection.
        recomputed: log π(a|s) now, of the same shape.
        mask: 1 where the sample counts.
        tolerance: Largest difference that is not refused.

    Returns:
        The largest difference over the samples that count.

    Raises:
        ReplayMismatchError: It is above the tolerance, or not a number.
    """
    difference = (recomputed - stored).detach().abs()
    if mask is not None:
        difference = difference * mask
    error = float(difference.max())
    if not error <= tolerance:  # also true for NaN
        raise ReplayMismatchError(
            f"{who}: recomputed log-probabilities differ from the stored ones by up to {error:.3g}, more than the "
            f"tolerance of {tolerance:g}: the rollout does not fit the policy. Run apexrl.check_env on "
            "the environment (aliased observations are the usual cause), and change networks and normalisers only "
            "between iterations"
        )
    if error > _WARNING_FRACTION * tolerance:
        logger.warning(
            "%s: recomputed log-probabilities differ from the stored ones by up to %.3g (error above %g)",
            who,
            error,
            tolerance,
        )
    return error


def audit_replay(policy: ActorCritic, samples: Samples, tolerance: float) -> float:
    """Recompute a rollout's log-probabilities and pass them to :func:`audit_log_probs`."""
    with torch.no_grad():
        recomputed = evaluate_actor(policy, samples).log_prob(samples.actions)
    return audit_log_probs("actor", samples.log_probs, recomputed, samples.valid, tolerance)
