"""Helper functions in one place: rollout storage, skill intervals, advantages, losses and the replay audit."""

from apexrl.algorithms.losses import audit_log_probs, ppo_surrogate, value_loss
from apexrl.models.normalizers import ValueNormalizer
from apexrl.storage.samples import gae
from hmasd.learning.low_level import minibatches
from hmasd.learning.rollout import Rollout, team_reward
from hmasd.learning.skill_clock import (
    Chunks,
    Intervals,
    SkillClock,
    cut_chunks,
    cut_intervals,
    interval_advantages,
)
from hmasd.networks.blocks import one_hot

__all__ = [
    "Chunks",
    "Intervals",
    "Rollout",
    "SkillClock",
    "ValueNormalizer",
    "audit_log_probs",
    "cut_chunks",
    "cut_intervals",
    "gae",
    "interval_advantages",
    "minibatches",
    "one_hot",
    "ppo_surrogate",
    "team_reward",
    "value_loss",
]
