"""Algorithms: PPO (feed-forward and recurrent), MAPPO, BC and AWR, and the pure loss functions under them."""
