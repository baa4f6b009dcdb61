"""The replay audit: before the first optimiser step, stored log-probabilities must be those of the present policy."""

import logging

from torch import Tensor

from apexrl.algorithms.replay_audit import ReplayMismatchError

logger = logging.getLogger(__name__)

WARN_ABOVE = 1e-5
FAIL_ABOVE = 1e-4


def audit_replay(level: str, stored: Tensor, recomputed: Tensor, mask: Tensor | None = None) -> float:
    """Largest difference between stored and recomputed log-probabilities.

    Args:
        level: Who is audited, for messages.
        stored: log π(a|s) from collection.
        recomputed: log π(a|s) now.
        mask: 1 where the sample counts.

    Raises:
        ReplayMismatchError: The difference is above 1e-4: buffers were overwritten, or inputs or policy changed.
    """
    difference = (stored - recomputed).detach().abs()
    if mask is not None:
        difference = difference * mask
    largest = float(difference.max())
    if not largest <= FAIL_ABOVE:  # also true for NaN
        raise ReplayMismatchError(
            f"{level}: stored and recomputed log-probabilities differ by up to {largest:.3g}, allowed: {FAIL_ABOVE:g}; "
            "the batch is not on-policy: collect it again, and check what changed its inputs or the policy in between"
        )
    if largest > WARN_ABOVE:
        logger.warning("%s: stored and recomputed log-probabilities differ by up to %.3g", level, largest)
    return largest
