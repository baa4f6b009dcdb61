"""The UAV scenarios under PettingZoo's parallel API; the code is in :mod:`hmasd.envs.pettingzoo`."""

from hmasd.envs.pettingzoo import UAVParallelEnv, uav_coverage, uav_relay

__all__ = ["UAVParallelEnv", "uav_coverage", "uav_relay"]
