"""The agent's mind: observation, four layers and the brain that joins them (stdlib and numpy only)."""
