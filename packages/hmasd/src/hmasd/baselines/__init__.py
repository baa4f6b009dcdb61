"""Baselines for the same trainer: MAPPO and MAT."""

from hmasd.baselines.mappo import MAPPOAgent
from hmasd.baselines.mat import MATAgent

__all__ = ["MAPPOAgent", "MATAgent"]
