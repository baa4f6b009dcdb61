"""Policies, value functions, distributions and normalisers."""

from apexrl.models.base import Actor, Critic, RecurrentActor, RecurrentCritic
from apexrl.models.mlp import MLPActor, MLPCritic, MLPDiscreteActor

__all__ = [
    "Actor",
    "Critic",
    "MLPActor",
    "MLPCritic",
    "MLPDiscreteActor",
    "RecurrentActor",
    "RecurrentCritic",
]
