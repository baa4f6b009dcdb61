"""Gymnasium environments as ``VecEnv``: ``GymVecEnv`` for discrete actions, ``GymVecEnvContinuous`` for Box actions."""

from apexrl.envs.gymnasium.wrapper import GymVecEnv, GymVecEnvContinuous

__all__ = ["GymVecEnv", "GymVecEnvContinuous"]
