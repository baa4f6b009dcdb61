"""Where agents were in a batch: entropy of visits, what a skill tells about them, and the coverage reward.

Two observations are one place if they agree to three digits. In tasks with continuous observations hardly any two do;
visits then have their largest entropy and the coverage reward is 0.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from apexrl.arrays import Floats, Ints
from hmasd.learning.rollout import Rollout

_DIGITS = 1000.0
_HASH_SEED = 0x5EED


class Visits(NamedTuple):
    """Places of V agent steps; agents that were absent are left out."""

    place: Ints
    """Index of the place, ``(V,)``."""
    counts: Ints
    """Visits of each place in the batch."""


def find_visits(rollout: Rollout) -> Visits:
    """Return the places that agents saw after each step of a rollout."""
    seen = rollout.next_observations[rollout.present]  # [V, do]
    rounded = (seen.double() * _DIGITS).round().to(torch.int64).cpu().numpy()
    # a place is known by a random linear combination of its rounded numbers, modulo 2⁶⁴
    weights = np.random.default_rng(_HASH_SEED).integers(-(2**62), 2**62, size=rounded.shape[1])
    keys = (rounded * weights).sum(axis=1)
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return Visits(place, counts)


def coverage_rewards(rollout: Rollout, visits: Visits) -> Tensor:
    """Return −log(visits of the place in the batch) for each agent step ``[T, E, n]``; 0 for absent agents.

    Its mean differs from the entropy of visits by a constant, so its maximum is the widest coverage. It is never
    positive: ending an episode early stays attractive.
    """
    rewards = torch.zeros_like(rollout.log_probs)
    rewards[rollout.present] = torch.from_numpy(-np.log(visits.counts[visits.place])).to(rewards)
    return rewards


def coverage_metrics(rollout: Rollout, visits: Visits, n_agent_skills: int) -> dict[str, float]:
    """Return the entropy of visits H(o), and I(z; o) = H(o) − H(o | z), both in nats.

    I(z; o) is what skills and places tell about each other, measured without a discriminator: 0 if all skills go to the
    same places, H(z) if no two skills share one.
    """
    skills = rollout.skills[..., 1:][rollout.present].cpu().numpy()  # (V,)
    joint = np.zeros((n_agent_skills, visits.counts.size))
    np.add.at(joint, (skills, visits.place), 1.0)
    total = _entropy(joint.sum(axis=0))
    shares = joint.sum(axis=1) / joint.sum()
    given = sum(share * _entropy(row) for share, row in zip(shares, joint, strict=True) if share > 0.0)
    return {"Skills/VisitEntropy": total, "Skills/VisitInformation": total - given}


def _entropy(counts: Floats) -> float:
    """Return −Σ p log p of p = counts / Σ counts."""
    known = counts[counts > 0.0]
    p = known / known.sum()
    return float(-(p * np.log(p)).sum())
