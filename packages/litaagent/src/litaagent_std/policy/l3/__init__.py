"""L3: the decision in each thread, and the probability that a partner accepts an offer.

`heuristic` holds the acceptance model, a belief over types of partners; `learned` decides by a trained network
(`policy.learned.load_layers`) behind the protocol `layers.DecisionLayer`.
"""

from .heuristic import ARCHETYPES, OfferGrid, PartnerModel, archetypes

__all__ = ["ARCHETYPES", "OfferGrid", "PartnerModel", "archetypes"]
