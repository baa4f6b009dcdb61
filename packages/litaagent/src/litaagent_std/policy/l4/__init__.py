"""L4: coordination across the threads of a round.

`heuristic` spreads the units that remain over the threads; `learned` weighs threads by attention
(`policy.learned.load_layers`) behind the protocol `layers.CoordinationLayer`. The exact choice of the offers to accept
together is `plan.best_subset`.
"""

from .heuristic import Spreader

__all__ = ["Spreader"]
