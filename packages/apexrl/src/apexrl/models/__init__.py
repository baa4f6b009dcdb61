"""Policies, value functions, distributions and normalisers."""

from apexrl.models.attention import SetEncoder
from apexrl.models.base import Actor, Critic, RecurrentActor, RecurrentCritic
from apexrl.models.cnn import CNNActor, CNNCritic, CNNDiscreteActor, CNNEncoder
from apexrl.models.distributions import Distribution
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
    "Distribution",
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
    "make_mlp",
]
