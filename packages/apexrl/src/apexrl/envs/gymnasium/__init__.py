"""Gymnasium environments as `VecEnv`."""
