"""Trained networks beside baselines that need no network."""
