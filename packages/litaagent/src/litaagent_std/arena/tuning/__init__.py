"""Tuning: parameters of the agent, optimised level by level in worlds of the tuning block and judged on a gate.

`run.run_tuning` is the whole; `search` is CMA-ES, `race` ranks the candidates of a generation, `space` scales
parameters to the unit box, `playing` plays worlds and keeps their units.
"""
