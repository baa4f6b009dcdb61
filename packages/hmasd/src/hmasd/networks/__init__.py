"""The networks of HMASD.

* :class:`SkillCoordinator`: the high level π_h, a transformer that chooses the team skill and each agent's skill.
* :class:`SkillDiscoverer`: the low level π_l and its critic, recurrent and shared by all agents.
* :class:`Discriminators`: q_D and q_d, which recognise skills.
* :mod:`hmasd.networks.blocks`: the layers that they are made of.
"""

from hmasd.networks.blocks import Attention, DecoderBlock, EncoderBlock, RecurrentTrunk, one_hot
from hmasd.networks.coordinator import ContinuationCritic, SkillChoice, SkillCoordinator, SkillScores
from hmasd.networks.discoverer import SkillDiscoverer
from hmasd.networks.discriminators import Discriminators, SkillLogProbs

__all__ = [
    "Attention",
    "ContinuationCritic",
    "DecoderBlock",
    "Discriminators",
    "EncoderBlock",
    "RecurrentTrunk",
    "SkillChoice",
    "SkillCoordinator",
    "SkillDiscoverer",
    "SkillLogProbs",
    "SkillScores",
    "one_hot",
]
