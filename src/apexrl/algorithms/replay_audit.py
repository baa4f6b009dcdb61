"""The replay audit: before an update's first step, the policy must still give what it gave when it acted.

A difference means that stored observations are not what the policy saw (aliased buffers), that a normaliser moved in
between, that memories were restored wrongly, or that fragments of other versions slipped in. All of them make
importance ratios meaningless, and none of them shows in a loss curve.
"""

import logging

import torch

from apexrl.algorithms.actor_critic import ActorCritic
from apexrl.algorithms.gradients import evaluate_actor
from apexrl.storage.minibatches import Samples

logger = logging.getLogger(__name__)

WARNING_FRACTION = 0.1
"""A warning comes from this fraction of the tolerance on: 1e-5 for the default tolerance of 1e-4."""


class ReplayMismatchError(RuntimeError):
    """Stored and recomputed log-probabilities differ, so the rollout was not made by the policy that learns from it."""


def replay_error(policy: ActorCritic, samples: Samples) -> float:
    """The largest |log π(a|s) recomputed − stored| over valid samples."""
    with torch.no_grad():
        recomputed = evaluate_actor(policy, samples).log_prob(samples.actions)
        difference = (recomputed - samples.log_probs).abs()
        if samples.valid is not None:
            difference = difference * samples.valid
        return float(difference.max())


def audit_replay(policy: ActorCritic, samples: Samples, tolerance: float) -> float:
    """Compare, warn, or refuse.

    Returns:
        The largest difference.

    Raises:
        ReplayMismatchError: It is above the tolerance, or not a number.
    """
    error = replay_error(policy, samples)
    if not error <= tolerance:
        raise ReplayMismatchError(
            f"recomputed log-probabilities differ from the stored ones by up to {error:.3g}, more than "
            f"replay_tolerance={tolerance:g}: the rollout does not fit the policy. Run apexrl.envs.checker.check_env "
            "on the environment (aliased observations are the usual cause), and change networks and normalisers only "
            "between iterations"
        )
    if error > WARNING_FRACTION * tolerance:
        logger.warning(
            "recomputed log-probabilities differ from the stored ones by up to %.3g (error above %g)", error, tolerance
        )
    return error
