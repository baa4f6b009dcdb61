"""Policies, value functions, distributions and normalisers."""

from apexrl.models.attention import SetEncoder
from apexrl.models.base import Actor, Critic, RecurrentActor, RecurrentCritic
from apexrl.models.distributions import Distribution
from apexrl.models.encoded import (
    CNNActor,
    CNNCritic,
    CNNDiscreteActor,
    DictActor,
    DictCritic,
    EncodedActor,
    EncodedCritic,
)
from apexrl.models.encoders import CNNEncoder, DictEncoder, VectorEncoder
from apexrl.models.factory import default_actor_class, default_critic_class, make_actor, make_critic
from apexrl.models.mlp import MLPActor, MLPCritic, MLPDiscreteActor, make_mlp
from apexrl.models.normalizers import RunningObservationNormalizer, ValueNormalizer
from apexrl.models.recurrent import GRUActor, GRUCritic, GRUDiscreteActor, GRUMemory

__all__ = [
    "Actor",
    "CNNActor",
    "CNNCritic",
    "CNNDiscreteActor",
    "CNNEncoder",
    "Critic",
    "DictActor",
    "DictCritic",
    "DictEncoder",
    "Distribution",
    "EncodedActor",
    "EncodedCritic",
    "GRUActor",
    "GRUCritic",
    "GRUDiscreteActor",
    "GRUMemory",
    "MLPActor",
    "MLPCritic",
    "MLPDiscreteActor",
    "RecurrentActor",
    "RecurrentCritic",
    "RunningObservationNormalizer",
    "SetEncoder",
    "ValueNormalizer",
    "VectorEncoder",
    "default_actor_class",
    "default_critic_class",
    "make_actor",
    "make_critic",
    "make_mlp",
]
