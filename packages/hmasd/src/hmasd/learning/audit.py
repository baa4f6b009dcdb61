"""The replay audit of transformers, which magnify rounding once their attention is sharp."""

import copy
from collections.abc import Callable
from typing import TypeVar

from torch import Tensor, nn

from apexrl.algorithms.losses import REPLAY_TOLERANCE, audit_log_probs

Network = TypeVar("Network", bound=nn.Module)
_MARGIN = 10.0
"""Sampling and scoring round in different operations; both errors are of one order of magnitude."""
_LIMIT = 1e-2
"""Largest difference that is accepted as rounding; the largest that was measured is 2.4e-4."""


def audit_transformer(
    name: str,
    network: Network,
    score: Callable[[Network, Callable[[Tensor], Tensor]], Tensor],
    stored: Tensor,
    mask: Tensor | None,
) -> float:
    """Compare stored log-probabilities with those of the network, as :func:`apexrl.algorithms.losses.audit_log_probs`.

    A difference above the usual tolerance is accepted if it is rounding: at most ten times the largest difference
    between the network's log-probabilities in float32 and in float64, for the same samples, and never more than 0.01.

    Args:
        name: Whose log-probabilities they are, for messages.
        network: The network.
        score: Returns the log-probabilities of the stored choices by a network; its second argument converts inputs.
        stored: log π(a|s) from collection.
        mask: 1 where the sample counts.

    Returns:
        The largest difference over the samples that count.

    Raises:
        DivergedError: A log-probability is not a finite number.
        ReplayMismatchError: The difference is more than rounding.
    """
    tolerance = REPLAY_TOLERANCE
    recomputed = score(network, lambda inputs: inputs)
    if not _largest(recomputed - stored, mask) <= tolerance:
        exact = score(copy.deepcopy(network).double(), Tensor.double)
        tolerance = min(_LIMIT, max(tolerance, _MARGIN * _largest(exact - recomputed, mask)))
    return audit_log_probs(name, stored, recomputed, mask, tolerance, network)


def _largest(difference: Tensor, mask: Tensor | None) -> float:
    return float((difference.abs() if mask is None else difference.abs() * mask).max())
