"""UAV base stations: coverage and relay as batched multi-agent environments."""
