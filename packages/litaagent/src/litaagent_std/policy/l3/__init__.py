"""L3: the decision in each thread, and the probability that a partner accepts an offer.

`heuristic` holds the acceptance model, a belief over types of partners; `learned` decides by a trained network
(`policy.learned.load_layers`) behind the protocol `layers.BatchDecisions`.
"""

from .heuristic import ARCHETYPES, Acceptance, Market, Mixture, Offers, archetypes

__all__ = ["ARCHETYPES", "Acceptance", "Market", "Mixture", "Offers", "archetypes"]
