"""Gymnasium environments as ``VecEnv``: ``GymVecEnv``, whatever their spaces."""

from apexrl.envs.gymnasium.wrapper import GymVecEnv, GymVecEnvContinuous

__all__ = ["GymVecEnv", "GymVecEnvContinuous"]
