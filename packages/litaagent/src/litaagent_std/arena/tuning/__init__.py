"""Tuning: the agent's parameters optimised in worlds of the tuning block, judged on a gate."""
