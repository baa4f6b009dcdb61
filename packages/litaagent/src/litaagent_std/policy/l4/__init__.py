"""L4: coordination across the threads of a round.

`heuristic` chooses the offers to accept together and spreads the units that remain over the threads; `learned` weighs
threads by attention (`policy.learned.load_layers`) behind the protocol `layers.BatchCoordination`. The exact choice is
`plan.best_subsets`.
"""

from .heuristic import accept_offers
from .spread import spread

__all__ = ["accept_offers", "spread"]
