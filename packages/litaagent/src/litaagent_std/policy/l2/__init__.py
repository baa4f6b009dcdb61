"""L2: the day's goals, a quantity and a reservation price for every delivery day.

`heuristic` sets them by rules, `learned` by a trained network (`policy.learned.load_layers`); the protocol of both is
`layers.BatchGoals`.
"""

from .heuristic import HeuristicGoals, expand, heuristic_goals

__all__ = ["HeuristicGoals", "expand", "heuristic_goals"]
