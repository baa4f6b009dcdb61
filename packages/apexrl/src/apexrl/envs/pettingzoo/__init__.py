"""PettingZoo parallel environments as `MultiAgentVecEnv`."""
