"""Visits of observations in a batch: their entropy, their mutual information with skills, and the coverage reward.

Observations that agree to three digits count as one. In tasks with continuous observations, or with a clock in them,
hardly any two agree: visits then have their largest entropy, the information is 0, and so is the coverage reward.
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
    """Observations after V agent steps; agents that were absent are left out. U observations are distinct."""

    observation_index: Ints
    """Index of the observation among the distinct ones, ``(V,)``."""
    counts: Ints
    """Visits of each distinct observation in the batch, ``(U,)``."""


def find_visits(rollout: Rollout) -> Visits:
    """Count the observations of agents after each step of a rollout."""
    seen = rollout.next_observations[rollout.present]  # [V, do]
    rounded = (seen.double() * _DIGITS).round().to(torch.int64).cpu().numpy()
    # hash each row: a random linear combination of its rounded numbers, modulo 2⁶⁴
    weights = np.random.default_rng(_HASH_SEED).integers(-(2**62), 2**62, size=rounded.shape[1])
    keys = (rounded * weights).sum(axis=1)
    _, observation_index, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return Visits(observation_index, counts)


def coverage_rewards(rollout: Rollout, visits: Visits) -> Tensor:
    """Return −log(visits of the observation in the batch) for each agent step ``[T, E, n]``; 0 for absent agents.

    Its mean differs from the entropy of visits by a constant, so its maximum is the widest coverage. It is never
    positive: ending an episode early stays attractive.
    """
    rewards = torch.zeros_like(rollout.log_probs)
    rewards[rollout.present] = torch.from_numpy(-np.log(visits.counts[visits.observation_index])).to(rewards)
    return rewards


def coverage_metrics(rollout: Rollout, visits: Visits, n_agent_skills: int) -> dict[str, float]:
    """Return the entropy of visits H(o), and the mutual information I(z; o) of skills and observations, in nats.

    I(z; o) is measured without a discriminator: 0 if all skills visit the same observations equally often, H(z) if no
    two skills share one. A finite batch has information by chance, so that of the same skills in a random order is
    subtracted.
    """
    skills = rollout.skills[..., 1:][rollout.present].cpu().numpy()  # (V,)
    shuffled = np.random.default_rng(_HASH_SEED).permutation(skills)
    within, by_chance = (_entropy_within(order, visits, n_agent_skills) for order in (skills, shuffled))
    return {"Skills/VisitEntropy": _entropy(visits.counts), "Skills/VisitInformation": by_chance - within}


def _entropy_within(skills: Ints, visits: Visits, n_agent_skills: int) -> float:
    """Return H(o | z) of visits under ``skills (V,)``."""
    joint = np.zeros((n_agent_skills, visits.counts.size))
    np.add.at(joint, (skills, visits.observation_index), 1.0)
    shares = joint.sum(axis=1) / joint.sum()
    return float(sum(share * _entropy(row) for share, row in zip(shares, joint, strict=True) if share > 0.0))


def _entropy(counts: Floats | Ints) -> float:
    """Return −Σ p log p of p = counts / Σ counts."""
    known = counts[counts > 0.0]
    p = known / known.sum()
    return float(-(p * np.log(p)).sum())
