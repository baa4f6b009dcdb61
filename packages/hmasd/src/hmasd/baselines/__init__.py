"""Baselines that learn under the same trainer: MAPPO and a MAT-style joint transformer."""
