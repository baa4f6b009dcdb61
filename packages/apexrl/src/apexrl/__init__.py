"""apexrl: an on-policy reinforcement-learning engine with strictly synchronous collection."""
