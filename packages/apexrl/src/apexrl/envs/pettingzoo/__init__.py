"""PettingZoo parallel environments as ``MultiAgentVecEnv``."""

from apexrl.envs.pettingzoo.spaces import ObservationMismatchError
from apexrl.envs.pettingzoo.wrapper import PettingZooVecEnv

__all__ = ["ObservationMismatchError", "PettingZooVecEnv"]
