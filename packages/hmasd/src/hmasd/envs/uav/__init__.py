"""UAV base stations over users on the ground: radio model, worlds, observations and the batched environment."""

from hmasd.envs.uav.env import UAVEnv
from hmasd.envs.uav.world import UAVConfig, UAVWorlds

__all__ = ["UAVConfig", "UAVEnv", "UAVWorlds"]
