"""The UAV scenarios under PettingZoo's parallel API."""

from hmasd.envs.pettingzoo.uav import UAVParallelEnv, uav_coverage, uav_relay

__all__ = ["UAVParallelEnv", "uav_coverage", "uav_relay"]
