"""PettingZoo: the UAV scenarios under its parallel API, and any of its modules as a task (``modules``)."""

from hmasd.envs.pettingzoo.modules import pettingzoo_env
from hmasd.envs.pettingzoo.uav import UAVParallelEnv, uav_coverage, uav_relay

__all__ = ["UAVParallelEnv", "pettingzoo_env", "uav_coverage", "uav_relay"]
