"""Environments: the contract, wrappers for other libraries' environments, and a checker."""

from apexrl.envs.gymnasium.wrapper import GymVecEnv, GymVecEnvContinuous
from apexrl.envs.multi_agent import MultiAgentExtras, MultiAgentVecEnv
from apexrl.envs.pettingzoo.wrapper import PettingZooVecEnv
from apexrl.envs.vec_env import Extras, StateDict, StateNotSupportedError, VecEnv

__all__ = [
    "Extras",
    "GymVecEnv",
    "GymVecEnvContinuous",
    "MultiAgentExtras",
    "MultiAgentVecEnv",
    "PettingZooVecEnv",
    "StateDict",
    "StateNotSupportedError",
    "VecEnv",
]
